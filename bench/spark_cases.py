"""Who tells what: Headwater and the OpenLineage jar on the same jobs, judged by the same truth.

`python bench/spark_cases.py [--only NAME …] [--write] [--json]`

Every case of the tests runs once, in a session that both listen to. What each emitted is held
against the truth that was written by hand. Headwater must report what a case is about as one run; of
several runs of the jar, the best one counts.
`--write` keeps the result of all cases for the docs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench._results import keep  # noqa: E402
from tests.integration.spark.cases import CASES, Case  # noqa: E402
from tests.integration.spark.cases.stage import Stage  # noqa: E402
from tests.integration.spark.cases.truth import Truth, read, writers  # noqa: E402

import headwater.spark  # noqa: E402
from headwater.lab.clients import CatalogClient, KafkaClient, PostgresClient, S3Client  # noqa: E402
from headwater.lab.files.jars import peer_jar, pipeline_jars  # noqa: E402
from headwater.lab.lab import Lab  # noqa: E402
from headwater.lineage.naming import DatasetName  # noqa: E402
from headwater.spark.driver import config  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable

LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
PARTS = ("datasets", "columns", "rows")
SERVICES = ["kafka", "s3", "catalog", "postgres"]
Event = dict[str, Any]


class Verdict(NamedTuple):
    """How far a teller got: exact, sources (right, but not how they were used), wrong or none."""

    datasets: str
    columns: str
    rows: str

    @property
    def score(self) -> int:
        worth = {"exact": 3, "sources": 2, "none": 1, "wrong": 0}
        return sum(worth[word] * weight for word, weight in zip(self, (100, 10, 1), strict=True))


class Log:
    """A file of events that is read from where it was left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0

    def take(self) -> list[Event]:
        if not self.path.exists():
            return []
        with self.path.open() as file:
            file.seek(self._at)
            text = file.read()
            self._at = file.tell()
        return [json.loads(line) for line in text.splitlines() if line]


def reported(events: Iterable[Event], names: dict[DatasetName, str]) -> list[Truth]:
    """What the events of each run report together, in the form of the truth."""
    runs: dict[str, Truth] = {}
    for event in events:
        named = event["job"]["name"].split(".")
        truth = runs.setdefault(
            event["run"]["runId"], Truth(operation=named[1] if len(named) > 2 else "")
        )
        truth.inputs |= {_short(one, names) for one in event.get("inputs") or ()}
        truth.outputs |= {_short(one, names) for one in event.get("outputs") or ()}
        for output in event.get("outputs") or ():
            facet = (output.get("facets") or {}).get("columnLineage") or {}
            for column, sources in (facet.get("fields") or {}).items():
                truth.columns[column] = _facts(sources.get("inputFields") or (), names)
            if rows := facet.get("dataset"):
                truth.rows = _facts(rows, names)
    return list(runs.values())


def _facts(sources: Iterable[dict[str, Any]], names: dict[DatasetName, str]) -> frozenset[str]:
    return frozenset(
        f"{_short(source, names)}.{source['field']} {way.get('subtype') or way.get('type')}"
        + (" masked" if way.get("masking") else "")
        for source in sources
        for way in source.get("transformations") or [{"subtype": "IDENTITY"}]
    )


def _short(dataset: dict[str, Any], names: dict[DatasetName, str]) -> str:
    name = DatasetName(dataset["namespace"], dataset["name"])
    return names.get(name) or names.get(DatasetName(name.namespace, f"/{name.name}")) or str(name)


def judge(truth: Truth, seen: Truth) -> Verdict:
    datasets = "exact"
    if (truth.inputs, truth.outputs) != (seen.inputs, seen.outputs):
        datasets = "wrong" if seen.inputs or seen.outputs else "none"
    # A column that comes from no column need not be reported.
    should = {name: facts for name, facts in truth.columns.items() if facts}
    found = {name: facts for name, facts in seen.columns.items() if facts}
    columns = "exact"
    if should != found:
        same = {n: _fields(f) for n, f in should.items()} == {
            n: _fields(f) for n, f in found.items()
        }
        columns = "sources" if same else ("wrong" if found else "none")
    rows = "exact"
    if truth.rows != seen.rows:
        same = _fields(truth.rows) == _fields(seen.rows)
        rows = "sources" if same else ("wrong" if seen.rows else "none")
    return Verdict(datasets, columns, rows)


