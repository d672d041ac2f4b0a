"""JDBC: Confluent's, Aiven's and Debezium's connectors, and Confluent Cloud's managed ones."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import pairs
from headwater.connect.derive.context import sanitised, templated
from headwater.connect.derive.family import (
    ColumnProjection,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)
from headwater.connect.derive.java_regex import literals
from headwater.lineage import naming, sql

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

FAMILY = "jdbc"
_URLS = {
    "postgresql": "jdbc:postgresql://{}:{}/{}",
    "mysql": "jdbc:mysql://{}:{}/{}",
    "sqlserver": "jdbc:sqlserver://{}:{};databaseName={}",
    "oracle": "jdbc:oracle:thin:@//{}:{}/{}",
    "snowflake": "jdbc:snowflake://{}:{}/?db={}",
}
_PORTS = {"postgresql": 5432, "mysql": 3306, "sqlserver": 1433, "oracle": 1521, "snowflake": 443}
_USER = ("connection.user", "connection.username")
_HEAD = re.compile(r"(?:[\w$#]+(?:\\\.|\[\.\]|\.(?![*+?{])))+")


def table(context: Context, url: str, name: str, schema: str = "") -> ExternalDataset | None:
    """A table behind a JDBC URL."""
    found = context.name(
        lambda: naming.from_jdbc(url, name, schema=schema or None, user=context.get(*_USER) or None)
    )
    return ExternalDataset.of(found) if found else None


def address(context: Context, kind: str = "") -> str:
    """The JDBC URL, put together from host, port and database where the plug-in is managed."""
    if not kind:
        return context.get("connection.url")
    host = context.get("connection.host", "connection.url")
    if not host or host.startswith("jdbc:"):
        return host
    port = context.get("connection.port", default=str(_PORTS[kind]))
    return _URLS[kind].format(
        host, port, context.get("db.name", "database.name", "db.service.name")
    )


def source(context: Context, kind: str = "") -> SourceLineage:
    """Tables to topics: the prefix and the table's own name; one topic for a query."""
    url = address(context, kind)
    prefix = context.get("topic.prefix")
    if query := context.get("query", "query.masked"):
        return _query(context, url, query, prefix)
    if context.get("table.name") and (topic := context.get("kafka.topic")):
        place = table(
            context, url, context.get("table.name"), context.get("db.schema", "schema.name")
        )
        return SourceLineage((SourceTopic(topic, place, "row"),))
    schema = context.get("schema.pattern", "db.schema", "schema.name")
    schema = "" if "%" in schema else schema
    listed = context.names("table.whitelist")
    patterns = context.names("table.include.list")
    plain = [literals(item) for item in patterns]
    exact = listed + [name for names in plain for name in names or ()]
    origins = []
    for name in exact:
        parts = naming.split_identifier(name)
        topic, whole = prefix + (parts[-1] if parts else ""), prefix + ".".join(parts)
        topic = whole if whole in context.connector.active_topics else topic
        origins.append(SourceTopic(topic, table(context, url, name, schema), "row"))
    if exact and None not in plain:
        return SourceLineage(tuple(origins), shape="row")
    barred = set(context.names("table.blacklist"))
    wanted = [e for item in patterns if (e := context.expression("table.include.list", item))]
    unwanted = [
        e
        for item in context.names("table.exclude.list")
        if (e := context.expression("table.exclude.list", item))
    ]

    def reverse(topic: str) -> ExternalDataset | None:
        name = topic.removeprefix(prefix)
        if not topic.startswith(prefix) or not name or name in barred:
            return None
        name = f'"{name}"' if "." in name else name
        # Expressions are held against the name with its schema, which the topic leaves out.
        heads = [
            m[0].replace("\\", "").replace("[.]", ".") for i in patterns if (m := _HEAD.match(i))
        ]
        places = {
            place.id: place
            for head in dict.fromkeys(("", *heads))
            if (place := table(context, url, head + name, schema)) and fits(place)
        }
        return next(iter(places.values())) if len(places) == 1 else None

    def fits(place: ExternalDataset) -> bool:
        spellings = [".".join(place.id.name.split(".")[start:]) for start in range(3)]
        if any(e.matches(text) for e in unwanted for text in spellings):
            return False
        return not wanted or any(e.matches(text) for e in wanted for text in spellings)

    if not context.connector.active_topics and not origins:
        context.problem("the configuration names no tables one by one, and no topic was seen yet")
    return SourceLineage(tuple(origins), reverse, shape="row")


def _query(context: Context, url: str, query: str, topic: str) -> SourceLineage:
    place = table(context, url, "-")
    store = ""
    if place:
        store = naming.parse_jdbc(url).store
    parsed = sql.parse(query, store)
    shown = query if "query" in context.read else ""
    if parsed is None:
        context.problem("query: its SQL could not be read, so the tables it reads are unknown")
        return SourceLineage((SourceTopic(topic),), sql=shown)
    origins = []
    for name in parsed.tables:
        found = table(context, url, name)
        if found is None:
            continue
        columns = None
        if parsed.columns is not None:
            columns = {
                output: (tuple(c for owner, c, _ in made.sources if owner == name), made.as_it_is)
                for output, made in parsed.columns.items()
            }
        origins.append(SourceTopic(topic, found, "row" if parsed.whole else None, columns))
    return SourceLineage(tuple(origins) or (SourceTopic(topic),), sql=shown)


