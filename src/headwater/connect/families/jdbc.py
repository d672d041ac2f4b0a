"""JDBC: Confluent's, Aiven's and Debezium's connectors, and Confluent Cloud's managed ones."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from headwater.connect import sql
from headwater.connect.patterns import literals
from headwater.connect.plan import sanitised, templated
from headwater.connect.values import pairs
from headwater.lineage import naming

from .base import Origin, Place, Plugin, Projection, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

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


def table(plan: Plan, url: str, name: str, schema: str = "") -> Place | None:
    """A table behind a JDBC URL."""
    found = plan.name(
        lambda: naming.from_jdbc(url, name, schema=schema or None, user=plan.get(*_USER) or None)
    )
    return Place(found) if found else None


def address(plan: Plan, kind: str = "") -> str:
    """The JDBC URL, put together from host, port and database where the plug-in is managed."""
    if not kind:
        return plan.get("connection.url")
    host = plan.get("connection.host", "connection.url")
    if not host or host.startswith("jdbc:"):
        return host
    port = plan.get("connection.port", default=str(_PORTS[kind]))
    return _URLS[kind].format(host, port, plan.get("db.name", "database.name", "db.service.name"))


def source(plan: Plan, kind: str = "") -> Reading:
    """Tables to topics: the prefix and the table's own name; one topic for a query."""
    url = address(plan, kind)
    prefix = plan.get("topic.prefix")
    if query := plan.get("query", "query.masked"):
        return _query(plan, url, query, prefix)
    if plan.get("table.name") and (topic := plan.get("kafka.topic")):
        place = table(plan, url, plan.get("table.name"), plan.get("db.schema", "schema.name"))
        return Reading((Origin(topic, place, "row"),))
    schema = plan.get("schema.pattern", "db.schema", "schema.name")
    schema = "" if "%" in schema else schema
    listed = plan.names("table.whitelist")
    patterns = plan.names("table.include.list")
    plain = [literals(item) for item in patterns]
    exact = listed + [name for names in plain for name in names or ()]
    origins = []
    for name in exact:
        parts = naming.split_identifier(name)
        topic, whole = prefix + (parts[-1] if parts else ""), prefix + ".".join(parts)
        topic = whole if whole in plan.connector.active_topics else topic
        origins.append(Origin(topic, table(plan, url, name, schema), "row"))
    if exact and None not in plain:
        return Reading(tuple(origins), shape="row")
    barred = set(plan.names("table.blacklist"))
    wanted = [e for item in patterns if (e := plan.expression("table.include.list", item))]
    unwanted = [
        e
        for item in plan.names("table.exclude.list")
        if (e := plan.expression("table.exclude.list", item))
    ]

    def reverse(topic: str) -> Place | None:
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
            if (place := table(plan, url, head + name, schema)) and fits(place)
        }
        return next(iter(places.values())) if len(places) == 1 else None

    def fits(place: Place) -> bool:
        spellings = [".".join(place.id.name.split(".")[start:]) for start in range(3)]
        if any(e.matches(text) for e in unwanted for text in spellings):
            return False
        return not wanted or any(e.matches(text) for e in wanted for text in spellings)

    if not plan.connector.active_topics and not origins:
        plan.problem("the configuration names no tables one by one, and no topic was seen yet")
    return Reading(tuple(origins), reverse, shape="row")


def _query(plan: Plan, url: str, query: str, topic: str) -> Reading:
    place = table(plan, url, "-")
    store = ""
    if place:
        store = naming.parse_jdbc(url).store
    parsed = sql.parse(query, store)
    shown = query if "query" in plan.read else ""
    if parsed is None:
        plan.problem("query: its SQL could not be read, so the tables it reads are unknown")
        return Reading((Origin(topic),), sql=shown)
    origins = []
    for name in parsed.tables:
        found = table(plan, url, name)
        if found is None:
            continue
        columns = None
        if parsed.columns is not None:
            columns = {
                output: (tuple(c for owner, c in made.sources if owner == name), made.plain)
                for output, made in parsed.columns.items()
            }
        origins.append(Origin(topic, found, "row" if parsed.whole else None, columns))
    return Reading(tuple(origins) or (Origin(topic),), sql=shown)


def sink(plan: Plan, topic: str, kind: str = "") -> list[Place]:
    """A topic to the table its format names."""
    mapped = pairs(plan.get("topics.to.tables.mapping"), ":")
    shape = plan.get("table.name.format", default="${topic}")
    name = templated(shape, topic)
    if plan.flag("table.name.normalize"):
        name = sanitised(name)
    name = mapped.get(topic) or name
    if len(parts := naming.split_identifier(name)) > 3:  # the connector reads no further
        name = ".".join(f'"{part}"' for part in parts[:2])
    place = table(plan, address(plan, kind), name, plan.get("db.schema", "schema.name"))
    if place is None:
        return []
    only, mode = frozenset(plan.names("fields.whitelist")), plan.get("pk.mode").lower()
    listed = tuple(plan.names("pk.fields"))
    if only and mode == "record_value":  # what makes the key is always written: all, if not listed
        only = only | frozenset(listed) if listed else frozenset()
    keys = listed if mode == "record_key" else None
    return [place.with_columns(Projection(only=only or None, keys=keys))]


def debezium_sink(plan: Plan, topic: str) -> list[Place]:
    """Debezium's sink: dots of the topic become underscores, fields of the row may decide."""
    shape = plan.get("collection.name.format", "table.name.format", default="${topic}")
    if "${source." in shape:
        plan.problem("collection.name.format: fields of each row decide on the table")
        return []
    strategy = plan.get("collection.naming.strategy", "table.naming.strategy").rpartition(".")[2]
    if "${topic}" in shape and strategy not in _STRATEGIES:
        plan.problem("collection.naming.strategy: a class of the worker names the tables")
        return []
    place = table(plan, plan.get("connection.url"), templated(shape, topic.replace(".", "_")))
    if place is None:
        return []
    barred = _fields(plan, "field.exclude.list", topic)
    # A list of fields to leave out wins over one of fields to keep.
    only = None if barred is not None else _fields(plan, "field.include.list", topic)
    keyed = plan.get("primary.key.mode").lower() == "record_key"
    keys = tuple(plan.names("primary.key.fields")) if keyed else None
    columns = Projection(only=only, drop=barred or frozenset(), keys=keys, unwrap=True)
    return [place.with_columns(columns)]


def _fields(plan: Plan, key: str, topic: str) -> frozenset[str] | None:
    """`field` is for every topic, `topic:field` for that one."""
    items = [item.rpartition(":") for item in plan.names(key)]
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
