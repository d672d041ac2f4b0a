"""Plans made by hand: what each kind of node and expression does to columns."""

from __future__ import annotations

from typing import Any

import pytest

from .plans import (
    Flat,
    alias,
    attribute,
    facts,
    lineage,
    literal,
    node,
    plan,
    project,
    relation,
    source,
    table,
)

A, B, C = attribute("a", 1), attribute("b", 2), attribute("c", 3, "string")
TABLE = table(A, B, C)
RECORD = {"type": "struct", "fields": [
    {"name": "id", "type": "long"}, {"name": "key", "type": "string"},
    {"name": "place", "type": {"type": "struct", "fields": [{"name": "city", "type": "string"}]}},
]}  # fmt: skip


def one(expression: Flat, data_type: Any = "long") -> list[str]:
    """The sources of one column made from the table."""
    found = relation(project(TABLE, alias(expression, "x", 9)), n1=source())
    return facts(lineage(found, ("x", 9, data_type)))["x"]


def test_a_column_handed_on_is_the_same_column() -> None:
    assert one(A) == ["a IDENTITY"]


def test_arithmetic_is_a_transformation_of_every_column_in_it() -> None:
    assert one(node("Add", A, B, left=0, right=1)) == ["a TRANSFORMATION", "b TRANSFORMATION"]


def test_a_very_deep_sum_is_read() -> None:
    total = A
    for _ in range(5000):
        total = node("Add", total, B, left=0, right=1)
    assert one(total) == ["a TRANSFORMATION", "b TRANSFORMATION"]


@pytest.mark.parametrize("kind", ["Md5", "Sha1", "Sha2", "XxHash64", "Murmur3Hash", "Crc32"])
def test_a_hash_masks(kind: str) -> None:
    assert one(node(kind, C)) == ["c TRANSFORMATION masked"]


def aggregate(function: str, *children: Flat) -> Flat:
    return node("AggregateExpression", node(function, *children), aggregateFunction=0)


@pytest.mark.parametrize(
    ("kind", "way"),
    [("NullIf", "AGGREGATION"), ("IfNull", "AGGREGATION"), ("Md5", "AGGREGATION masked")],
)
def test_an_aggregate_stays_one_inside_of_a_function_read_as_one(kind: str, way: str) -> None:
    total = aggregate("Sum", A)
    equal = node("EqualTo", total, literal("0"))
    assert one(node(kind, node("If", equal, literal("0"), total))) == [f"a {way}"]


def test_a_query_inside_of_a_hash_is_hidden_with_it() -> None:
    inner = project(table(attribute("d", 21)), alias(attribute("d", 21), "d", 22))
    hashed = node("Md5", node("ScalarSubquery", plan=inner))
    found = relation(project(TABLE, alias(hashed, "x", 9)), n1=source(), n21=source("u"))
    assert facts(lineage(found, ("x", 9, "string")))["x"] == ["d TRANSFORMATION masked"]


def test_what_orders_a_list_of_texts_is_no_part_of_it() -> None:
    order = node("SortOrder", B, child=0)
    assert one(aggregate("ListAgg", C, literal(","), order)) == ["b SORT", "c AGGREGATION"]


def test_a_column_that_enters_masked_and_bare_shows_both() -> None:
    expression = node("Concat", node("Md5", C), C)
    assert one(expression) == ["c TRANSFORMATION", "c TRANSFORMATION masked"]


def test_conditions_are_indirect_and_branches_direct() -> None:
    expression = node("CaseWhen", node("GreaterThan", A, literal("1")), B, C)
    assert one(expression) == ["a CONDITIONAL", "b TRANSFORMATION", "c TRANSFORMATION"]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("integer", "long", True),
        ("long", "integer", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(10,4)", False),
        ("binary", "string", True),
        ("integer", "string", False),
        ("integer", "decimal(20,2)", True),
        ("float", "double", True),
    ],
)
def test_a_cast_that_loses_nothing_is_no_transformation(
    before: str, after: str, kept: bool
) -> None:
    child = attribute("a", 1, before)
    found = relation(
        project(table(child), alias(node("Cast", child, child=0, dataType=after), "x", 9)),
        n1=source(),
    )
    way = "IDENTITY" if kept else "TRANSFORMATION"
    assert facts(lineage(found, ("x", 9, after)))["x"] == [f"a {way}"]


