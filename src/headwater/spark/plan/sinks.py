"""Sinks of streaming queries: where a stream writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.spark.jvm import attempt, class_name, hidden, kind, option
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import files, formats, kafka, relations
from headwater.spark.stores.catalog import identifier_of

if TYPE_CHECKING:
    from headwater.lineage.model import Dataset
    from headwater.spark.jvm import JvmSession

_INITIALIZED_MILLIS = 5000


class Sink(NamedTuple):
    """Where a stream writes to; `options` belong to Kafka, whose topic may be a column."""

    outputs: tuple[Dataset, ...] = ()
    options: dict[str, str] | None = None
    foreach_batch: bool = False


def read_sink(session: JvmSession, query: Any) -> Sink:
    """The sink of a started `StreamExecution`."""
    sink = query.sink()
    name = class_name(sink)
    options = session.mapping(hidden(query, "extraOptions"))
    plan = hidden(query, "plan")
    table = option(attempt(plan, "catalogTable")) if plan is not None else None
    if kafka.is_kafka(name):
        return Sink(options=options or _continuous(session, query))
    if table is not None:
        found = catalogs.read_table(session, table, "streaming sink")
        return Sink((_as_it_is_now(session, found, table),) if found is not None else ())
    if kind(sink) == "FileStreamSink":
        file_format = files.format_of(hidden(sink, "fileFormat"))
        found = files.one(str(hidden(sink, "path")), file_format, "streaming sink")
        return Sink((found,) if found is not None else ())
    table_format = formats.owner(name)
    found = table_format.sink(session, sink, options) if table_format is not None else None
    if found is not None:
        return Sink((found,))
    if relations.is_quiet(kind(sink)):
        return Sink(foreach_batch=kind(sink).startswith("ForeachBatch"))
    return Sink(_table(session, sink, plan, options))


def _continuous(session: JvmSession, query: Any) -> dict[str, str]:
    """The options of a Kafka sink with a continuous trigger: that execution keeps none of its own.

    Its plan is made on the thread of the query, and holds the topic and the producer's settings.
    """
    query.awaitInitialization(_INITIALIZED_MILLIS)
    write = attempt(hidden(query, "logicalPlan"), "write")
    if write is None:
        session.problem(
            "the plan of a continuous query was not made in time: its topic is not known"
        )
        return {}
    producer = session.mapping(hidden(write, "producerParams"))
    options = {f"kafka.{key}": value for key, value in producer.items()}
    topic = option(hidden(write, "topic"))
    return options if topic is None else {**options, "topic": str(topic)}


def _as_it_is_now(session: JvmSession, found: Dataset, table: Any) -> Dataset:
    """A table with the columns it has now: a running query keeps it as it was at the start."""
    name = table.identifier()
    database = option(name.database()) or "default"
    return catalogs.with_schema(session, found, catalogs.described(session, database, name.table()))


def _table(
    session: JvmSession, sink: Any, plan: Any, options: dict[str, str]
) -> tuple[Dataset, ...]:
    catalog, identifier = None, list[str]()
    pair = option(attempt(plan, "catalogAndIdent")) if plan is not None else None
    if pair is not None:
        catalog, identifier = pair.productElement(0), identifier_of(pair.productElement(1))
    source = relations.table(session, sink, catalog, identifier, options)
    if source is None:
        return ()
    now = catalogs.loaded(catalog, pair.productElement(1)) if pair is not None else None
    return tuple(catalogs.with_schema(session, one, now) for one in source.datasets)
