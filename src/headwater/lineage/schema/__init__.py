"""Schemas of every format in one shape, their versions, differences and compatibility."""

from __future__ import annotations

from . import claims
from .avro import read_avro
from .change import Break, Compatibility, SchemaChange, compatible, diff
from .connect import read_connect
from .facet import read_facet, read_fields, replace_fields, write_fields
from .json_schema import read_json_schema
from .model import MAX_DEPTH, MAX_FIELDS, Field, Schema, SchemaError
from .origin import SchemaOrigin, attributed, iceberg_table
from .protobuf import read_protobuf
from .topic import topic_columns, topic_schema
from .types import holds_nothing, normal, same_family, widens

__all__ = [
    "MAX_DEPTH",
    "MAX_FIELDS",
    "Break",
    "Compatibility",
    "Field",
    "Schema",
    "SchemaChange",
    "SchemaError",
    "SchemaOrigin",
    "attributed",
    "claims",
    "compatible",
    "diff",
    "holds_nothing",
    "iceberg_table",
    "normal",
    "read_avro",
    "read_connect",
    "read_facet",
    "read_fields",
    "read_json_schema",
    "read_protobuf",
    "replace_fields",
    "same_family",
    "topic_columns",
    "topic_schema",
    "widens",
    "write_fields",
]