def sink(context: Context, topic: str, kind: str = "") -> list[ExternalDataset]:
    """A topic to the table its format names."""
    mapped = pairs(context.get("topics.to.tables.mapping"), ":")
    shape = context.get("table.name.format", default="${topic}")
    name = templated(shape, topic)
    if context.flag("table.name.normalize"):
        name = sanitised(name)
    name = mapped.get(topic) or name
    if len(parts := naming.split_identifier(name)) > 3:  # the connector reads no further
        name = ".".join(f'"{part}"' for part in parts[:2])
    place = table(context, address(context, kind), name, context.get("db.schema", "schema.name"))
    if place is None:
        return []
    only, mode = frozenset(context.names("fields.whitelist")), context.get("pk.mode").lower()
    listed = tuple(context.names("pk.fields"))
    if only and mode == "record_value":  # what makes the key is always written: all, if not listed
        only = only | frozenset(listed) if listed else frozenset()
    keys = listed if mode == "record_key" else None
    return [place.with_columns(ColumnProjection(only=only or None, keys=keys))]


def debezium_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """Debezium's sink: dots of the topic become underscores, fields of the row may decide."""
    shape = context.get("collection.name.format", "table.name.format", default="${topic}")
    if "${source." in shape:
        context.problem("collection.name.format: fields of each row decide on the table")
        return []
    strategy = context.get("collection.naming.strategy", "table.naming.strategy").rpartition(".")[2]
    if "${topic}" in shape and strategy not in _STRATEGIES:
        context.problem("collection.naming.strategy: a class of the worker names the tables")
        return []
    place = table(context, context.get("connection.url"), templated(shape, topic.replace(".", "_")))
    if place is None:
        return []
    barred = _fields(context, "field.exclude.list", topic)
    # A list of fields to leave out wins over one of fields to keep.
    only = None if barred is not None else _fields(context, "field.include.list", topic)
    keyed = context.get("primary.key.mode").lower() == "record_key"
    keys = tuple(context.names("primary.key.fields")) if keyed else None
    columns = ColumnProjection(only=only, drop=barred or frozenset(), keys=keys, unwrap=True)
    return [place.with_columns(columns)]


def _fields(context: Context, key: str, topic: str) -> frozenset[str] | None:
    """`field` is for every topic, `topic:field` for that one."""
    items = [item.rpartition(":") for item in context.names(key)]
    return frozenset(n for t, _, n in items if t.strip() in ("", topic)) if items else None


_STRATEGIES = ("", "DefaultCollectionNamingStrategy", "DefaultTableNamingStrategy")
_SOURCE = (
    "connection.url", "connection.user", "table.whitelist", "table.blacklist",
    "table.include.list", "table.exclude.list", "schema.pattern", "query", "query.masked",
    "topic.prefix",
)  # fmt: skip
_SINK = (
    "connection.url", "connection.user", "table.name.format", "fields.whitelist", "pk.mode",
    "pk.fields",
)  # fmt: skip
_AT = ("connection.host", "connection.port", "connection.user", "db.name")
_STORES = "PostgreSQL, MySQL, SQL Server, Oracle, DB2, Redshift, Snowflake and every other dialect"
_MANAGED = {
    "postgresql": (("PostgresSource",), ("PostgresSink", "AlloyDbSink")),
    "mysql": (("MySqlSource",), ("MySqlSink",)),
    "sqlserver": (("MicrosoftSqlServerSource",), ("MicrosoftSqlServerSink", "AzureSqlDwSink")),
    "oracle": (("OracleDatabaseSource",), ("OracleDatabaseSink",)),
    "snowflake": (
        ("SnowflakeSource", "io.confluent.connect.snowflake.jdbc.SnowflakeSourceConnector"),
        (),
    ),
}

PLUGINS = (
    Plugin(
        FAMILY, ("io.confluent.connect.jdbc.JdbcSourceConnector",), "source", _SOURCE,
        source=source, stores=_STORES,
    ),
    Plugin(
        FAMILY, ("io.confluent.connect.jdbc.JdbcSinkConnector",), "sink", _SINK,
        sink=sink, stores=_STORES,
    ),
    Plugin(
        FAMILY, ("io.aiven.connect.jdbc.JdbcSourceConnector",), "source", _SOURCE,
        source=source, stores=_STORES,
    ),
    Plugin(
        FAMILY, ("io.aiven.connect.jdbc.JdbcSinkConnector",), "sink",
        (*_SINK, "table.name.normalize", "topics.to.tables.mapping"), sink=sink, stores=_STORES,
    ),
    Plugin(
        FAMILY, ("io.debezium.connector.jdbc.JdbcSinkConnector",), "sink",
        ("connection.url", "connection.username", "collection.name.format", "table.name.format",
         "collection.naming.strategy", "table.naming.strategy", "primary.key.mode",
         "primary.key.fields", "field.include.list", "field.exclude.list"),
        sink=debezium_sink, stores=_STORES,
    ),
    *(
        Plugin(
            FAMILY, names, "source",
            (*_AT, "database.name", "db.service.name", "db.schema", "schema.name", "kafka.topic",
             "table.name", *_SOURCE),
            source=partial(source, kind=kind), stores=f"Confluent Cloud: {kind}",
        )
        for kind, (names, _) in _MANAGED.items()
    ),
    *(
        Plugin(
            FAMILY, names, "sink", (*_AT, "db.schema", "schema.name", *_SINK),
            sink=partial(sink, kind=kind), stores=f"Confluent Cloud: {kind}",
        )
        for kind, (_, names) in _MANAGED.items() if names
    ),
)  # fmt: skip
