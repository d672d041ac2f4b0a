"""What a server does by itself goes on whatever happens, and ends no run that is alive."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from headwater.server.app import App, ServerSettings
from headwater.server.store import StoreUnavailableError, open_store
from headwater.server.store.keep.stale_runs import AWAY, RETURN, SilentRuns

from .conftest import Client
from .making import event, facet, run_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from uuid import UUID

    from headwater.server.store import Store

MINUTE = 60_000_000
BEATING = {
    "jobType": facet(
        processingType="STREAMING",
        integration="X",
        emissionPattern={"eventTrigger": "PERIODIC", "windowDuration": 1},
    )
}


def beat(run: int) -> dict[str, Any]:
    """An event of a run that missed its heartbeats long ago."""
    return event("RUNNING", 0, run=run, job=f"j{run}", job_facets=BEATING)


def states(client: Client, *runs: int) -> list[str]:
    return [client.get(f"/api/v1/jobs/runs/{run_id(run)}")["state"] for run in runs]


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_background_task_that_fails_is_logged_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headwater.server.app.RESTART", 0.01)
    client = Client(open_store(f"sqlite:///{tmp_path}/h.db"))
    began: list[float] = []

    async def falls(_: App) -> None:
        began.append(time.monotonic())
        raise ValueError("fell over")

    client.app.background.insert(0, falls)
    client.post(event("START", 0))
    wait(lambda: len(began) > 4)
    client.close()
    pauses = [after - before for before, after in pairwise(began)]
    assert all(pause > 0.01 * 2**n for n, pause in enumerate(pauses))
    (first, *_) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "test_upkeep" in first.getMessage()
    assert "fell over" in caplog.text


def test_a_server_closes_its_store_whatever_its_tasks_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(open_store(f"sqlite:///{tmp_path}/h.db"))
    ended: list[str] = []

    async def breaks(_: App) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise StoreUnavailableError("gone at the end")

    async def ends(_: App) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    client.app.background[:0] = [breaks, ends]
    client.post(event("START", 0))
    client.close()
    assert ended == ["ended"]
    assert "gone at the end" in caplog.text
    with pytest.raises(Exception, match="closed"):
        client.store.connection.all("SELECT 1 FROM head")


def test_producers_get_half_a_minute_after_each_interruption(store: Store) -> None:
    store.append([json.dumps(beat(run)).encode() for run in (1, 2)])
    now = time.time_ns() // 1000
    runs = SilentRuns()

    def close(after: int, closing: SilentRuns = runs) -> list[str]:
        found: list[UUID] = closing.close(store, now + after)
        return [str(run) for run in found]

    assert close(0) == []
    store.append([json.dumps(beat(3)).encode()])
    # One that reported since, and then missed its heartbeats, had its time.
    assert close(AWAY) == [run_id(3)]
    # The store was away for a while, another server looked after it, or it was suspended.
    assert close(2 * AWAY + 1) == []
    runs.interrupted()
    assert close(3 * AWAY) == []
    assert close(4 * AWAY) == []
    # A server that restarts begins anew each time.
    assert close(4 * AWAY, SilentRuns()) == []
    assert close(3 * AWAY + RETURN) == [run_id(1), run_id(2)]


def test_an_age_that_was_asked_for_waits_for_producers_too(store: Store) -> None:
    store.append([json.dumps(event("START", 0)).encode()])
    now = time.time_ns() // 1000
    runs = SilentRuns(max_age=MINUTE)
    assert [runs.close(store, now), runs.close(store, now + AWAY)] == [[], []]
    assert [str(run) for run in runs.close(store, now + RETURN)] == [run_id(1)]


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[SilentRuns]:
    """One more with each look for silent runs; the first of them fails."""
    found: list[SilentRuns] = []
    close = SilentRuns.close

    def counted(runs: SilentRuns, store: Store, now: int) -> list[UUID]:
        found.append(runs)
        if len(found) == 1:
            raise StoreUnavailableError("connection refused")
        return close(runs, store, now)

    monkeypatch.setattr(SilentRuns, "close", counted)
    return found


def test_a_second_restart_shortly_after_ends_no_run(
    store_url: str, rounds: list[SilentRuns], caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(store_url)
    store.append([json.dumps(beat(1)).encode()])
    store.connection.begin()
    store.connection.run("UPDATE log SET at = at - 600000000")
    store.connection.commit()
    # It came after the first restart; the producer of the other run had no time to.
    store.append([json.dumps(event("START", 0, run=2, job="quick")).encode()])
    client = Client(store, ServerSettings(stale_every=0.05))
    client.post(event("START", 0, run=4))
    wait(lambda: len(rounds) > 1)
    client.post({**beat(3), "eventTime": datetime.now(timezone.utc).isoformat()})
    wait(lambda: states(client, 3) == ["ABORTED"])
    assert states(client, 1) == ["RUNNING"]
    assert "silent runs were not closed, will be retried: connection refused" in caplog.text
    client.close()
