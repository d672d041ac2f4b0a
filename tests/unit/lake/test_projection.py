"""The rows of the derived tables are what the server has, whatever arrives in whatever order."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given

from headwater.lake.projection import LogRecord, Projector
from headwater.lake.records import job_node
from headwater.lake.tables import COLUMN_EDGES, DERIVED, EDGES, OWNERS, RUNS, SCHEMAS
from headwater.lineage.openlineage.events import from_micros
from headwater.server.store import Store, open_store
from headwater.server.store.entities import to_run
from headwater.server.store.read.column_graph import ColumnGraph, column_edges
from headwater.server.store.view import Bodies, View
from headwater.server.store.write.commands import NoSuchError
from tests.properties import examples

from .estates import BASE, commanded_estate, estate, facet, moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .estates import Arrived

MOMENTS = [(BASE + minute * 60 + 30) * 1_000_000 for minute in range(-1, 42, 3)]


@pytest.fixture(scope="module")
def projector() -> Iterator[Projector]:
    found = Projector()
    yield found
    found.close()


def served(
    arrivals: Sequence[bytes | dict[str, Any]], folder: str
) -> tuple[Store, dict[str, list[LogRecord]]]:
    """A server's store of these events and commands, and its log by node; the empty one has the rest."""
    store = open_store(f"sqlite:///{folder}/a.db")
    for one in arrivals:
        if isinstance(one, bytes):
            assert store.append([one])[0].error is None
        else:
            with suppress(NoSuchError):
                store.perform(one)
    nodes: dict[str, list[LogRecord]] = defaultdict(list)
    for kind, at, dictionary, body, *job in store.connection.all(
        "SELECT l.kind, l.at, l.dictionary, l.body, n.name, j.name FROM log l"
        " LEFT JOIN job j ON j.id = l.job LEFT JOIN namespace n ON n.id = j.namespace ORDER BY l.seq"
    ):
        raw = store.packer.unpack(dictionary, bytes(body))
        read = msgspec.json.decode(raw)
        if job[1] is not None:
            node = job_node(*job)
        else:
            dataset = read.get("dataset") or {}
            node = "" if kind else f"dataset:{dataset['namespace']}:{dataset['name']}"
        nodes[node].append(LogRecord(kind, at, raw))
    return store, nodes


