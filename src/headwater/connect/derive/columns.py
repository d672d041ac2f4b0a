"""Columns along one edge: from a topic into a table, from a table into a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.connect.transforms import UnknownColumnsError
from headwater.connect.transforms.record import (
    IDENTITY,
    Column,
    FieldNode,
    Record,
    changed,
    from_schema,
    to_schema,
)
from headwater.lineage.columns import combine
from headwater.lineage.schema import Schema, topic_schema

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context
    from headwater.connect.derive.family import ColumnProjection, ExternalDataset, SourceTopic
    from headwater.connect.derive.metadata import TopicSchema
    from headwater.connect.transforms.record import Half
    from headwater.lineage.model import Transformation
    from headwater.lineage.schema import Field


class ColumnPair(NamedTuple):
    """One column of an input that enters one column of an output."""

    input: str
    output: str
    transformation: Transformation


Columns = tuple[ColumnPair, ...] | None
_HALVES: tuple[Half, ...] = ("value", "key")


def into_sink(
    context: Context, topic: str, schema: TopicSchema | None, place: ExternalDataset
) -> tuple[Columns, Schema | None]:
    """The column edges from a topic into a sink's dataset, and the columns it gets.

    Of a dataset whose columns are known, only those that it has.
    """
    edges, fields = _projected(context, topic, schema, place.columns)
    if place.dataset.schema is None or edges is None:
        return edges, fields
    have = {_folded(f.name, place): f.name for f in place.dataset.schema.columns(containers=True)}
    named = ((have.get(_folded(edge.output, place)), edge) for edge in edges)
    kept = (edge._replace(output=name) for name, edge in named if name)
    return tuple(kept), place.dataset.schema


def _folded(name: str, place: ExternalDataset) -> str:
    return name.lower() if place.any_case else name


def _projected(
    context: Context, topic: str, schema: TopicSchema | None, columns: ColumnProjection
) -> tuple[Columns, Schema | None]:
    if not columns.known:
        return None, None
    record = context.chain.forward(topic, from_schema(schema))
    untouched = not any(link.step.reshapes for link in context.chain.links)
    if columns.explicit is not None:
        return _explicit(record, columns, untouched)
    if record.value is None:
        if columns.only and untouched:
            names = sorted(columns.only)
            return tuple(ColumnPair(Column("value", (n,)).name, n, IDENTITY) for n in names), None
        return None, None
    whole = FieldNode("", "struct", tuple(_fields(record, columns)))
    edges = [
        ColumnPair(origin.column, ".".join(path), origin.how)
        for path, leaf in whole.leaves()
        for origin in leaf.origins
    ]
    return tuple(edges), to_schema(whole)


def into_topic(
    context: Context, origin: SourceTopic, schema: TopicSchema | None
) -> tuple[Columns, Schema | None]:
    """The column edges from a store into a source's topic, and the store's columns so far seen."""
    if schema is None or (schema.value is None and schema.key is None):
        return None, None
    edges: dict[ColumnPair, None] = {}
    rows: dict[str, Field] = {}
    final = from_schema(schema)
    types = {f.name: f for f in topic_schema(schema.value, schema.key).columns()}
    try:
        for half in _HALVES:
            node = final.half(half)
            paths = (
                [()] if node and not node.fields else [p for p, _ in node.leaves()] if node else []
            )
            for path in paths:
                for edge in _origins(context, origin, Column(half, path)):
                    edges[edge] = None
                    if half == "value" and edge.output in types:
                        rows.setdefault(edge.input, types[edge.output])
    except UnknownColumnsError:
        return None, None
    if origin.shape == "same":
        return tuple(edges), known_schema(schema) if not context.chain.links else None
    return tuple(edges), _row_schema(context, origin, rows)


def known_schema(schema: TopicSchema | None) -> Schema | None:
    """A topic's columns in one schema."""
    if schema is None or (schema.value is None and schema.key is None):
        return None
    return topic_schema(schema.value, schema.key)


def _origins(context: Context, origin: SourceTopic, column: Column) -> list[ColumnPair]:
    found = context.chain.back(origin.topic, column)
    if found is None:
        return []
    (half, path), how = found
    if origin.columns is not None:
        if half != "value" or not path or path[0] not in origin.columns:
            return []
        names, plain = origin.columns[path[0]]
        how = how if plain else combine(changed("query"), how)
        return [ColumnPair(name, column.name, how) for name in names]
    if origin.shape == "same":
        return [ColumnPair(Column(half, path).name, column.name, how)]
    if origin.shape == "change":
        if half == "value":
            path = path[1:] if path[:1] in (("after",), ("before",)) else ()
        return [ColumnPair(".".join(path), column.name, how)] if path else []
    if origin.shape == "row":
        named = half == "value" and path
        return [ColumnPair(".".join(path), column.name, how)] if named else []
    raise UnknownColumnsError(origin.topic)


def _row_schema(context: Context, origin: SourceTopic, rows: dict[str, Field]) -> Schema | None:
    if origin.shape not in ("row", "change") or not rows or context.chain.loses(origin.topic):
        return None
    return Schema(tuple(msgspec.structs.replace(f, name=name) for name, f in rows.items()))


def _explicit(
    record: Record, columns: ColumnProjection, untouched: bool
) -> tuple[Columns, Schema | None]:
    edges: list[ColumnPair] = []
    for output, (half, path) in columns.explicit or ():
        node = record.half(half)
        if node is None:
            if not untouched:
                return None, None
            edges.append(ColumnPair(Column(half, path).name, output, IDENTITY))
            continue
        here: FieldNode | None = node
        for name in path:
            here = here.get(name) if here else None
        origins = here.all_origins() if here else ()
        edges += [ColumnPair(origin.column, output, origin.how) for origin in origins]
    return tuple(edges), None


def _fields(record: Record, columns: ColumnProjection) -> list[FieldNode]:
    value = record.value
    assert value is not None
    if columns.unwrap and (after := value.get("after")) and value.get("op"):
        value = after
    fields = list(value.fields) if value.is_record else [value.renamed("value")]
    if columns.drop:
        fields = [field for field in fields if field.name not in columns.drop]
    if columns.only is not None:
        fields = [field for field in fields if field.name in columns.only]
    if columns.keys is not None and record.key is not None:
        fields = [*_keys(record.key, columns.keys, {f.name for f in fields}), *fields]
    if columns.nested_key and record.key is not None:
        fields = [*fields, record.key.renamed(columns.nested_key)]
    if columns.rename:
        fields = [field.renamed(columns.rename(field.name)) for field in fields]
    return fields


def _keys(key: FieldNode, wanted: tuple[str, ...], have: set[str]) -> list[FieldNode]:
    if not key.is_record:
        return [key.renamed(name) for name in wanted[:1] if name not in have]
    return [f for f in key.fields if f.name not in have and (not wanted or f.name in wanted)]
