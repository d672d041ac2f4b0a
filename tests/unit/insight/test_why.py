"""Causes upstream of a dataset: in order, with the way they take and what changed before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import (
    CauseKind,
    JobProblem,
    JobStatus,
    ObservedChange,
    Signal,
    last_change,
    why,
)
from headwater.lineage.lifecycle import State
from headwater.lineage.schema import Field, Schema
from tests.properties import examples

from .nodes import Node, dataset, job
from .test_freshness import CHAIN, MINUTE, NOW, RUNNING, Known

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.lineage.graph import Edge

RAW, BRONZE, SILVER = map(dataset, ("raw", "bronze", "silver"))
FAILED = JobStatus(State.FAILED, NOW - 30 * MINUTE)
LATE = JobStatus(State.COMPLETED, None, NOW - 45 * MINUTE, 10 * MINUTE)


class Observed(Known):
    """A graph on which signals and changes were observed."""

    def __init__(self, edges: list[tuple[Node, Node]], **known: JobStatus) -> None:
        super().__init__(edges, **known)
        self.seen: dict[Node, list[Signal]] = {}
        self.changed: dict[Node, list[ObservedChange]] = {}

    def signals(self, nodes: Collection[Node], since: int) -> dict[Node, list[Signal]]:
        return {node: self.seen[node] for node in nodes if node in self.seen}

    def changes(
        self, nodes: Collection[Node], since: int, until: int, edges: Collection[Edge[Node]]
    ) -> dict[Node, list[ObservedChange]]:
        assert set(edges) <= set(CHAIN) or self.changed == {}
        return {
            node: [one for one in self.changed.get(node, ()) if since <= one.time <= until]
            for node in nodes
        }


def test_nothing_is_wrong_upstream() -> None:
    found = why(Observed(CHAIN, ingest=RUNNING, clean=RUNNING), SILVER, NOW)
    assert (found.freshness.verdict, found.reasons) == ("live", ())


def test_a_changed_schema_is_no_cause_while_nothing_is_wrong() -> None:
    change = Signal(CauseKind.SCHEMA, NOW - MINUTE, "id was removed")
    paused = JobStatus(State.COMPLETED, NOW - MINUTE, None, None, True, JobProblem.PAUSED)
    for ingest, kinds in ((RUNNING, []), (paused, [CauseKind.PAUSED])):
        graph = Observed(CHAIN, ingest=ingest, clean=RUNNING)
        graph.seen = {BRONZE: [change], RAW: [change]}
        found = why(graph, SILVER, NOW)
        assert [one.kind for one in found.reasons] == kinds
        assert found.recent == ((RAW, ObservedChange(NOW - MINUTE, "id was removed")),)
    graph = Observed(CHAIN, ingest=FAILED, clean=RUNNING)
    # The job failed half an hour ago: what changed before explains it, what changed since does not.
    graph.seen = {RAW: [change, Signal(CauseKind.SCHEMA, NOW - 31 * MINUTE, "x was removed")]}
    found = why(graph, SILVER, NOW)
    told = [(one.kind, one.detail) for one in found.reasons]
    assert told == [(CauseKind.FAILED, ""), (CauseKind.SCHEMA, "x was removed")]
    assert found.recent == ()


def test_a_cause_has_its_way_and_what_changed_shortly_before() -> None:
    graph = Observed(CHAIN, ingest=FAILED, clean=RUNNING)
    old = ObservedChange(NOW - 200 * MINUTE, "long ago")
    dropped = ObservedChange(NOW - 40 * MINUTE, "schema: price was removed")
    graph.changed = {RAW: [dropped, old], job("elsewhere"): [dropped]}
    (reason,) = why(graph, SILVER, NOW).reasons
    assert (reason.node, reason.kind, reason.since) == (
        job("ingest"),
        CauseKind.FAILED,
        NOW - 30 * MINUTE,
    )
    assert reason.path == (job("ingest"), BRONZE, job("clean"), SILVER)
    assert reason.changes == ((RAW, dropped),)


def test_causes_come_roots_first_then_by_gravity_then_by_distance() -> None:
    graph = Observed(CHAIN, ingest=FAILED, clean=LATE)
    graph.seen = {
        BRONZE: [Signal(CauseKind.QUALITY, NOW, "not null id")],
        RAW: [Signal(CauseKind.SCHEMA, NOW - MINUTE, "id was removed")],
        job("ingest"): [Signal(CauseKind.LAGGING, NOW, "9 records behind")],
    }
    found = why(graph, SILVER, NOW)
    assert found.freshness.verdict == "stale"
    assert [(one.kind.value, one.node.name, one.root) for one in found.reasons] == [
        ("failed", "ingest", True),
        ("lagging", "ingest", True),
        ("schema", "raw", True),
        ("quality", "bronze", True),
        ("late", "clean", False),
    ]


def test_a_schema_change_is_no_change_before_itself() -> None:
    graph = Observed(CHAIN, ingest=FAILED, clean=RUNNING)
    at, before = NOW - 31 * MINUTE, ObservedChange(NOW - 32 * MINUTE, "schema: y was added (int)")
    graph.seen = {RAW: [Signal(CauseKind.SCHEMA, at, "x was removed")]}
    graph.changed = {RAW: [ObservedChange(at, "schema: x was removed"), before]}
    failed, schema = why(graph, SILVER, NOW).reasons
    assert [change.text for _, change in failed.changes] == [
        "schema: x was removed",
        "schema: y was added (int)",
    ]
    assert schema.changes == ((RAW, before),)


def test_a_schema_change_that_came_along_is_told_where_it_began() -> None:
    graph = Observed(CHAIN, ingest=RUNNING, clean=FAILED)
    change = Signal(CauseKind.SCHEMA, NOW - 31 * MINUTE, "id was removed")
    own = Signal(CauseKind.SCHEMA, NOW - 32 * MINUTE, "x was removed")
    graph.seen = {BRONZE: [change, own], RAW: [change]}
    found = [(one.node, one.detail, one.root) for one in why(graph, SILVER, NOW).reasons]
    assert found[1:] == [
        (BRONZE, "x was removed", True),
        (RAW, "id was removed", True),
        (BRONZE, "id was removed", False),
    ]


def test_what_somebody_paused_is_planned_and_comes_last() -> None:
    paused = JobStatus(State.COMPLETED, NOW - MINUTE, None, None, True, JobProblem.PAUSED)
    found = why(Observed(CHAIN, ingest=paused, clean=LATE), SILVER, NOW)
    assert [(one.kind, one.kind.planned) for one in found.reasons] == [
        (CauseKind.LATE, False),
        (CauseKind.PAUSED, True),
    ]


def test_the_last_change_of_a_column() -> None:
    def schema(**fields: str) -> Schema:
        return Schema(tuple(Field(name, kind) for name, kind in fields.items()))

    versions = [
        (3, schema(id="long", price="double", x="int")),
        (2, schema(id="long", price="double")),
        (1, schema(id="int", price="double")),
    ]
    changed = last_change(versions, "id")
    assert changed is not None
    assert (changed[0], changed[1].kind) == (2, "type")
    assert last_change(versions, "price") is None


names = st.sampled_from("abcd")
edges = st.lists(
    st.one_of(
        st.tuples(names.map(dataset), names.map(job)), st.tuples(names.map(job), names.map(dataset))
    ),
    max_size=16,
)
statuses = st.dictionaries(names, st.sampled_from([FAILED, LATE, RUNNING]))


@examples(150)
@given(
    edges,
    statuses,
    st.dictionaries(names.map(dataset), st.just([Signal(CauseKind.QUALITY, 1, "x")])),
)
def test_every_trouble_that_leads_to_the_dataset_is_told_with_a_true_way(
    drawn: list[tuple[Node, Node]],
    known: dict[str, JobStatus],
    seen: dict[Node, list[Signal]],
) -> None:
    graph = Observed(drawn, **known)
    graph.seen = seen
    start = dataset("a")
    reached = {start}
    for _ in drawn:
        reached |= {near for near, far in drawn if far in reached}
    found = why(graph, start, NOW)
    wrong = {job(name) for name, status in known.items() if status is not RUNNING}
    assert {one.node for one in found.reasons} == reached & (wrong | seen.keys())
    for one in found.reasons:
        assert (one.path[0], one.path[-1]) == (one.node, start)
        assert all(step in drawn for step in zip(one.path, one.path[1:], strict=False))
