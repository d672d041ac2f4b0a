"""What a server does by itself: closes the runs that went silent, lets old history go.

Of several servers on one database, the one that leads does it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from headwater.server.store.retention import retain
from headwater.server.store.silence import close_stale

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["close_stale_runs", "let_go_of_history"]

log = logging.getLogger("headwater.server")

SECOND = 1_000_000
HOUR = 3_600.0


async def close_stale_runs(app: App) -> None:
    """Look every few seconds for runs past their deadline and close them as ABORT, inferred."""
    age = app.settings.max_age
    max_age = None if age is None else int(age * SECOND)
    while True:
        await asyncio.sleep(app.settings.stale_every)
        try:
            if not await asyncio.to_thread(app.store.database.lead):
                continue
            await asyncio.to_thread(app.store.database.tend)
            now = time.time_ns() // 1000
            closed = await app.ingest.perform(lambda store: close_stale(store, now, max_age))  # noqa: B023
        except Exception as error:  # noqa: BLE001  (the next round tries again)
            log.warning("cannot close silent runs: %s", error)
            continue
        for run in closed:
            log.info("run %s went silent and was closed", run)


async def let_go_of_history(app: App) -> None:
    """Drop, every hour, the runs and events older than what is to be kept."""
    keep = app.settings.keep
    if keep is None:
        return
    while True:
        try:
            if await asyncio.to_thread(app.store.database.lead):
                before = int((time.time() - keep) * SECOND)
                dropped = await app.ingest.perform(lambda store: retain(store, before))  # noqa: B023
                if dropped.events:
                    log.info("let go of %d events and %d runs", dropped.events, dropped.runs)
        except Exception as error:  # noqa: BLE001  (the next round tries again)
            log.warning("cannot let old history go: %s", error)
        await asyncio.sleep(min(HOUR, max(1.0, keep / 24)))
