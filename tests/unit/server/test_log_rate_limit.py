"""A log that bad requests cannot fill."""

from __future__ import annotations

import itertools
import logging

import pytest

from headwater.logs import LogFormat
from headwater.server.http.log_rate_limit import KINDS, RateLimitFilter
from headwater.server.http.serve import _configure_logging


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


@pytest.mark.parametrize("name", ["headwater.server.ingest", "uvicorn.error", "asyncio"])
def test_every_logger_of_a_server_is_limited(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    _configure_logging(LogFormat.TEXT)
    for n in range(100):
        logging.getLogger(name).warning(f"Task {n} failed\nfuture: <Task {n} at 0x{n:x}>")  # noqa: G004
    assert capfd.readouterr().err.count("failed") == 20


def test_kinds_beyond_the_most_are_one() -> None:
    calm = RateLimitFilter(most=3)
    letters = "abcdefghijklmnopqrstuvwxyz"
    passed = 0
    for kind in itertools.product(letters, repeat=3):
        record = logging.LogRecord("x", logging.WARNING, "", 0, "".join(kind), None, None)
        passed += calm.filter(record)
    assert passed == KINDS + 3
