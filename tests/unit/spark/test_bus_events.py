"""Waiting for the events that Spark has posted so far, on a listener bus that is never empty."""

from __future__ import annotations

import time
from typing import Any

from headwater.spark.driver.bridge import BusEvents


class Count:
    """A counter or timer of Spark's metrics, which grows by what it is told each time it is read."""

    def __init__(self, value: int, *more: int) -> None:
        self.value, self.more = value, list(more)

    def getCount(self) -> int:  # noqa: N802  (Java's)
        self.value += self.more.pop(0) if self.more else 0
        return self.value


class Bus:
    """Stands for the listener bus of a JVM: its counts alone."""

    def __init__(self, posted: Count, processed: Count, dropped: Count) -> None:
        self.counts = {
            "numEventsPosted": posted,
            "queue.shared.listenerProcessingTime": processed,
            "queue.shared.numDroppedEvents": dropped,
        }

    def metrics(self) -> Any:
        return self

    metricRegistry = metrics  # noqa: N815

    def counter(self, name: str) -> Count:
        return self.counts[name]

    timer = counter

    def waitUntilEmpty(self, milliseconds: int) -> None:  # noqa: N802
        assert milliseconds > 0


def test_an_event_that_is_posted_while_events_are_counted_is_waited_for() -> None:
    # Five events came before the queue was there; one is posted between the first two readings.
    posted, processed, dropped = Count(12, 1), Count(7, 0, 1), Count(0)
    events = BusEvents(Bus(posted, processed, dropped))
    assert events.wait(time.monotonic())
    posted.value += 2
    processed.value += 1
    assert not events.wait(time.monotonic()), "one is not processed yet"
    processed.value += 1
    assert events.wait(time.monotonic())


def test_an_event_that_the_queue_dropped_is_not_waited_for() -> None:
    posted, processed, dropped = Count(12), Count(10), Count(2)
    events = BusEvents(Bus(posted, processed, dropped))
    posted.value += 3
    processed.value += 2
    dropped.value += 1
    assert events.wait(time.monotonic())


def test_what_is_posted_later_is_not_waited_for() -> None:
    posted, processed, dropped = Count(4), Count(4), Count(0)
    events = BusEvents(Bus(posted, processed, dropped))
    posted.value += 1
    posted.more, processed.more = [0, 100, 100], [0, 0, 1]
    assert events.wait(time.monotonic() + 10)
