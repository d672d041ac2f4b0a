"""The stored columns as a `TagGraph`: which tags were set on them, by hand or by a producer."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from headwater.lineage.columns import part_of, wholes
from headwater.lineage.graph import Direction, NodeKind
from headwater.lineage.openlineage import facets as known
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.read.column_graph import ColumnGraph, both
from headwater.server.store.read.observed import read_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from headwater.lineage.graph import Step
    from headwater.lineage.model import Transformation
    from headwater.server.store.entities import Column
    from headwater.server.store.read.graph import StoredGraph
    from headwater.server.store.view import View

    Held: TypeAlias = Mapping[Column, list[tuple[Column, str]]]
    """Columns, each with what is asked about in it and the path down to that."""

__all__ = ["TaggedColumns", "by_column", "sent_tags"]

PLAIN = (None, "", "true")
DATASET = 0
MOST = 20_000
"""Datasets with tags that are read for one answer."""


def _copied(how: tuple[Transformation, ...]) -> bool:
    """Whether a column goes along as it is, so that what it holds is found in it again."""
    return any(step.type != "INDIRECT" and step.subtype == "IDENTITY" for step in how)


def sent_tags(body: bytes | None) -> list[tuple[str, str]]:
    """The tags in a facet that a producer sent: the column (empty for the whole) and the tag."""
    read = known.read(body, known.TagsFacet) if body else None
    return [
        (tag.field or "", tag.key if tag.value in PLAIN else f"{tag.key}={tag.value}")
        for tag in (read.tags if read else None) or ()
    ]


def by_column(tags: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The tags of each column, in order."""
    found: dict[str, set[str]] = defaultdict(set)
    for column, tag in tags:
        found[column].add(tag)
    return {column: sorted(some) for column, some in found.items()}


