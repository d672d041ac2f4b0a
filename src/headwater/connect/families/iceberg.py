"""Iceberg, and the other table formats on object stores."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.connect.derive.family import ExternalDataset, Plugin
from headwater.lineage import naming
from headwater.lineage.model import Catalog, Symlink
from headwater.lineage.secrets import scrub

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context
    from headwater.lineage.naming import DatasetName

FAMILY = "iceberg"
_PREFIX = "iceberg.catalog."
_COMMA = re.compile(r",(?![^()]*\))")
_IMPLEMENTATIONS = {
    "hive": "hive", "rest": "rest", "hadoop": "hadoop", "glue": "glue", "jdbc": "jdbc",
    "nessie": "nessie", "snowflake": "snowflake", "dynamodb": "dynamodb", "bigquery": "bigquery",
}  # fmt: skip


def sink(context: Context, topic: str) -> list[ExternalDataset]:
    """Each topic feeds every table, unless a field of the rows routes them."""
    tables = [item.strip() for item in _COMMA.split(context.get("iceberg.tables")) if item.strip()]
    field = context.get("iceberg.tables.route-field", "iceberg.tables.route.field")
    if context.flag("iceberg.tables.dynamic-enabled", "iceberg.tables.dynamic.enabled"):
        table = _routing_value(context, field, topic)
        if not table:
            context.problem("iceberg.tables.route-field: the rows name the tables they go to")
            return []
        tables = [table.lower()]
    elif field and (value := _routing_value(context, field, topic)):
        tables = [table for table in tables if _routed(context, table, value)]
        field = ""
    found = [place for table in tables if (place := _table(context, table))]
    if not field or len(found) < 2:
        return found
    if len(context.config.get("topics", "").split(",")) > 1 or context.config.get("topics.regex"):
        context.problem("iceberg.tables.route-field: the rows decide which topic feeds which table")
        return [replace(place, paired=False) for place in found]
    return found


def _routing_value(context: Context, field: str, topic: str) -> str:
    """What transforms write into the field for a topic: its name at that point, or a fixed text."""
    found = ""
    for position, link in enumerate(context.chain.links):
        options = link.step.options
        named, fixed = (
            options.get(key, "").rstrip("!?") for key in ("topic.field", "static.field")
        )
        if not field or field not in (named, fixed):
            continue
        names = context.chain.names(context.raw or topic, position)
        applies = link.applies(names[0]) if len(names) == 1 and names[0].exact else None
        if applies is None:
            return ""
        if applies:
            found = names[0].text if field == named else options.get("static.value", "")
    return found


def _routed(context: Context, table: str, topic: str) -> bool:
    key = f"iceberg.table.{table}.route-regex"
    expression = context.expression(key)
    return expression is not None and expression.matches(topic)


def _table(context: Context, table: str) -> ExternalDataset | None:
    properties = {
        key.removeprefix(_PREFIX): value
        for key, value in context.connector.config.items()
        if key.startswith(_PREFIX)
    }
    warehouse = context.get(f"{_PREFIX}warehouse").rstrip("/")
    uri = context.get(f"{_PREFIX}uri", "iceberg.hive.metastore.uri")
    kind = _kind(context)
    name = context.get("iceberg.catalog", default="iceberg")
    catalog = Catalog("iceberg", kind, name, scrub(uri), scrub(warehouse), "kafka-connect")
    known = context.metadata.table({**properties, "name": name, "type": kind}, table)
    where = known.location if known else ""
    observed = f"{name}: location and columns of {table}" if known else ""
    if not where and re.match(r"^[a-z][a-z0-9+.\-]*:/|^/", warehouse, re.IGNORECASE):
        database, _, last = table.rpartition(".")
        if kind == "hive" and database:
            where = naming.hive_location(warehouse, database, last)
        else:
            where = f"{warehouse}/{table.replace('.', '/')}"
    links = [found for found in (_logical(context, kind, uri, warehouse, table),) if found]
    if where and (place := context.uri(where, "TABLE")):
        schema = known.schema if known else None
        origin = known.origin if known and schema else None
        place = place.updated(catalog=catalog, schema=schema, schema_source=origin)
        any_case = context.flag("iceberg.tables.schema-case-insensitive")
        place = replace(place, observed=observed, any_case=any_case)
        return place.linked(*(Symlink(*link) for link in links))
    if not links:
        context.problem(f"neither a warehouse nor the catalog says where {table} is kept")
        return None
    return ExternalDataset.of(links[0], catalog=catalog)


def _kind(context: Context) -> str:
    given = context.get(f"{_PREFIX}type", "iceberg.catalog.catalog-type").lower()
    if given:
        return given
    text = context.get(f"{_PREFIX}catalog-impl").rpartition(".")[2].lower()
    return next((v for k, v in _IMPLEMENTATIONS.items() if text.startswith(k)), text or "hive")


def _logical(
    context: Context, kind: str, uri: str, warehouse: str, table: str
) -> DatasetName | None:
    """The table's name in its catalog."""
    if kind == "hive" and uri:
        database, _, last = table.rpartition(".")
        name = f"{database or 'default'}.{last}"
        return context.name(lambda: naming.canonical(naming.hive_namespace(uri), name))
    if kind == "glue":
        region = context.get(f"{_PREFIX}client.region", f"{_PREFIX}glue.region")
        account = context.get(f"{_PREFIX}glue.id", f"{_PREFIX}glue.account-id")
        database, _, last = table.rpartition(".")
        if not (region and account):
            return None
        place = context.place("glue", region=region, account=account, database=database, table=last)
        return place.id if place else None
    if uri:
        return context.name(lambda: naming.canonical(uri, table))
    if kind == "hadoop" and warehouse:
        return context.name(lambda: naming.canonical(warehouse, table))
    return None


def hudi_sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Hudi: the table's base path."""
    base = context.get("hoodie.base.path")
    place = context.uri(base, "TABLE") if base else None
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
