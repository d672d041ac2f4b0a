"""The lineage of one query: the model of every producer, and how Spark's plan was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.lineage.model import DatasetName, Evidence, Lineage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.model import Dataset


class PlanLineage(Lineage, frozen=True):
    """What one query reads and writes.

    `operation` is the part of the job's name such as `append`, `merge_into` or
    `create_table_as_select`, `node` the name of the node at the top of the plan. `nodes` and
    `seconds` are the size of the plan and the time it took to read it. `frontier` is what the columns of the query's result are made of, for queries that go
    on from it; only `headwater.spark.plan.plan_lineage` looks into it. `targets` are the outputs of the
    commands of one statement, in the order of its plan; a table that two of them write is there twice.
    `evolves`: the write may add columns to its outputs.
    """

    dialect: str = "spark"
    operation: str = ""
    node: str = ""
    nodes: int = 0
    seconds: float = 0.0
    frontier: Any = None
    targets: tuple[DatasetName, ...] = ()
    evolves: bool = False


def each_once(datasets: Iterable[Dataset]) -> dict[DatasetName, Dataset]:
    """Datasets by name; of one that is read twice the first that has a schema, with all groups."""
    found: dict[DatasetName, Dataset] = {}
    for one in datasets:
        known = found.setdefault(one.id, one)
        # A query may read a table and its metadata, which says nothing of the columns.
        better = one if known.schema is None and one.schema is not None else known
        groups = tuple(sorted({*known.groups, *one.groups}))
        found[one.id] = better if groups == better.groups else replace(better, groups=groups)
    return found


def observed(source: str, detail: str = "") -> tuple[Evidence, ...]:
    """The evidence of a dataset that was seen in a plan."""
    return (Evidence(source, detail, observed=True),)
