"""Closes the runs that went silent."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["close_stale_runs"]

log = logging.getLogger("headwater.server")


async def close_stale_runs(app: App) -> None:
    """Look every few seconds for runs past their deadline and close them as ABORT, inferred."""
    age = app.settings.max_age
    max_age = None if age is None else int(age * 1_000_000)
    while True:
        await asyncio.sleep(app.settings.stale_every)
        try:
            now = time.time_ns() // 1000
            closed = await app.ingest.perform(lambda store: store.close_stale(now, max_age))  # noqa: B023
        except Exception as error:  # noqa: BLE001  (the next round tries again)
            log.warning("cannot close silent runs: %s", error)
            continue
        for run in closed:
            log.info("run %s went silent and was closed", run)
