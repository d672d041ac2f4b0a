"""Sinks of streaming queries: where a stream writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.spark.jvm import attempt, class_name, hidden, kind, option
from headwater.spark.stores import delta, files, hudi, kafka, relations, tables
from headwater.spark.stores.iceberg import identifier_of

if TYPE_CHECKING:
    from headwater.spark.jvm import World
    from headwater.spark.model import Dataset


class Sink(NamedTuple):
    """Where a stream writes to; `options` belong to Kafka, whose topic may be a column."""

    outputs: tuple[Dataset, ...] = ()
    options: dict[str, str] | None = None
    foreach_batch: bool = False


def read_sink(world: World, query: Any) -> Sink:
    """The sink of a started `StreamExecution`."""
    sink = query.sink()
    name = class_name(sink)
    options = world.mapping(hidden(query, "extraOptions"))
    plan = hidden(query, "plan")
    table = option(attempt(plan, "catalogTable")) if plan is not None else None
    if kafka.is_kafka(name):
        return Sink(options=options)
    if table is not None:
        found = tables.read_table(world, table, "streaming sink")
        return Sink((found,) if found is not None else ())
    if kind(sink) == "FileStreamSink":
        word = files.format_of(hidden(sink, "fileFormat"))
        found = files.one(str(hidden(sink, "path")), word, "streaming sink")
        return Sink((found,) if found is not None else ())
    if delta.is_delta(name):
        path = attempt(sink, "path")
        return Sink(files.by_paths([str(path)], "delta", "streaming sink") if path else ())
    if hudi.is_hudi(name):
        place = options.get("path", "")
        return Sink(files.by_paths([place], "hudi", "streaming sink") if place else ())
    if relations.is_quiet(kind(sink)):
        return Sink(foreach_batch=kind(sink).startswith("ForeachBatch"))
    return Sink(_table(world, sink, plan, options))


def _table(world: World, sink: Any, plan: Any, options: dict[str, str]) -> tuple[Dataset, ...]:
    catalog, identifier = None, list[str]()
    pair = option(attempt(plan, "catalogAndIdent")) if plan is not None else None
    if pair is not None:
        catalog, identifier = pair.productElement(0), identifier_of(pair.productElement(1))
    source = relations.table(world, sink, catalog, identifier, options)
    return source.datasets if source is not None else ()
