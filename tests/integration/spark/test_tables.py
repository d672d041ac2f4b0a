"""Table formats besides Iceberg, on the real thing: each step of a format is told exactly."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lab.jars import format_jars

from .drivers import Drivers, Told, check_lives, check_valid
from .tables import delta
from .tables.verdict import wrong

if TYPE_CHECKING:
    from pathlib import Path

    from .tables.stage import Step

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]


def play(word: str, steps: list[Step], work: Path) -> tuple[Told, dict[str, Any]]:
    """Every step in one session: what it told, with which of the events are each step's."""
    drivers = Drivers(work)
    jars = os.pathsep.join(map(str, format_jars(word)))
    told = drivers.run("tables.py", word, str(drivers.file), str(work / "told"), JARS=jars)
    assert told.code == 0, told.error[-3000:]
    played = json.loads((work / "told").read_text())
    own = {
        step.name: told.events[played[step.name]["first"] : played[step.name]["last"]]
        for step in steps
    }
    found = {step.name: wrong(step, own[step.name], played[step.name]) for step in steps}
    found = {name: lines for name, lines in found.items() if lines}
    assert not found, json.dumps(found, indent=1)
    assert "lineage:" not in told.error
    check_lives(told.events)
    check_valid(told.events, work)
    return told, own


def test_delta(tmp_path: Path) -> None:
    _, own = play("delta", delta.step.all, tmp_path)
    # What Delta reads of its own log, and reads again, is not counted.
    for step in ("insert_into", "merge_by_clause"):
        (count,) = [
            one["inputFacets"]["inputStatistics"]["rowCount"]
            for one in own[step][-1]["inputs"]
            if one["name"].endswith("lake/orders")
        ]
        assert count == 2
