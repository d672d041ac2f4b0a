"""Table formats besides Iceberg, on the real thing: each step of a format is told exactly."""

from __future__ import annotations

import json
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from headwater.lab.files.jars import extra_jars
from headwater.lab.java import find_java

from . import matrix
from .drivers import Drivers, Told, check_lives, check_valid
from .matrix import Pair
from .tables import delta, hudi
from .tables.verdict import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .tables.stage import Step

pytestmark = [pytest.mark.full, pytest.mark.timeout(500)]

# Hudi's bundle for Spark 4 could not be resolved.
OLD = Pair("3.5", matrix.SUPPORTED["3.5"][-1])
LOGS = ("_delta_log", ".hoodie")


class Played(NamedTuple):
    """What a session of steps told, and where."""

    told: Told
    steps: dict[str, Any]
    work: Path

    def of(self, step: str) -> list[dict[str, Any]]:
        """The events of one step, without the heartbeats of the application meanwhile."""
        found = self.told.events[self.steps[step]["first"] : self.steps[step]["last"]]
        return [one for one in found if one["job"]["facets"]["jobType"]["jobType"] != "APPLICATION"]

    def rows(self, step: str, place: str) -> int:
        """How many rows a step is said to have read there."""
        (one,) = [one for one in self.of(step)[-1]["inputs"] if one["name"].endswith(place)]
        count: int = one["inputFacets"]["inputStatistics"]["rowCount"]
        return count


def _play(word: str, work: Path, pair: Pair | None = None) -> Played:
    work.mkdir()
    drivers = Drivers(work)
    if pair is not None:
        drivers.python = str(matrix.interpreter(pair))
        found = matrix.environment(pair)
        drivers.environment |= {key: found[key] for key in ("PYTHONPATH", "JAVA_HOME")}
        drivers.environment["PYSPARK_PYTHON"] = drivers.python
    jars = os.pathsep.join(map(str, extra_jars(word)))
    told = drivers.run("tables.py", word, str(drivers.file), str(work / "told"), JARS=jars)
    assert told.code == 0, told.error[-3000:]
    return Played(told, json.loads((work / "told").read_text()), work)


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Played]]]:
    """The sessions that are asked for, side by side: each works on one thing at a time."""
    asked = {item.name for item in request.session.items}
    folder = tmp_path_factory.mktemp("tables")
    with ThreadPoolExecutor(2) as pool:
        found = {}
        if "test_delta" in asked:
            found["delta"] = pool.submit(_play, "delta", folder / "delta")
        if "test_hudi" in asked and matrix.find_python(OLD.python) is not None:
            found["hudi"] = pool.submit(_play, "hudi", folder / "hudi", OLD)
        yield found


def _check(steps: list[Step], played: Played) -> None:
    lines = {
        step.name: wrong(step, played.of(step.name), played.steps[step.name]) for step in steps
    }
    lines = {name: found for name, found in lines.items() if found}
    assert not lines, json.dumps(lines, indent=1)
    assert "lineage:" not in played.told.error, "faults of our own"
    events = played.told.events
    datasets = {
        one["name"] for e in events for one in (*e.get("inputs", []), *e.get("outputs", []))
    }
    assert not [name for name in datasets if any(log in name for log in LOGS)]
    check_lives(events)
    check_valid(events)


def test_delta(played: dict[str, Future[Played]]) -> None:
    found = played["delta"].result()
    _check(delta.step.all, found)
    # What Delta reads of its own log, and what it reads again, is not counted.
    assert found.rows("insert_into", "lake/orders") == 2
    assert found.rows("merge_by_clause", "lake/orders") == 2


def test_hudi(played: dict[str, Future[Played]]) -> None:
    if "hudi" not in played:
        pytest.skip(f"no Python {OLD.python} on this machine")
    if find_java().major != 17:
        pytest.skip(f"Spark {OLD.spark} needs Java 17")
    found = played["hudi"].result()
    _check(hudi.step.all, found)
    assert found.rows("insert_into", "lake/orders") == 2
