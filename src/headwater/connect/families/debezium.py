"""Debezium's sources, its MongoDB sink, and the managed plug-ins made from them."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING

from headwater.connect.derive.context import templated
from headwater.connect.derive.family import (
    ExternalDataset,
    Plugin,
    Shape,
    SourceLineage,
    SourceTopic,
)
from headwater.connect.derive.java_regex import literal, literals
from headwater.lineage import naming

from .debezium_databases import CLASSES, KINDS, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.derive.context import Context

    from .debezium_databases import DebeziumDatabase

FAMILY = "debezium"
_ILLEGAL = re.compile(r"[^A-Za-z0-9._\-]")
# Here the underscore begins the escapes, so it is escaped too.
_ESCAPED = re.compile(r"[^A-Za-z0-9.\-]")
_HEAD = re.compile(r"^\^?\(?((?:[\w$#\-]|\\[_\-$])+)(?:\\?\.|\[\.\])")
_STRATEGIES = ("", "SchemaTopicNamingStrategy", "DefaultTopicNamingStrategy")


def source(context: Context, key: str) -> SourceLineage:
    """Tables to topics: the prefix and the table's id, as the default strategies name them."""
    kind = KINDS[key]
    prefix = context.get("topic.prefix", "database.server.name", "mongodb.name", "scylla.name")
    delimiter = context.get("topic.delimiter", default=".")
    databases = context.names(*kind.database) or [""]
    hidden = _bookkeeping(context, prefix, delimiter)
    rename = _strategy(context)
    if rename is None or not prefix:
        context.problem(
            "topic.naming.strategy: a class of the worker names the topics"
            if prefix
            else "topic.prefix is needed to name the topics"
        )
        return SourceLineage(hidden=hidden)
    # Before it could follow many databases, the connector left theirs out of the topic.
    short = kind.parts == 3 and "database.names" not in context.config
    shape: Shape | None = "change" if kind.rows else None

    def place(database: str, ident: str) -> ExternalDataset | None:
        return _place(context, kind, database, ident)

    def topic(database: str, ident: str) -> str:
        inner = [database] if kind.parts == 3 and not short else []
        return rename(delimiter.join([prefix, *inner, *ident.split(".")]))

    listed = context.patterns(*kind.listed)
    choices = [literals(item) for item in listed]
    origins = [
        SourceTopic(topic(database, bare), place(database, bare), shape)
        for idents in choices
        for ident in map(kind.folded, idents or ())
        for database in databases
        if (bare := _in_database(context, kind, key, database, ident))
    ]
    open_ended = not listed or None in choices
    allowed = cache(lambda: _filter(context, kind))

    def reverse(name: str) -> ExternalDataset | None:
        start = f"{prefix}{delimiter}"
        if not name.startswith(start):
            return None
        parts = name[len(start) :].split(delimiter)
        width = kind.parts - 1 if short else kind.parts
        if len(parts) < width:
            return None
        database, ident = databases[0], ".".join(parts)
        if kind.parts == 3 and not short:
            database, ident = parts[0], ".".join(parts[1:])
            if database not in databases:
                return None
        return place(database, ident) if allowed()(database, ident) else None

    def candidates(name: str) -> list[str]:
        heads = [h for item in context.patterns(*kind.outer) if (h := literal(item))]
        heads += [m[1].replace("\\", "") for item in listed if (m := _HEAD.match(item))]
        tails = {name, re.split(r"[._\-]", name)[-1], name.rpartition(".")[2]}
        return [
            topic(database, f"{head}.{tail}")
            for database in databases
            for head in dict.fromkeys(heads)
            for tail in sorted(tails)
            if tail
        ]

    if not open_ended:
        return SourceLineage(tuple(origins), reverse, None, shape, hidden, closed=True)
    if not context.connector.active_topics:
        context.problem("the configuration names no tables one by one, and no topic was seen yet")
    return SourceLineage(tuple(origins), reverse, candidates, shape, hidden)


def _in_database(
    context: Context, kind: DebeziumDatabase, key: str, database: str, ident: str
) -> str:
    """A listed table's name within a database; empty when it belongs to another one."""
    given = ident.split(".")
    if key == "vitess" and len(given) == 1:
        return f"{context.get('vitess.keyspace')}.{ident}"
    if not kind.qualified:
        return ident
    if len(given) == 3 and given[0] != database:
        return ""
    return ".".join(given[-2:])


