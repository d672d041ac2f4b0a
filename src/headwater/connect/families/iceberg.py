"""Iceberg, and the other table formats on object stores."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.connect.model import Catalog, Symlink
from headwater.connect.plan import symlinked
from headwater.connect.redact import scrub
from headwater.lineage import naming

from .base import Place, Plugin

if TYPE_CHECKING:
    from headwater.connect.plan import Plan
    from headwater.lineage.naming import DatasetName

FAMILY = "iceberg"
_PREFIX = "iceberg.catalog."
_COMMA = re.compile(r",(?![^()]*\))")
_IMPLEMENTATIONS = {
    "hive": "hive", "rest": "rest", "hadoop": "hadoop", "glue": "glue", "jdbc": "jdbc",
    "nessie": "nessie", "snowflake": "snowflake", "dynamodb": "dynamodb", "bigquery": "bigquery",
}  # fmt: skip


def sink(plan: Plan, topic: str) -> list[Place]:
    """Each topic feeds every table, unless a field of the rows routes them."""
    tables = [item.strip() for item in _COMMA.split(plan.get("iceberg.tables")) if item.strip()]
    field = plan.get("iceberg.tables.route-field", "iceberg.tables.route.field")
    if plan.flag("iceberg.tables.dynamic-enabled", "iceberg.tables.dynamic.enabled"):
        table = _routing_value(plan, field, topic)
        if not table:
            plan.problem("iceberg.tables.route-field: the rows name the tables they go to")
            return []
        tables = [table.lower()]
    elif field and (value := _routing_value(plan, field, topic)):
        tables = [table for table in tables if _routed(plan, table, value)]
        field = ""
    found = [place for table in tables if (place := _table(plan, table))]
    if not field or len(found) < 2:
        return found
    if len(plan.config.get("topics", "").split(",")) > 1 or plan.config.get("topics.regex"):
        plan.problem("iceberg.tables.route-field: the rows decide which topic feeds which table")
        return [replace(place, paired=False) for place in found]
    return found


def _routing_value(plan: Plan, field: str, topic: str) -> str:
    """What transforms write into the field for a topic: its name at that point, or a fixed text."""
    found = ""
    for position, link in enumerate(plan.chain.links):
        options = link.step.options
        named, fixed = (
            options.get(key, "").rstrip("!?") for key in ("topic.field", "static.field")
        )
        if not field or field not in (named, fixed):
            continue
        names = plan.chain.names(plan.raw or topic, position)
        applies = link.applies(names[0]) if len(names) == 1 and names[0].exact else None
        if applies is None:
            return ""
        if applies:
            found = names[0].text if field == named else options.get("static.value", "")
    return found


def _routed(plan: Plan, table: str, topic: str) -> bool:
    key = f"iceberg.table.{table}.route-regex"
    expression = plan.expression(key)
    return expression is not None and expression.matches(topic)


def _table(plan: Plan, table: str) -> Place | None:
    properties = {
        key.removeprefix(_PREFIX): value
        for key, value in plan.connector.config.items()
        if key.startswith(_PREFIX)
    }
    warehouse = plan.get(f"{_PREFIX}warehouse").rstrip("/")
    uri = plan.get(f"{_PREFIX}uri", "iceberg.hive.metastore.uri")
    kind = _kind(plan)
    name = plan.get("iceberg.catalog", default="iceberg")
    catalog = Catalog("iceberg", kind, name, scrub(uri), scrub(warehouse))
    known = plan.world.table({**properties, "name": name, "type": kind}, table)
    where = known.location if known else ""
    observed = f"{name}: location and columns of {table}" if known else ""
    if not where and re.match(r"^[a-z][a-z0-9+.\-]*:/|^/", warehouse, re.IGNORECASE):
        path = table.replace(".", "/")
        if kind == "hive" and "." in table:
            database, _, last = table.rpartition(".")
            path = f"{database}.db/{last}"
        where = f"{warehouse}/{path}"
    links = [found for found in (_logical(plan, kind, uri, warehouse, table),) if found]
    if where and (place := plan.uri(where, "TABLE")):
        place = replace(
            place,
            catalog=catalog,
            observed=observed,
            schema=known.schema if known else None,
            any_case=plan.flag("iceberg.tables.schema-case-insensitive"),
        )
        return symlinked(place, *(Symlink(*link) for link in links))
    if not links:
        plan.problem(f"neither a warehouse nor the catalog says where {table} is kept")
        return None
    return Place(links[0], catalog=catalog)


def _kind(plan: Plan) -> str:
    given = plan.get(f"{_PREFIX}type", "iceberg.catalog.catalog-type").lower()
    if given:
        return given
    text = plan.get(f"{_PREFIX}catalog-impl").rpartition(".")[2].lower()
    return next((v for k, v in _IMPLEMENTATIONS.items() if text.startswith(k)), text or "hive")


def _logical(plan: Plan, kind: str, uri: str, warehouse: str, table: str) -> DatasetName | None:
    """The table's name in its catalog."""
    if kind == "hive" and uri:
        database, _, last = table.rpartition(".")
        place = plan.place("hive", host=uri, database=database or "default", table=last)
        return place.id if place else None
    if kind == "glue":
        region = plan.get(f"{_PREFIX}client.region", f"{_PREFIX}glue.region")
        account = plan.get(f"{_PREFIX}glue.id", f"{_PREFIX}glue.account-id")
        database, _, last = table.rpartition(".")
        if not (region and account):
            return None
        place = plan.place("glue", region=region, account=account, database=database, table=last)
        return place.id if place else None
    if uri:
        return plan.name(lambda: naming.canonical(uri, table))
    if kind == "hadoop" and warehouse:
        return plan.name(lambda: naming.canonical(warehouse, table))
    return None


def hudi_sink(plan: Plan, _topic: str) -> list[Place]:
    """Hudi: the table's base path."""
    base = plan.get("hoodie.base.path")
    place = plan.uri(base, "TABLE") if base else None
    return [place] if place else []


PLUGINS = (
    Plugin(
        FAMILY,
        ("org.apache.iceberg.connect.IcebergSinkConnector",
         "io.tabular.iceberg.connect.IcebergSinkConnector", "IcebergSink"),
        "sink",
        ("iceberg.tables", "iceberg.tables.dynamic-enabled", "iceberg.tables.route-field",
         "iceberg.table.*.route-regex", "iceberg.tables.schema-case-insensitive", "iceberg.catalog", "iceberg.catalog.type",
         "iceberg.catalog.catalog-impl", "iceberg.catalog.uri", "iceberg.catalog.warehouse",
         "iceberg.catalog.client.region", "iceberg.catalog.glue.id",
         "iceberg.catalog.glue.account-id", "iceberg.catalog.glue.region",
         "iceberg.catalog.catalog-type", "iceberg.hive.metastore.uri"),
        sink=sink, stores="Iceberg tables",
    ),
    Plugin("hudi", ("org.apache.hudi.connect.HoodieSinkConnector",), "sink",
           ("hoodie.base.path",), sink=hudi_sink, stores="Hudi tables"),
)  # fmt: skip
