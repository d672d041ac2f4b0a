"""The columns of a topic: one rule for the registry, Connect and Spark."""

from __future__ import annotations

import msgspec

from .model import Field, Schema


def topic_schema(value: Schema | None, key: Schema | None = None) -> Schema:
    """A topic as one record: the value's fields, then the key under `key`.

    A value field that is itself called `key` is written `value.key`; a value or key that is no
    record is the field `value` or `key`.
    """
    fields: list[Field] = []
    if value is not None:
        fields += _value(value)
    if key is not None:
        kind = key.type or ""
        fields.append(Field("key", kind, key.description, key.fields))
    return Schema(tuple(fields))


def topic_columns(
    value_schema: Schema | None, key_schema: Schema | None = None
) -> tuple[Field, ...]:
    """The columns of a topic as fields with dotted names, such as `address.city`, `key.order_id`."""
    return topic_schema(value_schema, key_schema).columns()


def _value(value: Schema) -> list[Field]:
    if not value.is_record:
        return [Field("value", value.type, value.description, value.fields)]
    return [
        msgspec.structs.replace(field, name="value.key") if field.name == "key" else field
        for field in value.fields
    ]
