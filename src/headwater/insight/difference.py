"""What changed between two moments of a graph: jobs, datasets, edges, columns, schemas, states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

from headwater.lineage.graph import N
from headwater.lineage.schema import Schema, compatible, diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.lineage.graph import Edge
    from headwater.lineage.schema import SchemaChange

__all__ = ["Difference", "Moment", "SchemaDifference", "StateDifference", "difference"]


ColumnEdge = tuple[tuple[N, str], tuple[N, str]]
"""A column of a dataset leads into a column of another one."""


@dataclass(frozen=True)
class Moment(Generic[N]):
    """A graph as it was: nodes, edges, the schemas of datasets, edges of columns, states of jobs."""

    nodes: frozenset[N] = frozenset()
    edges: frozenset[Edge[N]] = frozenset()
    schemas: Mapping[N, Schema] = field(default_factory=dict)
    cut: bool = False
    columns: frozenset[ColumnEdge[N]] = frozenset()
    states: Mapping[N, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StateDifference(Generic[N]):
    """How the newest run of a job stood, then and later."""

    job: N
    before: str
    after: str


@dataclass(frozen=True)
class SchemaDifference(Generic[N]):
    """What became of the columns of one dataset, and whether its readers survive that."""

    dataset: N
    changes: tuple[SchemaChange, ...]
    compatible: bool


@dataclass(frozen=True)
class Difference(Generic[N]):
    """What came and what went."""

    appeared: tuple[N, ...] = ()
    vanished: tuple[N, ...] = ()
    added: tuple[Edge[N], ...] = ()
    removed: tuple[Edge[N], ...] = ()
    schemas: tuple[SchemaDifference[N], ...] = ()
    cut: bool = False
    columns_added: tuple[ColumnEdge[N], ...] = ()
    columns_removed: tuple[ColumnEdge[N], ...] = ()
    states: tuple[StateDifference[N], ...] = ()

    def __bool__(self) -> bool:
        nodes, edges = self.appeared or self.vanished, self.added or self.removed
        columns = self.columns_added or self.columns_removed
        return bool(nodes or edges or columns or self.schemas or self.states)


def difference(before: Moment[N], after: Moment[N]) -> Difference[N]:
    """What has to change in `before` to make it `after`."""
    return Difference(
        tuple(sorted(after.nodes - before.nodes)),
        tuple(sorted(before.nodes - after.nodes)),
        tuple(sorted(after.edges - before.edges)),
        tuple(sorted(before.edges - after.edges)),
        tuple(_schemas(before, after)),
        before.cut or after.cut,
        tuple(sorted(after.columns - before.columns)),
        tuple(sorted(before.columns - after.columns)),
        tuple(
            StateDifference(job, before.states[job], after.states[job])
            for job in sorted(before.states.keys() & after.states.keys())
            if before.states[job] != after.states[job]
        ),
    )


def _schemas(before: Moment[N], after: Moment[N]) -> Iterable[SchemaDifference[N]]:
    for dataset in sorted(before.schemas.keys() & after.schemas.keys()):
        old, new = before.schemas[dataset], after.schemas[dataset]
        changes = tuple(diff(old, new))
        if changes:
            yield SchemaDifference(dataset, changes, bool(compatible(old, new)))
