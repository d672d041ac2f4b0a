"""What the benchmark of the lake keeps of its loads, and what is said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import _lake_results
from bench._lake_results import cluster, keep, kept, loads, said

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CORPUS = {"templates": 3, "bytes": 1_000}


def load(events: int, append: float, derive: float) -> dict[str, Any]:
    return {
        "events": events, "append": append, "derive": derive, "append cpu": append / events,
        "derived cpu": (append + derive) / events, "lake": 100,
    }  # fmt: skip


def test_sizes_of_different_runs_stand_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lake_results, "RESULTS", tmp_path / "lake.json")
    keep(corpus=CORPUS, loads={"3000": load(3_000, 1_600, 900)})
    keep(corpus=CORPUS, loads={"1000": load(1_000, 9_999, 0)})
    keep(corpus=CORPUS, loads={"1000": load(1_000, 1_200, 500)})
    found = kept()
    head, rows = loads(found)
    assert head == ["measure", "1,000 events", "3,000 events", "growth"]
    assert ["append alone, CPU an event", "1.20 ms", "0.53 ms", "x0.44"] in rows
    _, append, derived = said(found)
    assert append.startswith(
        "append alone: 0.20 ms of CPU an event (5,000 events a second and core)"
    )
    assert append.endswith("1.0 s a batch in any case")
    assert derived.startswith("with derived tables: 0.40 ms of CPU an event (2,500 ")
    _, cores = cluster(found)
    assert cores[-1][2:4] == ["2.3 to 6.2 cores", "4.6 to 9.6 cores"]


def test_loads_of_other_recorded_events_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_lake_results, "RESULTS", tmp_path / "lake.json")
    keep(CORPUS, {"1000": load(1_000, 1, 1)})
    keep({"templates": 4, "bytes": 2_000}, {"2000": load(2_000, 1, 1)})
    assert list(kept()["loads"]) == list(kept()["measured"]) == ["2000"]
