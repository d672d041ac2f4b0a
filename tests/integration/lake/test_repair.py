"""Events that arrive later than a bound are kept, and count once the lake is repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lake_derive
import msgspec
import pytest

from headwater.lake import tables
from headwater.lake.projection import LogRecord
from tests.integration.server.making import event

from .test_upkeep import AT, DAY, stored_edges

if TYPE_CHECKING:
    from headwater.server.store import Store

    from .local import LocalLake

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


def made(second: int, run: int, job: str, *outputs: str) -> bytes:
    return msgspec.json.encode(
        event("COMPLETE", second, run=run, job=job, inputs=["a"], outputs=list(outputs))
    )


def test_late_events_wait_for_a_repair(local: LocalLake, store: Store) -> None:
    lake_derive.bound(local.lake, 7 * 86_400)
    timely = [made(0, 1, "load", "b"), made(100, 2, "load", "c"), made(0, 3, "other", "x")]
    late = [made(50, 4, "load", "d"), made(50, 5, "fresh", "e")]
    local.take(LogRecord(0, AT + 200_000_000, body) for body in timely)
    local.settle()
    store.append(timely)
    assert local.edges() == stored_edges(store)
    before = local.edges()
    local.take(LogRecord(0, AT + 8 * DAY, body) for body in late)
    local.settle()
    assert len(local.rows(tables.EVENTS)) == 5
    assert local.edges() == before

    # A job that goes on is computed again, without what waits.
    goes_on = made(200, 6, "load", "c", "f")
    local.take([LogRecord(0, AT + 300_000_000, goes_on)])
    local.settle()
    store.append([goes_on])
    assert local.edges() == stored_edges(store)

    assert lake_derive.repair(local.lake) == (2, 2)
    store.append(late)
    assert local.edges() == stored_edges(store)
    assert any(edge[1] == "d" for edge in local.edges())
    # They count from now on; those that come after it wait for the next one.
    last = made(300, 7, "load", "c")
    later = made(60, 8, "other", "y")
    local.take([LogRecord(0, AT + 400_000_000, last), LogRecord(0, AT + 9 * DAY, later)])
    local.settle()
    store.append([last])
    assert local.edges() == stored_edges(store)
    assert lake_derive.repair(local.lake) == (1, 1)
    assert lake_derive.repair(local.lake) == (0, 0)
    store.append([later])
    assert local.edges() == stored_edges(store)


def test_without_a_bound_nothing_waits(local: LocalLake, store: Store) -> None:
    lake_derive.bound(local.lake, None)
    bodies = [made(0, 1, "load", "b"), made(100, 2, "load", "c")]
    local.take(LogRecord(0, AT + 30 * DAY, body) for body in bodies)
    local.settle()
    store.append(bodies)
    assert local.edges() == stored_edges(store)
    assert lake_derive.repair(local.lake) == (0, 0)


def test_another_bound_leaves_nothing_waiting_and_takes_nothing_back(
    local: LocalLake, store: Store
) -> None:
    late, early = made(0, 1, "load", "b"), made(10, 2, "other", "x")
    lake_derive.bound(local.lake, 7 * 86_400)
    local.take([LogRecord(0, AT + 8 * DAY, late)])
    local.settle()
    assert local.edges() == []
    lake_derive.bound(local.lake, None)
    store.append([late])
    assert local.edges() == stored_edges(store)

    # What counted without a bound counts still when its job goes on under one.
    local.take([LogRecord(0, AT + 9 * DAY, early)])
    local.settle()
    lake_derive.bound(local.lake, 86_400)
    goes_on = made(20, 3, "other", "y")
    local.take([LogRecord(0, AT + 30_000_000, goes_on)])
    local.settle()
    store.append([early, goes_on])
    assert local.edges() == stored_edges(store)
