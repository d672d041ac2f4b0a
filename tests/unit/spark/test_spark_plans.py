"""Plans made by hand: what each kind of node and expression does to columns."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.lineage.model import NULL_TEST_ONLY

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


ORDER = attribute("o", 11, RECORD)
PAID = attribute("p", 12, RECORD)
ID = node("GetStructField", ORDER, child=0, ordinal=0, name="id")
CITY = node(
    "GetStructField",
    node("GetStructField", ORDER, child=0, ordinal=2, name="place"),
    child=0,
    ordinal=0,
    name="city",
)


def nested(expression: Flat, data_type: Any = "long") -> list[str]:
    """The sources of one column made from a table of structs."""
    found = relation(project(table(ORDER, PAID), alias(expression, "x", 9)), n11=source())
    return facts(lineage(found, ("x", 9, data_type)))["x"]


def guarded(child: Flat) -> Flat:
    """A condition as Spark puts it into the functions that it spells out."""
    equal = node("EqualTo", child, literal("0"))
    return node("Cast", node("If", equal, literal(None), child), dataType="long")


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("Md5", "TRANSFORMATION masked"),
        ("XxHash64", "TRANSFORMATION masked"),
        ("NullIf", "TRANSFORMATION"),
        ("ZeroIfNull", "TRANSFORMATION"),
        ("PreciseTimestampConversion", "TRANSFORMATION"),
    ],
)
def test_a_function_of_a_field_takes_that_field_alone(kind: str, way: str) -> None:
    assert nested(node(kind, guarded(ID))) == [f"o.id {way}"]
    assert nested(node(kind, guarded(CITY))) == [f"o.place.city {way}"]


def test_a_field_of_one_of_several_structs_is_that_field_of_each() -> None:
    either = node("Coalesce", ORDER, PAID)
    assert nested(node("GetStructField", either, child=0, ordinal=0, name="id")) == [
        "o.id TRANSFORMATION",
        "p.id TRANSFORMATION",
    ]


def test_a_json_path_that_is_a_column_is_a_source_too() -> None:
    assert nested(node("GetJsonObject", CITY, ID)) == [
        "o.id TRANSFORMATION",
        "o.place.city TRANSFORMATION",
    ]


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


def test_a_filter_that_only_tests_for_null_says_so() -> None:
    def filter_of(condition: Flat) -> list[tuple[str, str | None]]:
        found = relation(plan("Filter", TABLE, condition=condition, child=0), n1=source())
        ((*_, steps),) = [(row.field, row.transformations) for row in lineage(found).dataset]
        return [(step.subtype or "", step.description) for step in steps]

    null = node("IsNull", B)
    assert filter_of(node("Not", null)) == [("FILTER", NULL_TEST_ONLY)]
    assert filter_of(node("And", node("IsNotNull", B), node("Not", null))) == [
        ("FILTER", NULL_TEST_ONLY)
    ]
    for other in (node("GreaterThan", B, literal("1")), node("IsNotNull", node("Abs", B))):
        assert filter_of(node("And", node("IsNotNull", B), other)) == [("FILTER", "")]
    assert one(null) == ["b TRANSFORMATION"]
    conditional = ["a TRANSFORMATION", "b TRANSFORMATION", "b CONDITIONAL"]
    assert one(node("If", node("Or", null, B), A, B)) == conditional


def test_a_recursive_query_is_read_until_nothing_is_new() -> None:
    """Columns change places at each step: the third of them gets its source in the third step."""
    n, m, k = (attribute(name, number) for name, number in (("n", 11), ("m", 12), ("k", 13)))
    before = plan("UnionLoopRef", loopId=0, output=[n, m, k])
    step = project(
        plan("Filter", before, condition=node("GreaterThan", n, literal("1")), child=0),
        alias(m, "n", 14), alias(k, "m", 15), alias(node("Add", n, literal("1")), "k", 16),
    )  # fmt: skip
    loop = plan("UnionLoop", TABLE, step, id=0, outputAttrIds=[{"id": 17}, {"id": 18}, {"id": 19}])
    definition = plan("CTERelationDef", loop, id=0)
    used = plan("CTERelationRef", cteId=0, output=[attribute("x", 21), attribute("y", 22)])
    found = relation(plan("WithCTE", definition, used), n1=source())
    told = facts(lineage(found, ("x", 21, "long"), ("y", 22, "long")))
    assert told["x"] == [
        "a IDENTITY", "a TRANSFORMATION", "b IDENTITY", "b TRANSFORMATION", "c IDENTITY",
        "c TRANSFORMATION",
    ]  # fmt: skip
    # What comes back from the second column to itself has been through all of them.
    assert told["y"] == [
        "a TRANSFORMATION", "b IDENTITY", "b TRANSFORMATION", "c IDENTITY", "c TRANSFORMATION",
    ]  # fmt: skip
    assert {item.field for item in lineage(found).dataset} == {"a", "b", "c"}


def test_the_metadata_of_files_is_no_column_of_theirs() -> None:
    names = ("file_path", "file_name", "file_size", "file_modification_time")
    inside = {"type": "struct", "fields": [{"name": name, "type": "string"} for name in names]}
    for name, sources in (
        ("_metadata", []),
        ("__metadata", []),
        ("metadata", ["metadata.file_path IDENTITY"]),
    ):
        metadata = attribute(name, 7, inside)
        path = node("GetStructField", metadata, child=0, name="file_path", ordinal=0)
        found = relation(project(table(A, metadata), alias(path, "x", 9)), n1=source())
        assert facts(lineage(found, ("x", 9, "string")))["x"] == sources, name


VALUE = attribute("value", 1, "binary")
TOPIC = table(attribute("key", 5, "binary"), VALUE, attribute("offset", 6))


def from_topic(expression: Flat, data_type: Any = "string") -> list[str]:
    found = relation(project(TOPIC, alias(expression, "x", 9)), n5=source(topic=True))
    return facts(lineage(found, ("x", 9, data_type)))["x"]


def test_a_function_of_a_field_of_a_record_takes_that_field_alone() -> None:
    record = project(TOPIC, alias(node("JsonToStructs", VALUE, schema=RECORD), "o", 20))
    field = node("GetStructField", attribute("o", 20, RECORD), child=0, ordinal=0, name="id")
    window = alias(node("PreciseTimestampConversion", guarded(field)), "x", 9)
    found = relation(project(record, window), n5=source(topic=True))
    assert facts(lineage(found, ("x", 9, "long"))) == {"x": ["id TRANSFORMATION"]}


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
