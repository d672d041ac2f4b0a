"""Hudi's own commands, which hold those of Spark that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.spark.jvm import attempt, option
from headwater.spark.stores import relations
from headwater.spark.writes import Write, changed, command, fields, row_level

if TYPE_CHECKING:
    from headwater.spark.jvm import World


@command("InsertIntoHoodieTableCommand")
def _insert(world: World, plan: Any) -> Write:
    relation = plan.logicalRelation()
    source = relations.relation(world, relation.relation(), option(relation.catalogTable()))
    outputs = source.datasets if source is not None else ()
    if plan.overwrite():
        outputs = changed(outputs, "OVERWRITE")
    names = tuple(item["name"] for item in fields(relation))
    return Write("insert_into_hudi_table", plan.query(), outputs, names)


@command("MergeIntoHoodieTableCommand")
def _merge(world: World, plan: Any) -> Write:
    inner = plan.mergeInto()
    return row_level(world, inner, "MERGE", inner.targetTable())


@command("UpdateHoodieTableCommand")
def _update(world: World, plan: Any) -> Write:
    inner = plan.ut()
    return row_level(world, inner, "UPDATE", inner.table())


@command("DeleteHoodieTableCommand")
def _delete(world: World, plan: Any) -> Write:
    inner = attempt(plan, "dft")
    if inner is not None:
        return row_level(world, inner, "DELETE", inner.table())
    query = plan.query()
    return row_level(world, query, "DELETE", query)
