"""Plans as Spark's `toJSON` writes them, put together by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.model import Dataset
from headwater.spark.columns.output import OutputColumn, columns_of
from headwater.spark.columns.source import Source
from headwater.spark.plan.operators import ColumnReader
from headwater.spark.plan.tree import build

if TYPE_CHECKING:
    from headwater.lineage.model import ColumnLineage
    from headwater.spark.columns.scope import Relation

Flat = list[dict[str, Any]]
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."


def node(kind: str, *children: Flat, package: str = EXPRESSIONS, **fields: Any) -> Flat:
    """A node and those below it, in pre-order."""
    top = {"class": package + kind, "num-children": len(children), **fields}
    return [top, *(item for child in children for item in child)]


def attribute(name: str, number: int, data_type: Any = "long", **fields: Any) -> Flat:
    given = {"name": name, "dataType": data_type, "exprId": {"id": number}, **fields}
    return node("AttributeReference", **given)


def literal(value: Any, data_type: str = "string") -> Flat:
    return node("Literal", value=value, dataType=data_type)


def alias(child: Flat, name: str, number: int) -> Flat:
    return node("Alias", child, child=0, name=name, exprId={"id": number})


def plan(kind: str, *children: Flat, **fields: Any) -> Flat:
    return node(kind, *children, package=LOGICAL, **fields)


def table(*columns: Flat) -> Flat:
    return plan("DataSourceV2Relation", output=list(columns))


def project(child: Flat, *items: Flat) -> Flat:
    return plan("Project", child, projectList=list(items), child=0)


def source(name: str = "t", *, topic: bool = False, target: bool = False) -> Source:
    return Source((Dataset("ns", name),), topic=topic, target=target)


def relation(flat: Flat, **sources: Source) -> Relation:
    """Read a plan; `n5=source()` is what the leaf reads whose first attribute is 5."""
    known = {int(key[1:]): value for key, value in sources.items()}
    return ColumnReader(known).relation(build(flat))


def lineage(found: Relation, *columns: tuple[str, int, Any]) -> ColumnLineage:
    """The columns of a relation by name, number and type."""
    made = [OutputColumn(name, kind, found.env[number]) for name, number, kind in columns]
    return columns_of(made, found.rows)


def facts(given: ColumnLineage) -> dict[str, list[str]]:
    """Columns and their sources as short words."""
    return {
        name: [
            f"{item.field} {way.subtype}{' masked' if way.masking else ''}"
            for item in items
            for way in item.transformations
        ]
        for name, items in given.fields.items()
    }
