"""What jobs do with the columns they read: the stored jobs as `ColumnReaders`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.insight import ColumnUse, Passage
from headwater.lineage.graph import NodeKind
from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.evidence_facet import FACET as EVIDENCE
from headwater.lineage.openlineage.evidence_facet import read_evidence
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, decode_job, decode_run
from headwater.server.store.read.column_graph import column_edges
from headwater.server.store.read.observed import read_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from headwater.server.store.entities import Node
    from headwater.server.store.read.output_sources import PairedSources
    from headwater.server.store.view import View

__all__ = ["StoredColumnReaders"]

JOB, DATASET = NodeKind.JOB.value, NodeKind.DATASET.value
BY_SCHEMA = ("KAFKA_CONNECT", "DEBEZIUM")
"""Integrations whose jobs hand on whole records, whatever columns those have."""
TRIMMED = "headwater_trimmed"
LOST = {"indirect columns", "columns", "datasets"}
"""Parts of an event without which a use of a column may be missing."""
UNKNOWN = "headwater_columns"
Key = tuple[str, str]


class _JobFacts(NamedTuple):
    """How a job reads, by its own facets: by pair of datasets, where they report it."""

    by_schema: bool
    trimmed: bool
    columns: dict[tuple[int, int], bool]
    named: dict[tuple[int, int], frozenset[str]]


@lru_cache(maxsize=4_096)
def _evidence(body: bytes) -> tuple[tuple[Key, Key, bool | None, frozenset[str]], ...]:
    """The pairs of a `headwater_evidence` facet: whether their columns are known, and those named."""
    return tuple(edge[:4] for edge in read_evidence(msgspec.json.decode(body)).edges)


@lru_cache(maxsize=4_096)
def _types(body: bytes) -> dict[str, str]:
    schema = read_schema(body)
    return {column.name: column.type for column in schema.columns(containers=True)}


class StoredColumnReaders:
    """Jobs and the columns they use, as their latest facets have them."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._graph = view.graph()
        self._sources = view.output_sources()
        self._columns = self._sources.columns

    def passages(self, datasets: Collection[Node]) -> Iterator[Passage[Node]]:
        """What every job that reads one of these datasets does with its columns."""
        read: dict[int, set[int]] = defaultdict(set)
        for job, dataset, _ in self._graph.of_datasets([root for _, root in datasets], INPUT):
            read[job].add(dataset)
        linked = self._columns.carrying([root for _, root in datasets])
        sources = self._sources.of_jobs({*read, *(job for job, _ in linked)})
        # A producer may list as inputs fewer datasets than its column lineage names.
        for job, dataset in linked:
            if any(dataset in output.inputs for output in sources[job].values()):
                read[job].add(dataset)
        outputs = {output for job in read for output in sources[job]}
        members = self._columns.members(outputs)
        uses = self._uses(read, members)
        unknown = self._unknown(members)
        facts = self._facts(read)
        topics = self._topics({root for _, root in datasets} | outputs)
        for job in sorted(read):
            for origin in sorted(read[job]):
                for one in self._of_pair(job, origin, sources[job], uses, unknown, facts[job]):
                    into = one.target is not None and one.target[1] in topics
                    yield replace(one, from_topic=origin in topics, to_topic=into)

    def types(self, datasets: Collection[Node]) -> dict[Node, dict[str, str]]:
        """The types of the columns of these datasets, as far as they are known."""
        found = self.view.datasets(root for _, root in datasets)
        held = {n: one.state.facets.get("schema") for n, one in found.items()}
        bodies = self.view.bodies(one[0] for one in held.values() if one)
        return {
            (DATASET, number): _types(bodies[one[0]])
            for number, one in held.items()
            if one and one[0] in bodies
        }

    @staticmethod
    def _of_pair(
        job: int,
        origin: int,
        outputs: dict[int, PairedSources],
        uses: dict[tuple[int, int], dict[int, list[ColumnUse]]],
        unknown: dict[int, tuple[str, ...]],
        facts: _JobFacts,
    ) -> Iterator[Passage[Node]]:
        fed = [output for output in sorted(outputs) if origin in outputs[output].inputs]
        if not fed:
            yield Passage((JOB, job), (DATASET, origin), None)
        for output in fed:
            pair = origin, output
            found = uses.get((job, output), {}).get(origin)
            if found is None and facts.columns.get(pair):
                found = []  # the producer knows the columns of the pair, and none is used
            if origin in outputs[output].unpaired or facts.columns.get(pair) is False:
                found = None
            yield Passage(
                (JOB, job),
                (DATASET, origin),
                (DATASET, output),
                None if found is None else tuple(found),
                unknown.get(output, ()),
                facts.trimmed,
                facts.by_schema,
                facts.named.get(pair, frozenset()),
            )

    def _uses(
        self, jobs: Iterable[int], members: dict[int, int]
    ) -> dict[tuple[int, int], dict[int, list[ColumnUse]]]:
        """By job and output: the columns of each input that enter it, or decide about its rows."""
        shown = self._sources.with_tasks(jobs)
        held = [one for one in self._columns.held(members) if one[1] in shown]
        bodies = self.view.bodies(number for _, _, number in held)
        read = {
            (dataset, job): column_edges(bodies[number])
            for dataset, job, number in held
            if number in bodies
        }
        roots = self._columns.resolve({(e.namespace, e.name) for es in read.values() for e in es})
        found: dict[tuple[int, int], dict[int, list[ColumnUse]]] = defaultdict(dict)
        for (dataset, job), edges in read.items():
            of_output = found[shown[job], members[dataset]]
            for edge in edges:
                source = roots.get((edge.namespace, edge.name))
                if source is not None and edge.field:
                    use = ColumnUse(edge.field, edge.output, edge.transformations)
                    of_output.setdefault(source, []).append(use)
        return found

    def _topics(self, roots: Iterable[int]) -> set[int]:
        """Those of these datasets that are Kafka topics."""
        found = self.view.datasets(roots).items()
        return {n for n, one in found if one.space.partition(":")[0].lower() == "kafka"}

    def _unknown(self, members: dict[int, int]) -> dict[int, tuple[str, ...]]:
        """The columns of datasets that a producer reports as of unknown source."""
        found = self.view.datasets(members)
        held = {n: one.state.facets.get(UNKNOWN) for n, one in found.items()}
        bodies = self.view.bodies(one[0] for one in held.values() if one)
        unknown: dict[int, tuple[str, ...]] = {}
        for number, one in held.items():
            body = bodies.get(one[0]) if one else None
            names = msgspec.json.decode(body).get("unknown") if body else None
            if isinstance(names, list):
                root = members[number]
                unknown[root] = (*unknown.get(root, ()), *(str(name) for name in names))
        return unknown

    def _facts(self, jobs: Collection[int]) -> dict[int, _JobFacts]:
        shown = self._sources.with_tasks(jobs)
        sql = (
            "SELECT j.id, j.state, r.state FROM job j LEFT JOIN run r ON r.id = j.latest"
            " WHERE j.id IN ({in})"
        )
        facets: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for job, state, run in within(self.view.connection, sql, list(shown)):
            held = decode_job(bytes(state)).facets
            of_run = decode_run(bytes(run)).facets if run is not None else {}
            wanted = [held.get(name) for name in ("jobType", EVIDENCE, TRIMMED)]
            for name, one in zip(
                ("jobType", EVIDENCE, TRIMMED, TRIMMED), [*wanted, of_run.get(TRIMMED)], strict=True
            ):
                if one and one[0]:
                    facets[shown[job]].append((name, one[0]))
        bodies = self.view.bodies(number for some in facets.values() for _, number in some)
        return {job: self._read(facets[job], bodies) for job in jobs}

    def _read(self, facets: list[tuple[str, int]], bodies: dict[int, bytes]) -> _JobFacts:
        held = [(name, bodies[number]) for name, number in facets if number in bodies]
        kinds = [known.read(b, known.JobTypeFacet) for n, b in held if n == "jobType"]
        edges = [edge for n, b in held if n == EVIDENCE for edge in _evidence(b)]
        roots = self._columns.resolve({end for edge in edges for end in edge[:2]})
        columns: dict[tuple[int, int], bool] = {}
        named: dict[tuple[int, int], frozenset[str]] = {}
        for origin, target, are_known, names in edges:
            if origin in roots and target in roots:
                pair = roots[origin], roots[target]
                if are_known is not None:
                    columns[pair] = columns.get(pair, True) and are_known
                named[pair] = named.get(pair, frozenset()) | names
        by_schema = any(one is not None and one.integration in BY_SCHEMA for one in kinds)
        trimmed = any(_lost(body) for name, body in held if name == TRIMMED)
        return _JobFacts(by_schema, trimmed, columns, named)


def _lost(body: bytes) -> bool:
    parts = msgspec.json.decode(body).get("parts")
    return isinstance(parts, list) and not LOST.isdisjoint(map(str, parts))
