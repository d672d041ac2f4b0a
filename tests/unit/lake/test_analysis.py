"""What lies behind each dataset and column is what the server's own walk finds, cycles and aliases included."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import downstream
from headwater.lake import reach
from headwater.lake.analysis import EstateRow, Part, analyse_component, join_estate
from headwater.lake.projection import Projector
from headwater.lake.records import job_node
from headwater.lake.tables import (
    ALIASES,
    ANALYSED_COLUMNS,
    ANALYSED_DATASETS,
    COLUMN_EDGES,
    DATASETS,
    EDGES,
    RUNS,
    SCHEMAS,
)
from headwater.lineage.graph import Direction, walk
from headwater.server.store.read.column_graph import ColumnGraph
from headwater.server.store.view import Bodies, View
from tests.properties import examples

from .estates import BASE, estate
from .test_projection import projected, served

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Rows = dict[str, list[dict[str, Any]]]
EVER = 10**9


@pytest.fixture(scope="module")
def projector() -> Iterator[Projector]:
    found = Projector()
    yield found
    found.close()


def told(rows: Rows) -> Iterator[EstateRow]:
    """What `pipelines/lake_analyse.py` selects of the derived tables."""
    for row in rows[DATASETS.name]:
        yield EstateRow(
            "dataset", row["dataset_namespace"], row["dataset_name"], number=row["first"]
        )
    for row in rows[ALIASES.name]:
        names = [row[name] for name in ALIASES.names[2:]]
        if row["kind"] == "dataset":
            yield EstateRow("alias", *names)
        elif row["kind"] == "namespace":
            yield EstateRow("cluster", names[0], names[2])
        else:
            yield EstateRow("task", job_node(*names[:2]), job_node(*names[2:]))
    for row in (*rows[RUNS.name], *rows[EDGES.name]):
        yield EstateRow("job", row["node"])
    for row in rows[EDGES.name]:
        named = (row["node"], row["dataset_namespace"], row["dataset_name"])
        yield EstateRow({"input": "reads", "output": "writes"}[row["direction"]], *named)
        if row["valid_to"] is None:
            yield EstateRow(row["direction"], *named)
    for row in rows[COLUMN_EDGES.name]:
        if row["valid_to"] is None:
            yield EstateRow("source", row["node"], row["source_namespace"], row["source_name"])


class Numbered(NamedTuple):
    """What `join_estate` found: datasets and jobs by number."""

    datasets: dict[tuple[str, str], int]
    jobs: dict[str, int]

    def of(self, row: dict[str, Any], side: str = "dataset") -> int | None:
        return self.datasets.get((row[f"{side}_namespace"], row[f"{side}_name"]))


def edge_parts(rows: Rows, by: Numbered, since: int) -> Iterator[Part]:
    held = [row for row in rows[EDGES.name] if in_period(row, since)]
    for row in held:
        dataset = by.of(row)
        assert dataset is not None
        if row["valid_to"] is None:
            job, stated = by.jobs[row["node"]], row["stated"]
            yield Part(row["direction"], dataset, job, third=int(stated is not None))
            for name in json.loads(stated or "[]"):
                if (source := by.datasets.get(tuple(name))) is not None:
                    yield Part("stated", source, dataset, job)
        if row["direction"] == "output":
            yield Part("written", dataset)
        else:
            yield Part("read", dataset, third=not says_columns(rows, row["node"], since))


def other_parts(rows: Rows, by: Numbered, since: int) -> Iterator[Part]:
    for row in rows[COLUMN_EDGES.name]:
        source, target = by.of(row, "source"), by.of(row)
        if source is None or target is None:
            continue
        if row["valid_to"] is None:
            job, fields = by.jobs[row["node"]], (row["source_field"], row["field"])
            yield Part("map", source, target, job, *fields)
        elif row["valid_to"] > since:
            yield Part("used", source, text=row["source_field"])
    for row in rows[SCHEMAS.name]:
        if row["valid_to"] is None:
            yield Part("schema", by.of(row) or 0, third=row["valid_from"], text=row["fields"])


def analysed(rows: Rows, since: int) -> tuple[Rows, Numbered]:
    """The tables of the analysis, and the numbers of datasets and jobs."""
    members = list(join_estate(told(rows)))
    datasets = [m for m in members if m.kind == "dataset"]
    by = Numbered(
        {(m.namespace, m.name): m.number for m in datasets},
        {m.namespace: m.number for m in members if m.kind == "job"},
    )
    component = {m.number: m.component for m in datasets}
    parts: dict[int, list[Part]] = defaultdict(list)
    named = (Part("dataset", m.number, text=m.namespace, other=m.name) for m in datasets if m.leads)
    for part in (*named, *edge_parts(rows, by, since), *other_parts(rows, by, since)):
        parts[component[part.first]].append(part)
    found: Rows = {ANALYSED_DATASETS.name: [], ANALYSED_COLUMNS.name: []}
    for some in parts.values():
        for table, row in analyse_component(some):
            found[table].append(row)
    return found, by


def in_period(row: dict[str, Any], since: int) -> bool:
    return row["valid_to"] is None or row["valid_to"] > since


def says_columns(rows: Rows, node: str, since: int) -> bool:
    """Whether a job reports, of all that it writes, which columns that is made of."""
    held = {
        table: [r for r in rows[table] if r["node"] == node and in_period(r, since)]
        for table in (EDGES.name, COLUMN_EDGES.name)
    }
    written = {r["dataset_name"] for r in held[EDGES.name] if r["direction"] == "output"}
    return bool(written) and written <= {r["dataset_name"] for r in held[COLUMN_EDGES.name]}


def by_name(rows: Iterable[dict[str, Any]], *more: str) -> dict[tuple[str, ...], dict[str, Any]]:
    return {
        (r["dataset_namespace"], r["dataset_name"], *(r[name] for name in more)): r for r in rows
    }


def moved(view: View) -> bool:
    """Whether two datasets declare one symlink and the server, by their times, keeps them apart."""
    rows = view.all("SELECT id, root FROM dataset")
    roots: dict[int, int] = {row[0]: row[1] for row in rows}
    found = view.datasets(roots).values()
    return any(roots[o] != roots[d.id] for d in found for o in d.state.rivals)


@examples(300)
@given(estate())
def test_reach_is_that_of_the_servers_walk(projector: Projector, events: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(events, folder)
        found, _ = analysed(projected(projector, nodes), 0)
        datasets = by_name(found[ANALYSED_DATASETS.name])
        columns = by_name(found[ANALYSED_COLUMNS.name], "field")
        view = View(store.connection, Bodies(store.packer))
        if moved(view):
            store.close()
            return
        graph, column_graph = view.graph(), ColumnGraph(view)
        stored = view.datasets(row[0] for row in view.all("SELECT id FROM dataset"))
        roots = {one.root for one in stored.values()}
        assert len(datasets) == len(roots)
        for root in roots:
            names = [(d.space, d.name) for d in stored.values() if d.root == root]
            (name,) = (one for one in names if one in datasets)
            behind, _ = downstream(graph, [("dataset", root)], limit=EVER)
            kinds = [kind for kind, _ in behind]
            row = datasets[name]
            expected = (kinds.count("job"), kinds.count("dataset"))
            assert (row["jobs"], row["datasets"]) == expected, name
            for (*of, field), one in columns.items():
                if tuple(of) != name:
                    continue
                start = (root, field)
                ahead = walk(column_graph, [start], Direction.DOWNSTREAM, depth=EVER, limit=EVER)
                assert one["columns"] == len(ahead.distance) - 1, (name, field)
        store.close()


@examples(300)
@given(estate(), st.integers(0, 40))
def test_unused_is_what_no_job_reads_in_the_period(
    projector: Projector, events: list[bytes], minute: int
) -> None:
    since = (BASE + minute * 60) * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(events, folder)
        store.close()
    rows = projected(projector, nodes)
    found, by = analysed(rows, since)
    edges = [e for e in rows[EDGES.name] if in_period(e, since)]
    maps = [e for e in rows[COLUMN_EDGES.name] if in_period(e, since)]
    for row in found[ANALYSED_DATASETS.name]:
        me = by.of(row)
        sides = {e["direction"] for e in edges if by.of(e) == me}
        ended = any(by.of(e, "source") == me and e["valid_to"] is not None for e in maps)
        assert row["unused"] == (sides == {"output"} and not ended)
        readers = {e["node"] for e in edges if by.of(e) == me and e["direction"] == "input"}
        blind = not all(says_columns(rows, node, since) for node in readers)
        used = {e["source_field"] for e in maps if by.of(e, "source") == me}
        for column in (c for c in found[ANALYSED_COLUMNS.name] if by.of(c) == me):
            touched = bool(sides) or ended
            expected = False if column["field"] in used or not touched else None if blind else True
            assert column["unused"] is expected


@examples(300)
@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    st.sampled_from([1, 3, 4_096]),
)
def test_labels_are_counted_in_blocks_of_any_size(edges: list[tuple[int, int]], block: int) -> None:
    ahead: list[list[int]] = [[far for near, far in edges if near == node] for node in range(12)]
    labels = [{node, node % 5} for node in range(12)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reach, "BLOCK", block)
        (found,) = reach.reached(ahead, [labels])
    for node in range(12):
        met, waiting = {node}, [node]
        while waiting:
            fresh = set(ahead[waiting.pop()]) - met
            met |= fresh
            waiting += fresh
        assert found[node] == len(set().union(*(labels[one] for one in met)))


def test_a_long_chain_and_a_great_ring_need_no_recursion() -> None:
    count = 20_000
    chain = [[node + 1] if node + 1 < count else [] for node in range(count)]
    (found,) = reach.reached(chain, [[(node,) for node in range(count)]])
    assert found == list(range(count, 0, -1))
    (found,) = reach.reached([*chain[:-1], [0]], [[(node,) for node in range(count)]])
    assert set(found) == {count}


def test_a_table_that_moved_is_not_one_with_what_it_was_made_of() -> None:
    rows = [
        EstateRow("dataset", "s3", "old", number=1),
        EstateRow("dataset", "s3", "new", number=2),
        EstateRow("dataset", "hive", "t", number=3),
        EstateRow("alias", "hive", "t", "s3", "old"),
        EstateRow("alias", "hive", "t", "s3", "new"),
    ]
    one = {m.number for m in join_estate(rows)}
    assert len(one) == 1
    copied = [
        EstateRow("reads", "job:j:copy", "s3", "old"),
        EstateRow("writes", "job:j:copy", "s3", "new"),
    ]
    found = {m.name: m.number for m in join_estate([*rows, *copied])}
    assert found["t"] == found["new"] != found["old"]


def test_a_task_job_counts_as_its_parent_if_there_is_one() -> None:
    def numbers(*more: EstateRow) -> set[int]:
        rows = [
            EstateRow("dataset", "s3", "t"), EstateRow("output", "job:j:a", "s3", "t"),
            EstateRow("output", "job:j:b", "s3", "t"), EstateRow("task", "job:j:a", "job:j:whole"),
            EstateRow("task", "job:j:b", "job:j:whole"), *more,
        ]  # fmt: skip
        return {m.number for m in join_estate(rows) if m.kind == "job"}

    assert len(numbers()) == 2
    assert len(numbers(EstateRow("job", "job:j:whole"))) == 1


def test_columns_that_lead_out_of_a_component_while_it_is_read_do_not_stop_it() -> None:
    parts = [
        Part("dataset", 0, text="s3", other="a"),
        Part("schema", 0, third=1, text='[{"name":"x"}]'),
        Part("map", 0, 5, 1, "x", "y"),
    ]
    rows = {(table, row["dataset_name"]): row for table, row in analyse_component(parts)}
    assert rows[ANALYSED_COLUMNS.name, "a"]["columns"] == 0
    assert rows[ANALYSED_DATASETS.name, "a"]["columns"] == 1
