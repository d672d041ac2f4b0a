"""The lineage of one query: the model of every producer, and how Spark's plan was read."""

from __future__ import annotations

from typing import Any

from headwater.lineage.model import DatasetName, Evidence, Lineage


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


def observed(source: str, detail: str = "") -> tuple[Evidence, ...]:
    """The evidence of a dataset that was seen in a plan."""
    return (Evidence(source, detail, observed=True),)
