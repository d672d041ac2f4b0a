"""An event that the projection fails on is refused; every other job, and the stream, go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.lake import tables
from headwater.lake.projection import LogRecord

from .test_repair import made
from .test_upkeep import AT, stored_edges

if TYPE_CHECKING:
    from headwater.server.store import Store

    from .local import LocalLake

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]


def test_an_event_that_breaks_the_projection_is_refused_once(
    local: LocalLake, store: Store
) -> None:
    bodies = [made(0, 1, "load", "b"), made(50, 2, "load", "lost"), made(0, 3, "other", "x")]
    local.take(LogRecord(0, AT + 200_000_000, body) for body in bodies)
    # As if a later release could not read any more what an earlier one took.
    events = local.lake.name(tables.EVENTS)
    local.spark.sql(f"UPDATE {events} SET body = '{{' WHERE kafka_offset = 1")
    local.settle()
    store.append([bodies[0], bodies[2]])
    assert local.edges() == stored_edges(store)

    goes_on = made(200, 6, "load", "c")
    local.take([LogRecord(0, AT + 300_000_000, goes_on), LogRecord(0, AT + 300_000_000, b"[")])
    local.settle()
    store.append([goes_on])
    assert local.edges() == stored_edges(store)
    refused = {row["kafka_offset"]: row for row in local.rows(tables.REFUSED)}
    assert len(local.rows(tables.REFUSED)) == 2
    assert sorted(refused) == [1, 4]
    assert refused[1]["reason"].startswith("the projection failed on it: EventError")
    # The program that starts anew knows up to where the stream came, and refuses what follows.
    local.again().take([LogRecord(0, AT + 400_000_000, b"{")])
    assert len(local.rows(tables.REFUSED)) == 3


def test_a_batch_of_nothing_but_broken_records_is_refused(local: LocalLake) -> None:
    local.take([LogRecord(0, AT, b"{")])
    local.take([LogRecord(0, AT, b"{"), LogRecord(0, AT, made(0, 1, "load", "b"))])
    local.take([LogRecord(0, AT, b"{")])
    assert [row["kafka_offset"] for row in local.rows(tables.EVENTS)] == [2]
    assert sorted(row["kafka_offset"] for row in local.rows(tables.REFUSED)) == [0, 1, 3]
