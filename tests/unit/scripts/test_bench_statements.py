"""What the benchmark of batch statements makes of the times and CPU it measured."""

from __future__ import annotations

from typing import Any

import pytest
from bench._statements import row


def played(times: list[float], python: float, threads: float) -> dict[str, Any]:
    return {"times": times, "python": python, "jvm": 100.0, "threads": threads, "load": 3.0}


def test_a_round_on_a_busy_machine_counts_for_no_time_and_no_ratio() -> None:
    off = [played([100, 200], 4, 0), played([900, 200], 4, 0)]
    found = [played([800, 220], 24, 10), played([110, 950], 28, 10)]
    made = row("headwater", off, found)
    assert made["ratio"] == pytest.approx(1.1)
    assert made["95 %"] == [1.1, 1.1]
    assert made["statements"] == 4
    assert made["load average"] == 3


def test_cpu_is_what_lineage_takes_more_a_statement() -> None:
    off = [played([1, 1], 4, 0), played([1, 1], 4, 0)]
    found = [played([1, 1], 24, 10), played([1, 1], 28, 10)]
    made = row("headwater", off, found)
    assert made["CPU of lineage's threads"] == 16
    assert made["95 % of it"] == [15, 17]
    assert made["CPU over off"] == 11
    assert row("off", off, off)["CPU over off"] is None