def test_a_leaf_nobody_knows_gives_unknown_columns() -> None:
    found = relation(project(TABLE, alias(node("Add", A, B), "x", 9), C))
    told = lineage(found, ("x", 9, "long"), ("c", 3, "string"))
    assert told.unknown == ("x", "c")
    assert not told.fields


def test_a_node_nobody_knows_hands_on_what_it_has_and_adds_unknown_columns() -> None:
    found = relation(plan("SomethingNew", TABLE, output=[A, attribute("new", 8)]), n1=source())
    told = lineage(found, ("a", 1, "long"), ("new", 8, "long"))
    assert facts(told) == {"a": ["a IDENTITY"]}
    assert told.unknown == ("new",)


def test_an_expand_whose_lines_are_missing_is_unknown_and_not_wrong() -> None:
    expand = plan("Expand", TABLE, projections=None, output=[A, attribute("v", 7)])
    told = lineage(relation(expand, n1=source()), ("a", 1, "long"), ("v", 7, "long"))
    assert told.unknown == ("v",)


def test_the_indirect_sources_of_rows() -> None:
    joined = plan(
        "Join", TABLE, table(attribute("d", 4)), left=0, right=1,
        joinType={"object": "x.Inner$"}, condition=node("EqualTo", A, attribute("d", 4)),
    )  # fmt: skip
    filtered = plan("Filter", joined, condition=node("IsNotNull", B), child=0)
    sorted_ = plan("Sort", filtered, order=[node("SortOrder", C)], child=0)
    found = relation(sorted_, n1=source("t"), n4=source("u"))
    rows = {(item.field, item.transformations[0].subtype) for item in lineage(found).dataset}
    assert rows == {("a", "JOIN"), ("d", "JOIN"), ("b", "FILTER"), ("c", "SORT")}


VALUE = attribute("value", 1, "binary")
TOPIC = table(attribute("key", 5, "binary"), VALUE, attribute("offset", 6))


def from_topic(expression: Flat, data_type: Any = "string") -> list[str]:
    found = relation(project(TOPIC, alias(expression, "x", 9)), n5=source(topic=True))
    return facts(lineage(found, ("x", 9, data_type)))["x"]


def field(child: Flat, name: str, ordinal: int) -> Flat:
    return node("GetStructField", child, child=0, name=name, ordinal=ordinal)


@pytest.mark.parametrize(("name", "ordinal", "column"), [("id", 0, "id"), ("key", 1, "value.key")])
def test_fields_of_a_record_are_columns_of_the_topic(name: str, ordinal: int, column: str) -> None:
    text = node("Cast", VALUE, child=0, dataType="string")
    decoded = node("JsonToStructs", text, child=0, schema=RECORD)
    assert from_topic(field(decoded, name, ordinal)) == [f"{column} IDENTITY"]


def test_a_protobuf_message_gives_columns_without_its_schema() -> None:
    decoded = node("ProtobufDataToCatalyst", VALUE, child=0, messageName="Order")
    inner = field(field(decoded, "place", 2), "city", 0)
    assert from_topic(decoded, None) == ["value IDENTITY"]
    assert from_topic(inner) == ["place.city IDENTITY"]
    assert from_topic(field(decoded, "id", 0)) == ["id IDENTITY"]


def test_key_fields_stand_below_key() -> None:
    key = attribute("key", 5, "binary")
    decoded = node("JsonToStructs", node("Cast", key, dataType="string"), schema=RECORD)
    assert from_topic(field(decoded, "id", 0)) == ["key.id IDENTITY"]


def test_facts_about_the_record_are_no_columns_of_it() -> None:
    assert from_topic(attribute("offset", 6)) == []