def _place(
    context: Context, kind: DebeziumDatabase, database: str, ident: str
) -> ExternalDataset | None:
    if kind.store == "spanner":
        parts = {"project": context.get("gcp.spanner.project.id"),
                 "instance": context.get("gcp.spanner.instance.id")}  # fmt: skip
        name = ident if "." in ident else f"public.{ident}"
        schema, _, table = name.rpartition(".")
        return context.place("spanner", **parts, database=database, schema=schema, table=table)
    host, port = context.get(*kind.host), context.get("database.port", "scylla.port")
    outer, _, table = ident.partition(".")
    if kind.store == "oracle" and (url := context.get("database.url")):
        # The URL may name the database that holds the pluggable one.
        name = f'"{database}".{ident}' if context.get("database.pdb.name") else ident
        found = context.name(lambda: naming.from_jdbc(url, name, database=database or None))
        return ExternalDataset.of(found) if found else None
    if kind.store == "mssql" and (instance := context.get("database.instance")) and not port:
        url = f"jdbc:sqlserver://{host}\\{instance};databaseName={database}"
        found = context.name(lambda: naming.from_jdbc(url, ident))
        return ExternalDataset.of(found) if found else None
    host = re.sub(r"^[^/,]+/(?=[^/])", "", host) if kind.store == "mongodb" else host
    names = naming.STORES[kind.store].name_fields
    values = (outer, table) if len(names) == 2 else (database, outer, table)
    return context.place(kind.store, host=host, port=port, **dict(zip(names, values, strict=True)))


def _strategy(context: Context) -> Callable[[str], str] | None:
    """What becomes of the parts of a topic's name once they are joined."""
    name = context.get("topic.naming.strategy").rpartition(".")[2]
    if "Unicode" in name and name.replace("Unicode", "") in _STRATEGIES:
        return lambda t: _ESCAPED.sub(lambda m: f"_u{ord(m[0]):04x}", t)
    if name in _STRATEGIES:
        return lambda t: _ILLEGAL.sub("_", t)
    if "Regex" not in name:
        return None
    expression = context.expression("topic.regex")
    replacement = context.get("topic.replacement")
    if expression is None:
        return None

    def renamed(topic: str) -> str:
        topic = _ILLEGAL.sub("_", topic)
        return expression.replace_first(topic, replacement) if expression.matches(topic) else topic

    return renamed


def _filter(context: Context, kind: DebeziumDatabase) -> Callable[[str, str], bool]:
    def expressions(keys: tuple[str, ...]) -> list[Callable[[str], bool]]:
        return [
            found.matches
            for item in (context.patterns(*keys) if keys else ())
            if (found := context.expression(keys[0], item, ignore_case=True))
        ]

    wanted, unwanted = expressions(kind.listed), expressions(kind.barred)
    outer = expressions(kind.outer)
    barred = expressions(kind.outer_barred)

    def allowed(database: str, ident: str) -> bool:
        head = ident.partition(".")[0]
        spellings = (ident, f"{database}.{ident}") if database else (ident,)
        if any(match(text) for match in unwanted for text in spellings):
            return False
        if wanted and not any(match(text) for match in wanted for text in spellings):
            return False
        if kind.listed[0] == "scylla.table.names":
            return True
        if any(match(head) for match in barred):
            return False
        return not outer or any(match(head) for match in outer)

    return allowed


def _bookkeeping(context: Context, prefix: str, delimiter: str) -> Callable[[str], bool]:
    """Schema changes, transactions, heartbeats, history, signals and notifications."""
    beat = context.config.get("topic.heartbeat.prefix", "__debezium-heartbeat")
    transaction = context.config.get("topic.transaction", "transaction")
    own = {
        prefix,
        f"{prefix}{delimiter}{transaction}",
        f"{beat}{delimiter}{prefix}",
        *(
            context.config.get(key, "")
            for key in (
                "schema.history.internal.kafka.topic", "database.history.kafka.topic",
                "signal.kafka.topic", "notification.sink.topic.name", "topic.heartbeat.name",
            )
        ),
    }  # fmt: skip
    return lambda topic: topic in own


def mongodb_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """Topics to collections of one database."""
    name = context.get("collection.name.format", default="${topic}")
    if "${source." in name:
        context.problem("collection.name.format: fields of each row decide on the collection")
        return []
    place = context.place(
        "mongodb", host=context.get("mongodb.connection.string"), database=context.get("sink.database"),
        collection=templated(name, topic.replace(".", "_")),
    )  # fmt: skip
    return [place] if place else []


PLUGINS = (
    *(
        Plugin(FAMILY, classes, "source", keys_of(name), source=partial(source, key=name),
               stores=naming.STORES[KINDS[name].store].title)
        for name, classes in CLASSES.items()
    ),
    Plugin(FAMILY, ("io.debezium.connector.mongodb.sink.MongoDbSinkConnector",), "sink",
           ("mongodb.connection.string", "sink.database", "collection.name.format"),
           sink=mongodb_sink, stores="MongoDB"),
)  # fmt: skip
