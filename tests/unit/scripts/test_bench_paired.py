"""What the benchmark of statements in one session makes of them, and what is kept of it for the docs."""

from __future__ import annotations

import json
from pathlib import Path

from bench._paired import Played, row

RESULTS = Path(__file__).parents[3] / "bench/results/spark.json"


def test_a_statement_is_compared_with_itself_without_lineage() -> None:
    pairs = [
        (Played([100, 200], 1.0), Played([110, 200], 1.04)),
        (Played([100, 400], 1.0), Played([120, 440], 1.04)),
    ]
    made = row("headwater", pairs)
    assert (made["statements"], made["ratio"], made["CPU over off"]) == (4, 1.1, 20)
    assert row("off", [(off, off) for off, _ in pairs])["95 %"] == []


def test_what_is_kept_is_what_it_makes() -> None:
    rows = json.loads(RESULTS.read_text())["paired"]
    assert {one["mode"] for one in rows} == {"off", "headwater"}
    pair = [(Played([1], 1), Played([1], 1))]
    assert {key for one in rows for key in one} == {*row("headwater", pair), "load average"}
