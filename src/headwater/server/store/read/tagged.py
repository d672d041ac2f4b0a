"""The stored columns as a `TagGraph`: which tags were set on them, by hand or by a producer."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from headwater.lineage.graph import Direction, NodeKind
from headwater.lineage.openlineage import facets as known
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.read.column_graph import ColumnGraph

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headwater.server.store.entities import Column
    from headwater.server.store.read.graph import StoredGraph

__all__ = ["TaggedColumns", "by_column", "sent_tags"]

PLAIN = (None, "", "true")
DATASET = 0
MOST = 20_000
"""Datasets with tags that are read for one answer."""


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
    """Columns of now with the tags that were set on them; a tag on a whole dataset has no column."""

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
        quiet = outputs - self.reporting({root for _, root in outputs})
        sources = self.view.output_sources().of_jobs({job for job, _ in quiet})
        return sorted(
            (job, origin, output)
            for job, outputs in sources.items()
            for output, fed in outputs.items()
            if (job, output) in quiet
            for origin in fed.inputs
        )