def projected(projector: Projector, nodes: dict[str, list[LogRecord]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {table.name: [] for table in DERIVED}
    for node, records in nodes.items():
        # Commands of no node are not derived from.
        for name, row in projector.rows(node, records) if node else ():
            found[name].append(row)
    for table in DERIVED:
        assert all(tuple(sorted(row)) == tuple(sorted(table.names)) for row in found[table.name])
        keys = [tuple(row[name] for name in ("node", *table.key)) for row in found[table.name]]
        assert len(keys) == len(set(keys)), f"{table.name}: a key stands twice"
    return found


@examples(200)
@given(commanded_estate())
def test_edges_and_runs_are_the_servers(projector: Projector, arrivals: list[Arrived]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        rows = projected(projector, nodes)
        sql = (
            "SELECT n.name, j.name, m.name, d.name, e.direction, e.since, e.until FROM edge e"
            " JOIN job j ON j.id = e.job JOIN namespace n ON n.id = j.namespace"
            " JOIN dataset d ON d.id = e.dataset JOIN namespace m ON m.id = d.namespace"
        )
        edges = [
            (
                row["job_namespace"], row["job_name"], row["dataset_namespace"], row["dataset_name"],
                ("input", "output").index(row["direction"]), row["valid_from"], row["valid_to"],
            )
            for row in rows[EDGES.name]
        ]  # fmt: skip
        assert sorted(edges, key=repr) == sorted(store.connection.all(sql), key=repr)
        runs = [to_run(row) for row in store.connection.all("SELECT id, uuid, job, state FROM run")]
        assert sorted((row["run"].replace("-", ""), row["state"], row["ended"])
                      for row in rows[RUNS.name]) == sorted(
            (run.uuid.hex(), run.state.life.state.value, run.state.life.end) for run in runs
        )  # fmt: skip
        store.close()


@examples(200)
@given(estate())
def test_columns_at_any_moment_are_the_servers(
    projector: Projector, arrivals: list[Arrived]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        rows = projected(projector, nodes)[COLUMN_EDGES.name]
        view = View(store.connection, Bodies(store.packer))
        names: dict[int, str] = dict(store.connection.all("SELECT id, name FROM dataset"))
        jobs: dict[int, str] = dict(store.connection.all("SELECT id, name FROM job"))
        for at in MOMENTS:
            held = ColumnGraph(view, at).held(names)
            bodies = view.bodies(number for _, _, number in held)
            expected = {
                (jobs[job], edge.name, edge.field, names[dataset], edge.output)
                for dataset, job, number in held
                if job
                for edge in column_edges(bodies[number])
            }
            found = [
                (row["job_name"], row["source_name"], row["source_field"], row["dataset_name"], row["field"])
                for row in rows
                if row["valid_from"] <= at and (row["valid_to"] is None or at < row["valid_to"])
            ]  # fmt: skip
            assert len(found) == len(set(found))
            assert set(found) == expected, from_micros(at)
        store.close()


def made(job: str, second: int, *columns: str, kind: str = "COMPLETE", run: int = 1) -> bytes:
    fields = [{"name": column, "type": "int"} for column in columns]
    output = {"namespace": "s3://lake", "name": "t", "facets": {"schema": facet(fields=fields)}}
    return msgspec.json.encode(
        {
            "eventType": kind,
            "eventTime": moment(second),
            "producer": "p",
            "schemaURL": "s",
            "run": {"runId": f"00000000-0000-4000-8000-{run:012d}"},
            "job": {"namespace": "jobs", "name": job},
            "outputs": [output] if columns else [],
        }
    )


def rows_of(projector: Projector, table: str, *bodies: bytes) -> list[dict[str, Any]]:
    at = (BASE + 10_000) * 1_000_000
    records = [LogRecord(0, at, body) for body in bodies]
    return [row for name, row in projector.rows("job:jobs:load", records) if name == table]


def test_an_edge_that_went_and_came_back_is_two_rows(projector: Projector) -> None:
    rows = rows_of(
        projector, EDGES.name, made("load", 0, "a", run=1), made("load", 10, run=2), made("load", 20, "a", run=3)
    )  # fmt: skip
    seconds = [
        tuple(
            None if t is None else t // 1_000_000 - BASE for t in (r["valid_from"], r["valid_to"])
        )
        for r in rows
    ]
    # A run without datasets says nothing: only one that names others ends an edge.
    assert seconds == [(0, None)]
    other = msgspec.json.decode(made("load", 10, "a", run=2))
    other["outputs"][0]["name"] = "u"
    rows = rows_of(
        projector, EDGES.name, made("load", 0, "a", run=1), msgspec.json.encode(other), made("load", 20, "a", run=3)
    )  # fmt: skip
    spans = sorted(
        (r["dataset_name"], r["valid_from"] // 1_000_000 - BASE, r["valid_to"] and r["valid_to"] // 1_000_000 - BASE)
        for r in rows
    )  # fmt: skip
    assert spans == [("t", 0, 10), ("t", 20, None), ("u", 10, 20)]


def test_a_schema_is_in_force_until_the_next_one(projector: Projector) -> None:
    bodies = [made("load", 20, "a", "b", run=2), made("load", 0, "a", run=1)]
    rows = sorted(rows_of(projector, SCHEMAS.name, *bodies), key=lambda r: int(r["valid_from"]))
    names = [[field["name"] for field in msgspec.json.decode(row["fields"])] for row in rows]
    assert names == [["a"], ["a", "b"]]
    assert rows[0]["valid_to"] == rows[1]["valid_from"] == (BASE + 20) * 1_000_000
    assert rows[1]["valid_to"] is None


def test_a_command_ends_a_silent_run(projector: Projector) -> None:
    uuid = "00000000-0000-4000-8000-000000000001"
    end = (BASE + 600) * 1_000_000
    command = {"command": "run", "run": uuid, "inferred": True, "time": end, "at": end, "id": "x"}
    records = [
        LogRecord(0, (BASE + 1) * 1_000_000, made("load", 0, "a", kind="START")),
        LogRecord(1, end, msgspec.json.encode(command)),
        LogRecord(1, end, msgspec.json.encode({**command, "run": uuid.replace("1", "7")})),
    ]
    (run,) = [row for name, row in projector.rows("n", records) if name == RUNS.name]
    assert (run["state"], run["ended"], run["inferred"]) == ("ABORTED", end, True)


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_the_owners_of_a_dataset_are_kept_whoever_reports_them(
    projector: Projector, side: str
) -> None:
    owned = {"ownership": facet(owners=[{"name": "team:shop"}])}
    event = {
        "eventTime": moment(60), "eventType": "COMPLETE", "producer": "urn:test",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "01890000-0000-7000-8000-000000000001"},
        "job": {"namespace": "shop", "name": "j"},
        side: [{"namespace": "s3://lake", "name": "a", "facets": owned}],
    }  # fmt: skip
    record = LogRecord(0, BASE * 1_000_000, msgspec.json.encode(event))
    rows = [row for table, row in projector.rows("job:shop:j", [record]) if table == OWNERS.name]
    assert [(row["kind"], row["name"], row["owner"]) for row in rows] == [
        ("dataset", "a", "team:shop")
    ]
