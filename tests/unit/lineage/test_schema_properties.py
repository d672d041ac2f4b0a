"""What holds for every schema, whatever the input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage import schema as schemas
from headwater.lineage.schema import Field, Schema
from tests.properties import examples

names = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
types = st.sampled_from(["int", "long", "string", "decimal(10,2)", "array<int>", "boolean", ""])
leaves = st.builds(Field, names, types, st.text(max_size=5), nullable=st.sampled_from([None, True]))


def uniquely(fields: list[Field]) -> tuple[Field, ...]:
    return tuple({field.name: field for field in fields}.values())


def records(inner: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    children = st.lists(inner, min_size=1, max_size=3).map(uniquely)
    return st.builds(lambda name, fields: Field(name, "struct", fields=fields), names, children)


trees = st.recursive(leaves, records, max_leaves=6)
some = st.lists(trees, max_size=4).map(lambda fields: Schema(uniquely(fields)))

json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["record"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "name",
                    "fields",
                    "items",
                    "values",
                    "$ref",
                    "properties",
                    "oneOf",
                    "allOf",
                    "schema",
                    "field",
                    "keys",
                    "logicalType",
                    "enum",
                    "required",
                    "size",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(some)
def test_nothing_changes_between_a_schema_and_itself(schema: Schema) -> None:
    assert schemas.diff(schema, schema) == []
    assert schemas.compatible(schema, schema)


@given(some)
def test_the_order_of_fields_does_not_make_a_version(schema: Schema) -> None:
    turned = Schema(tuple(reversed(schema.fields)))
    assert turned.version == schema.version
    assert schemas.diff(schema, turned) == []


@given(some, some)
@examples(50)
def test_a_difference_of_shape_is_a_difference_of_version(old: Schema, new: Schema) -> None:
    if schemas.diff(old, new):
        assert old.version != new.version


@given(some, some)
@examples(50)
def test_adding_fields_breaks_nobody(old: Schema, more: Schema) -> None:
    new = Schema(uniquely([*more.fields, *old.fields]))
    assert schemas.compatible(old, new)


@given(some)
def test_a_facet_comes_back(schema: Schema) -> None:
    again = schemas.read_facet({"fields": schemas.write_fields(schema)})
    assert schemas.diff(schema, again) == []
    assert [f.name for f in again.columns()] == [f.name for f in schema.columns()]


@given(some, some)
@examples(50)
def test_key_columns_stand_under_key(value: Schema, key: Schema) -> None:
    columns = [field.name for field in schemas.topic_columns(value, key)]
    own = [name for name in columns if name != "key" and not name.startswith("key.")]
    assert own == [
        f"value.{field.name}" if field.name.split(".")[0] == "key" else field.name
        for field in value.columns()
    ]
    assert [name for name in columns if name not in own] == (
        [f"key.{field.name}" for field in key.columns()] or ["key"]
    )


@pytest.mark.parametrize(
    "read", [schemas.read_avro, schemas.read_json_schema, schemas.read_connect, schemas.read_facet]
)
@given(data=json_like)
def test_odd_input_is_read_or_refused(read: Any, data: Any) -> None:
    try:
        schema = read(data)
    except schemas.SchemaError:
        return
    assert len(schema.version) == 32


@given(
    st.lists(
        st.sampled_from(
            [
                "message",
                "M",
                "{",
                "}",
                "int32",
                "x",
                "=",
                "1",
                ";",
                "oneof",
                "map",
                "<",
                ">",
                ",",
                "repeated",
                "enum",
                "group",
                "option",
                "[",
                "]",
                '"s"',
                "import",
                "optional",
                "//",
                "\n",
            ]
        ),
        max_size=30,
    )
)
def test_odd_proto_text_is_read_or_refused(words: list[str]) -> None:
    try:
        schema = schemas.read_protobuf(" ".join(words))
    except schemas.SchemaError:
        return
    assert schema.is_record


@given(types, types, types)
def test_widening_goes_through(a: str, b: str, c: str) -> None:
    assert schemas.widens(a, a)
    if schemas.widens(a, b) and schemas.widens(b, c):
        assert schemas.widens(a, c)