def _fields(facts: frozenset[str]) -> frozenset[str]:
    return frozenset(fact.split(" ")[0] for fact in facts)


def best(truth: Truth, events: list[Event], names: dict[DatasetName, str]) -> Verdict:
    runs = reported(events, names) or [Truth()]
    return max((judge(truth, seen) for seen in runs), key=lambda verdict: verdict.score)


def only(truth: Truth, events: list[Event], names: dict[DatasetName, str]) -> Verdict:
    """The verdict about the one run that does what the truth is about; more of them are wrong."""
    runs = reported(events, names)
    if not truth.outputs:
        return best(truth, events, names)
    found = writers(truth, runs)
    if len(found) > 1:
        return Verdict("wrong", "wrong", "wrong")
    return judge(truth, found[0] if found else Truth())


def play(stage: Stage, case: Case) -> dict[str, str]:
    stage.case = case.name
    made = case.job(stage)
    if case.stream:
        if case.name == "rate_to_memory":
            made.stop()
        made.awaitTermination(60)
    return made if isinstance(made, dict) else {}


def run(work: Path, lab: Lab, cases: list[Case]) -> list[dict[str, Any]]:
    # Workers must find the same packages as the driver.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    used = KafkaClient(lab, "kafka"), CatalogClient(lab, "catalog"), S3Client(lab, "s3")
    settings = {
        "spark.jars": "",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, [*pipeline_jars(), peer_jar()])),
        "spark.extraListeners": LISTENER,
        "spark.openlineage.columnLineage.datasetLineageEnabled": "true",
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(work / "jar.ndjson"),
    }
    stage = Stage(work, *used, PostgresClient(lab, "postgres"), settings)
    stage.drain()
    # Spark's conf says where the jar's events go; ours are to go elsewhere.
    config.transport = lambda own: {}  # noqa: ARG005
    os.environ |= {
        "HEADWATER_STATE_DIR": str(work / "state"),
        "OPENLINEAGE__TRANSPORT__TYPE": "file",
        "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(work / "ours.ndjson"),
        "OPENLINEAGE__TRANSPORT__APPEND": "true",
    }
    ours, peers = Log(work / "ours.ndjson"), Log(work / "jar.ndjson")
    headwater.spark.attach(stage.spark)
    rows = []
    for case in cases:
        settle(stage)
        ours.take(), peers.take()
        words = play(stage, case)
        settle(stage)
        truth = read(case.truth.format(**words) if words else case.truth)
        if case.stream:
            truth.operation = ""  # the job of a query is not called by it
        names = stage.names
        verdicts = {
            "headwater": only(truth, ours.take(), names),
            "jar": best(truth, peers.take(), names),
        }
        asks = {"columns": any(truth.columns.values()), "rows": bool(truth.rows)}
        rows.append({
            "case": case.name,
            "asks": [part for part in PARTS if asks.get(part, True)],
            **{who: verdict._asdict() for who, verdict in verdicts.items()},
        })  # fmt: skip
    headwater.spark.detach(stage.spark)
    stage.spark.stop()
    return rows


def settle(stage: Stage) -> None:
    stage.drain()
    headwater.spark.flush(30)


def totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for part in PARTS:
        asked = [row for row in rows if part in row["asks"]]
        counted = {
            who: dict(Counter(row[who][part] for row in asked)) for who in ("headwater", "jar")
        }
        found.append({"part": part, "cases": len(asked), **counted})
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", nargs="*", help="names of cases")
    arguments.add_argument("--lab", type=Path, help="a lab that is up already")
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    if given.only and given.write:
        arguments.error("--write keeps one run of all cases")
    cases = [case for case in CASES if not given.only or case.name in given.only]
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        work = Path(folder)
        lab = Lab(given.lab or work / "lab")
        lab.up(SERVICES)
        try:
            rows = run(work, lab, cases)
        finally:
            if given.lab is None:
                lab.down()
    if given.write:
        keep("spark_cases", cases=rows)
    if given.json:
        sys.stdout.write(json.dumps({"totals": totals(rows), "cases": rows}, indent=1) + "\n")
        return
    table = Table(
        "", "cases", "Headwater exact", "jar exact", "jar: sources right", "jar wrong", "jar none"
    )
    for row in totals(rows):
        jar = [str(row["jar"].get(word, 0)) for word in ("exact", "sources", "wrong", "none")]
        table.add_row(row["part"], str(row["cases"]), str(row["headwater"].get("exact", 0)), *jar)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
