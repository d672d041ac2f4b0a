"""What changed between two moments of a graph: jobs, datasets, edges, columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

from headwater.lineage.graph import N
from headwater.lineage.schema import Schema, compatible, diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.lineage.graph import Edge
    from headwater.lineage.schema import SchemaChange

__all__ = ["Difference", "Moment", "SchemaDifference", "difference"]


@dataclass(frozen=True)
class Moment(Generic[N]):
    """A graph as it was: its nodes, its edges, the schemas of its datasets."""

    nodes: frozenset[N] = frozenset()
    edges: frozenset[Edge[N]] = frozenset()
    schemas: Mapping[N, Schema] = field(default_factory=dict)
    cut: bool = False


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

    def __bool__(self) -> bool:
        return any((self.appeared, self.vanished, self.added, self.removed, self.schemas))


def difference(before: Moment[N], after: Moment[N]) -> Difference[N]:
    """What has to change in `before` to make it `after`."""
    return Difference(
        tuple(sorted(after.nodes - before.nodes)),
        tuple(sorted(before.nodes - after.nodes)),
        tuple(sorted(after.edges - before.edges)),
        tuple(sorted(before.edges - after.edges)),
        tuple(_schemas(before, after)),
        before.cut or after.cut,
    )


def _schemas(before: Moment[N], after: Moment[N]) -> Iterable[SchemaDifference[N]]:
    for dataset in sorted(before.schemas.keys() & after.schemas.keys()):
        old, new = before.schemas[dataset], after.schemas[dataset]
        changes = tuple(diff(old, new))
        if changes:
            yield SchemaDifference(dataset, changes, bool(compatible(old, new)))
