"""What a server does by itself: closes the runs that went silent, deletes old history (retention).

Of several servers on one database, the one that leads does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from headwater.server.store.database import StoreError
from headwater.server.store.keep.retention import retain
from headwater.server.store.keep.stale_runs import SilentRuns

if TYPE_CHECKING:
    from uuid import UUID

    from headwater.server.app import App

__all__ = [
    "apply_retention",
    "check_for_damage",
    "close_stale_runs",
    "try_failing_writes",
    "watch_writer",
]

log = logging.getLogger("headwater.server")

SECOND = 1_000_000
HOUR = 3_600.0
RETRY = 2.0
PATIENCE = 3.5
"""Seconds that the writer may wait for a store that does not answer, before who waits gets a 503."""
LONGEST = 30.0
"""The same for a store that can be read and does not finish a commit."""


async def close_stale_runs(app: App) -> None:
    """Look every few seconds for runs past their deadline and close them as ABORT, inferred."""
    age = app.settings.max_age
    runs = SilentRuns(None if age is None else int(age * SECOND))
    closed: list[UUID] = []
    while True:
        try:
            leads = await asyncio.to_thread(app.store.database.lead)
            if leads and app.ingest.failing is None:
                await asyncio.to_thread(app.store.database.tend)
                closed = await app.ingest.perform(
                    lambda store: runs.close(store, time.time_ns() // 1000)
                )
            else:
                runs.interrupted()
        except Exception as error:  # noqa: BLE001  (the next round tries again)
            log.warning("silent runs were not closed, will be retried: %s", error)
        for run in closed:
            text = "run %s sent no event in time and was closed as ABORT"
            log.info(text, run, extra={"run": run})
        closed = []
        await asyncio.sleep(app.settings.stale_every)


async def apply_retention(app: App) -> None:
    """Drop, every hour, the runs and events older than what is to be kept."""
    keep = app.settings.keep
    if keep is None:
        return
    while True:
        try:
            if await asyncio.to_thread(app.store.database.lead):
                before = int((time.time() - keep) * SECOND)
                sent = app.log_forwarded
                dropped = await app.ingest.perform(lambda store: retain(store, before, sent))  # noqa: B023
                if dropped.events:
                    log.info("retention: %d events, %d runs deleted", dropped.events, dropped.runs)
        except Exception as error:  # noqa: BLE001  (the next round tries again)
            log.warning("retention failed, will be retried: %s", error)
        await asyncio.sleep(min(HOUR, max(1.0, keep / 24)))


async def try_failing_writes(app: App) -> None:
    """Retry writing after a failed commit, until the store can be written again: health reports it."""
    while True:
        await asyncio.sleep(RETRY)
        ingest = app.ingest
        if ingest.failing is None:
            continue
        try:
            await ingest.perform(lambda store: store.try_write())
        except Exception as error:  # noqa: BLE001  (health goes on saying so; the next round tries again)
            log.warning("the store cannot be written, will be retried: %s", error)
        else:
            ingest.failing = None
            log.info("the store can be written again")


async def check_for_damage(app: App) -> None:
    """Check the store's file every hour: damage is otherwise noticed only where it is read."""
    while True:
        began = time.monotonic()
        try:
            await asyncio.to_thread(app.store.database.inspect)
        except StoreError as error:
            log.warning("the store could not be checked for damage, will be retried: %s", error)
        else:
            if trouble := app.store.database.trouble():
                log.error("the store: %s", trouble)
        # A large file takes long: no more than a fiftieth of the time goes into this.
        await asyncio.sleep(max(HOUR, 50 * (time.monotonic() - began)))


async def watch_writer(app: App) -> None:
    """Answer those who wait for a writer that does not come back from the store."""
    while True:
        await asyncio.sleep(0.25)
        ingest = app.ingest
        waits = ingest.waited() >= PATIENCE or ingest.busy_for() >= LONGEST
        if ingest.stalled is not None or not waits:
            continue
        # A writer that is merely slow, or at a change that takes long, is waited for.
        with contextlib.suppress(StoreError):
            await app.probe(0.75)
            if ingest.working or ingest.busy_for() < LONGEST:
                continue
        if ingest.waited() >= PATIENCE or ingest.busy_for() >= LONGEST:
            ingest.give_up(f"the store has not answered for {ingest.busy_for():.0f} s")