class TaggedColumns(ColumnGraph):
    """Columns of now with the tags that were set on them; a tag on a whole dataset has no column.

    A column also leads to where a job hands on what holds it, such as the record as a whole.
    """

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._parts: dict[tuple[Column, Column], tuple[Transformation, ...]] = {}
        self._schemas: dict[int, set[str]] = {}

    def next(
        self, nodes: Collection[Column], direction: Direction | None
    ) -> Iterator[Step[Column]]:
        """The steps between columns, and between what is in columns that are handed on."""
        yield from super().next(nodes, direction)
        held: dict[Column, list[tuple[Column, str]]] = defaultdict(list)
        topics = self._topics({root for root, _ in nodes})
        for root, column in nodes:
            for whole, rest in wholes(column, topic=root in topics).items():
                held[root, whole].append(((root, column), rest))
        if held and direction is not Direction.UPSTREAM:
            yield from self._parts_ahead(held)
        if held and direction is not Direction.DOWNSTREAM:
            yield from self._parts_back(held)

    def _parts_ahead(self, held: Held) -> Iterator[Step[Column]]:
        targets = self.targets({root for root, _ in held})
        topics = self._topics(targets)
        for target in sorted(targets):
            for (source, output), how in self._into.get(target, {}).items():
                for part, rest in held.get(source, ()):
                    inside = part_of(output, rest, topic=target in topics)
                    into = inside if _copied(how) and not self._lacks(target, inside) else output
                    self._note((part, (target, into)), (source, (target, output)), how)
                    yield part, (target, into), True

    def _parts_back(self, held: Held) -> Iterator[Step[Column]]:
        for target in sorted({root for root, _ in held}):
            edges = self._into.get(target, {}).items()
            topics = self._topics({source[0] for (source, _), _ in edges})
            for (source, output), how in edges:
                for part, rest in held.get((target, output), ()) if _copied(how) else ():
                    inside = part_of(source[1], rest, topic=source[0] in topics)
                    self._note(((source[0], inside), part), (source, (target, output)), how)
                    yield part, (source[0], inside), False

    def _note(
        self,
        edge: tuple[Column, Column],
        whole: tuple[Column, Column],
        how: tuple[Transformation, ...],
    ) -> None:
        """Remember that a job which hands on the whole hands on what is in it."""
        self._parts[edge] = how
        self._ways.setdefault(edge, self.ways(*whole))

    def how(self, source: Column, target: Column) -> tuple[Transformation, ...]:
        """What becomes of a column on its way into another one, by itself or in what holds it."""
        part = self._parts.get((source, target))
        if part is None:
            return super().how(source, target)
        own = self._into.get(target[0], {}).get((source, target[1]))
        return both(own, part)

    def tags_inside(self, columns: Collection[Column]) -> dict[Column, set[str]]:
        """The tags that were set on columns which these hold."""
        wanted = set(columns)
        found: dict[Column, set[str]] = defaultdict(set)
        roots = {root for root, _ in wanted}
        topics = self._topics(roots)
        for (root, column), tags in self.tags_of(roots).items():
            for whole in wholes(column, topic=root in topics):
                if (root, whole) in wanted:
                    found[root, whole] |= tags
        return dict(found)

    def _topics(self, roots: Collection[int]) -> set[int]:
        """Those of these datasets that are Kafka topics."""
        found = self.view.datasets(roots).items()
        return {n for n, one in found if one.space.partition(":")[0].lower() == "kafka"}

    def _lacks(self, root: int, column: str) -> bool:
        """Whether the columns of a dataset are known, and this is none of them."""
        if root not in self._schemas:
            one = self.view.datasets([root]).get(root)
            held = one.state.facets.get("schema") if one else None
            schema = read_schema(self.view.bodies([held[0]]).get(held[0]) if held else None)
            self._schemas[root] = {field.name for field in schema.columns(containers=True)}
        return bool(self._schemas[root]) and column not in self._schemas[root]

    def tags_set(self, columns: Collection[Column]) -> dict[Column, set[str]]:
        """The tags that were set on these columns."""
        wanted = set(columns)
        return {
            column: tags
            for column, tags in self.tags_of({root for root, _ in wanted}).items()
            if column in wanted
        }

    def tags_of(self, roots: Iterable[int]) -> dict[Column, set[str]]:
        """The tags set on the columns of these datasets, those on a whole one under no column."""
        members = self.members(roots)
        found: dict[Column, set[str]] = defaultdict(set)
        for number, some in self.view.tags(DATASET, members).items():
            for field, tag in some:
                found[members[number], field].add(tag)
        held = {
            number: one.state.facets["tags"][0]
            for number, one in self.view.datasets(members).items()
            if "tags" in one.state.facets
        }
        bodies = self.view.bodies(held.values())
        for number, facet in held.items():
            for field, tag in sent_tags(bodies.get(facet)):
                found[members[number], field].add(tag)
        return dict(found)

    def set_at(self, columns: Iterable[Column], tag: str) -> dict[Column, int]:
        """When a tag was set on columns that have it: by hand, else with the last tags of a producer."""
        wanted = set(columns)
        members = self.members(root for root, _ in wanted)
        sql = (
            "SELECT entity, max(time) FROM facet_change WHERE kind = ? AND name = 'tags'"
            " AND entity IN ({in}) GROUP BY entity"
        )
        sent: dict[int, int] = {}
        for number, time in within(self.view.connection, sql, members, (DATASET,)):
            sent[members[number]] = max(sent.get(members[number], 0), time)
        found = {column: sent[column[0]] for column in wanted if column[0] in sent}
        sql = "SELECT entity, field, time FROM tag_use WHERE kind = ? AND tag = ? AND entity IN ({in})"
        for number, field, time in within(self.view.connection, sql, members, (DATASET, tag)):
            column = members[number], field
            if column in wanted:
                found[column] = time
        return found

    def tagged(self) -> tuple[dict[str, set[Column]], bool]:
        """Every tag with what it was set on, and whether some datasets were left out."""
        sql = (
            "SELECT DISTINCT d.root FROM dataset d WHERE d.hidden = 0 AND d.id IN"
            " (SELECT entity FROM tag_use WHERE kind = ? UNION"
            " SELECT entity FROM facet_change WHERE kind = ? AND name = 'tags') ORDER BY d.root LIMIT ?"
        )
        rows = self.view.all(sql, (DATASET, DATASET, MOST + 1))
        found: dict[str, set[Column]] = defaultdict(set)
        for column, tags in self.tags_of([row[0] for row in rows[:MOST]]).items():
            for tag in tags:
                found[tag].add(column)
        return dict(found), len(rows) > MOST

    def silent_readers(self, roots: Collection[int]) -> list[tuple[int, int, int]]:
        """Job, input and output, where a job reads one of these and reports no columns of the output.

        A tag may reach such an output; whether it does is unknown.
        """
        reads = self.view.graph().of_datasets(roots, INPUT)
        inputs = {(job, root) for job, root, _ in reads}
        jobs = {job for job, _ in inputs}
        return [one for one in self._silent(jobs) if one[:2] in inputs]

    def silent_writers(
        self, root: int, graph: StoredGraph | None = None
    ) -> list[tuple[int, int, int]]:
        """Job, input and output, where a job writes this dataset and does not report from which columns.

        A graph of now that a question has walked already knows the writers without reading them again.
        """
        node = NodeKind.DATASET.value, root
        steps = (graph or self.view.graph()).next([node], Direction.UPSTREAM)
        jobs = {number for _, (_, number), _ in steps}
        return [one for one in self._silent(jobs) if one[2] == root]

    def _silent(self, jobs: Collection[int]) -> list[tuple[int, int, int]]:
        """Job, input and output, of those of these jobs that report no column of the output."""
        writes = self.view.graph().of_jobs(jobs, OUTPUT)
        outputs = {(job, root) for job, root, _ in writes}
        unreported = outputs - self.reporting({root for _, root in outputs})
        sources = self.view.output_sources().of_jobs({job for job, _ in unreported})
        return sorted(
            (job, origin, output)
            for job, outputs in sources.items()
            for output, fed in outputs.items()
            if (job, output) in unreported
            for origin in fed.inputs
        )
