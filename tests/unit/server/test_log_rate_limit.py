"""A log that bad requests cannot fill."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from headwater.server.http.log_rate_limit import RateLimitFilter

if TYPE_CHECKING:
    import pytest


def test_a_flood_is_cut_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("headwater.test.calm")
    calm = RateLimitFilter(most=3, every=0.0)
    calm._every = 60.0
    log.addFilter(calm)
    try:
        for n in range(1_000):
            log.warning("%s failed", f"GET /{n}")
        log.warning("something else")
        assert [r.getMessage() for r in caplog.records] == [
            "GET /0 failed", "GET /1 failed", "GET /2 failed", "something else",
        ]  # fmt: skip
        calm._every = 0.0
        log.warning("%s failed", "GET /last")
        assert caplog.records[-1].getMessage() == (
            "GET /last failed (997 more like this were left out)"
        )
    finally:
        log.removeFilter(calm)
