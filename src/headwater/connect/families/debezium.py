"""Debezium's sources, its MongoDB sink, and the managed plug-ins made from them."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING

from headwater.connect.patterns import literal, literals
from headwater.connect.plan import templated
from headwater.lineage import naming

from .base import Origin, Place, Plugin, Reading, Shape
from .debezium_databases import CLASSES, KINDS, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.plan import Plan

    from .debezium_databases import Kind

FAMILY = "debezium"
_ILLEGAL = re.compile(r"[^A-Za-z0-9._\-]")
# Here the underscore begins the escapes, so it is escaped too.
_ESCAPED = re.compile(r"[^A-Za-z0-9.\-]")
_HEAD = re.compile(r"^\^?\(?((?:[\w$#\-]|\\[_\-$])+)(?:\\?\.|\[\.\])")
_STRATEGIES = ("", "SchemaTopicNamingStrategy", "DefaultTopicNamingStrategy")


def source(plan: Plan, key: str) -> Reading:
    """Tables to topics: the prefix and the table's id, as the default strategies name them."""
    kind = KINDS[key]
    prefix = plan.get("topic.prefix", "database.server.name", "mongodb.name", "scylla.name")
    delimiter = plan.get("topic.delimiter", default=".")
    databases = plan.names(*kind.database) or [""]
    hidden = _bookkeeping(plan, prefix, delimiter)
    rename = _strategy(plan)
    if rename is None or not prefix:
        plan.problem(
            "topic.naming.strategy: a class of the worker names the topics"
            if prefix
            else "topic.prefix is needed to name the topics"
        )
        return Reading(hidden=hidden)
    # Before it could follow many databases, the connector left theirs out of the topic.
    short = kind.parts == 3 and "database.names" not in plan.config
    shape: Shape | None = "change" if kind.rows else None

    def place(database: str, ident: str) -> Place | None:
        return _place(plan, kind, database, ident)

    def topic(database: str, ident: str) -> str:
        inner = [database] if kind.parts == 3 and not short else []
        return rename(delimiter.join([prefix, *inner, *ident.split(".")]))

    listed = plan.patterns(*kind.listed)
    origins = []
    open_ended = not listed
    for item in listed:
        idents = literals(item)
        open_ended = open_ended or idents is None
        for ident in map(kind.folded, idents or ()):
            for database in databases:
                given = ident.split(".")
                if kind.qualified and len(given) == 3 and given[0] != database:
                    continue
                bare = ".".join(given[-2:]) if kind.qualified else ident
                if key == "vitess" and len(given) == 1:
                    bare = f"{plan.get('vitess.keyspace')}.{ident}"
                origins.append(Origin(topic(database, bare), place(database, bare), shape))
    allowed = cache(lambda: _filter(plan, kind))

    def reverse(name: str) -> Place | None:
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
        heads = [h for item in plan.patterns(*kind.outer) if (h := literal(item))]
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
        return Reading(tuple(origins), reverse, None, shape, hidden, closed=True)
    if not plan.connector.active_topics:
        plan.problem("the configuration names no tables one by one, and no topic was seen yet")
    return Reading(tuple(origins), reverse, candidates, shape, hidden)


def _place(plan: Plan, kind: Kind, database: str, ident: str) -> Place | None:
    if kind.store == "spanner":
        parts = {"project": plan.get("gcp.spanner.project.id"),
                 "instance": plan.get("gcp.spanner.instance.id")}  # fmt: skip
        name = ident if "." in ident else f"public.{ident}"
        schema, _, table = name.rpartition(".")
        return plan.place("spanner", **parts, database=database, schema=schema, table=table)
    host, port = plan.get(*kind.host), plan.get("database.port", "scylla.port")
    outer, _, table = ident.partition(".")
    if kind.store == "oracle" and (url := plan.get("database.url")):
        # The URL may name the database that holds the pluggable one.
        name = f'"{database}".{ident}' if plan.get("database.pdb.name") else ident
        found = plan.name(lambda: naming.from_jdbc(url, name, database=database or None))
        return Place(found) if found else None
    if kind.store == "mssql" and (instance := plan.get("database.instance")) and not port:
        url = f"jdbc:sqlserver://{host}\\{instance};databaseName={database}"
        found = plan.name(lambda: naming.from_jdbc(url, ident))
        return Place(found) if found else None
    host = re.sub(r"^[^/,]+/(?=[^/])", "", host) if kind.store == "mongodb" else host
    names = naming.STORES[kind.store].name_fields
    values = (outer, table) if len(names) == 2 else (database, outer, table)
    return plan.place(kind.store, host=host, port=port, **dict(zip(names, values, strict=True)))


def _strategy(plan: Plan) -> Callable[[str], str] | None:
    """What becomes of the parts of a topic's name once they are joined."""
    name = plan.get("topic.naming.strategy").rpartition(".")[2]
    if "Unicode" in name and name.replace("Unicode", "") in _STRATEGIES:
        return lambda t: _ESCAPED.sub(lambda m: f"_u{ord(m[0]):04x}", t)
    if name in _STRATEGIES:
        return lambda t: _ILLEGAL.sub("_", t)
    if "Regex" not in name:
        return None
    expression = plan.expression("topic.regex")
    replacement = plan.get("topic.replacement")
    if expression is None:
        return None

    def renamed(topic: str) -> str:
        topic = _ILLEGAL.sub("_", topic)
        return expression.replace_first(topic, replacement) if expression.matches(topic) else topic

    return renamed


def _filter(plan: Plan, kind: Kind) -> Callable[[str, str], bool]:
    def expressions(keys: tuple[str, ...]) -> list[Callable[[str], bool]]:
        return [
            found.matches
            for item in (plan.patterns(*keys) if keys else ())
            if (found := plan.expression(keys[0], item, ignore_case=True))
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


def _bookkeeping(plan: Plan, prefix: str, delimiter: str) -> Callable[[str], bool]:
    """Schema changes, transactions, heartbeats, history, signals and notifications."""
    beat = plan.config.get("topic.heartbeat.prefix", "__debezium-heartbeat")
    transaction = plan.config.get("topic.transaction", "transaction")
    own = {
        prefix,
        f"{prefix}{delimiter}{transaction}",
        f"{beat}{delimiter}{prefix}",
        *(
            plan.config.get(key, "")
            for key in (
                "schema.history.internal.kafka.topic", "database.history.kafka.topic",
                "signal.kafka.topic", "notification.sink.topic.name", "topic.heartbeat.name",
            )
        ),
    }  # fmt: skip
    return lambda topic: topic in own


def mongodb_sink(plan: Plan, topic: str) -> list[Place]:
    """Topics to collections of one database."""
    name = plan.get("collection.name.format", default="${topic}")
    if "${source." in name:
        plan.problem("collection.name.format: fields of each row decide on the collection")
        return []
    place = plan.place(
        "mongodb", host=plan.get("mongodb.connection.string"), database=plan.get("sink.database"),
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
