"""The chain of transforms: names, fields forward, columns back."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.connect.derive.metadata import TopicSchema
from headwater.connect.transforms import Chain, TopicName, UnknownColumnsError
from headwater.connect.transforms.record import Column, Record, from_schema
from headwater.lineage.schema import read_avro

from .cases import avro

KAFKA = "org.apache.kafka.connect.transforms."
DEBEZIUM = "io.debezium.transforms."
COMMON = "com.github.jcustenborder.kafka.connect.transform.common."


def chain(*steps: tuple[str, dict[str, str]], **more: str) -> Chain:
    config = {"transforms": ",".join(f"t{i}" for i in range(len(steps)))}
    for i, (kind, options) in enumerate(steps):
        config[f"transforms.t{i}.type"] = kind
        config |= {f"transforms.t{i}.{key}": value for key, value in options.items()}
    return Chain({**config, **{key.replace("__", "."): value for key, value in more.items()}})


def flow(record: Record) -> dict[str, list[str]]:
    """Every leaf of value and key with where it came from."""
    found: dict[str, list[str]] = {}
    for half in ("value", "key"):
        node = record.value if half == "value" else record.key
        if node is None:
            found[half] = ["unknown"]
            continue
        leaves = list(node.leaves()) or [((), node)]
        for path, leaf in leaves:
            name = ".".join((half, *path))
            found[name] = [
                o.column + ("*" if o.how.masking else "~" if o.how.subtype != "IDENTITY" else "")
                for o in leaf.origins
            ]
    return found


def record(value: Any, key: Any = None) -> Record:
    return from_schema(TopicSchema(avro(value), avro(key)))


@pytest.mark.parametrize(
    ("steps", "value", "expected"),
    [
        ([(f"{KAFKA}ReplaceField$Value", {"exclude": "b"})], ["a", "b"], {"value.a": ["a"]}),
        ([(f"{KAFKA}ReplaceField$Value", {"whitelist": "b"})], ["a", "b"], {"value.b": ["b"]}),
        (
            [(f"{KAFKA}ReplaceField$Value", {"renames": "a:x"})],
            ["a", "b"],
            {"value.x": ["a"], "value.b": ["b"]},
        ),
        ([(f"{KAFKA}ExtractField$Value", {"field": "a"})], ["a", "b"], {"value": ["a"]}),
        (
            [(f"{KAFKA}ExtractField$Value", {"field": "a.c", "field.syntax.version": "V2"})],
            [{"a": ["c", "d"]}],
            {"value": ["a.c"]},
        ),
        ([(f"{KAFKA}HoistField$Value", {"field": "line"})], "string", {"value.line": ["value"]}),
        (
            [(f"{KAFKA}Flatten$Value", {"delimiter": "_"})],
            [{"a": ["c", {"d": ["e"]}]}, "b"],
            {"value.a_c": ["a.c"], "value.a_d_e": ["a.d.e"], "value.b": ["b"]},
        ),
        (
            [(f"{KAFKA}MaskField$Value", {"fields": "a"})],
            ["a", "b"],
            {"value.a": ["a*"], "value.b": ["b"]},
        ),
        ([(f"{KAFKA}Cast$Value", {"spec": "a:int32"})], ["a"], {"value.a": ["a~"]}),
        ([(f"{KAFKA}Cast$Value", {"spec": "int32"})], "string", {"value": ["value~"]}),
        (
            [(f"{KAFKA}TimestampConverter$Value", {"field": "a", "target.type": "Date"})],
            ["a"],
            {"value.a": ["a~"]},
        ),
        (
            [(f"{KAFKA}InsertField$Value", {"offset.field": "off!", "topic.field": "t?"})],
            ["a"],
            {"value.a": ["a"], "value.off": [], "value.t": []},
        ),
        (
            [(f"{KAFKA}HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "move"})],
            ["a", "b"],
            {"value.b": ["b"]},
        ),
        (
            [(f"{KAFKA}HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "copy"})],
            ["a"],
            {"value.a": ["a"]},
        ),
        ([(f"{KAFKA}SetSchemaMetadata$Value", {"schema.name": "x"})], ["a"], {"value.a": ["a"]}),
        (
            [(f"{DEBEZIUM}ExtractNewRecordState", {"add.fields": "op,source.ts"})],
            [{"before": ["id"]}, {"after": ["id"]}, {"source": ["ts"]}, "op"],
            {"value.id": ["after.id"], "value.__op": ["op"], "value.__source_ts": ["source.ts"]},
        ),
        ([(f"{DEBEZIUM}ExtractNewRecordState", {})], ["id"], {"value.id": ["id"]}),
        (
            [(f"{DEBEZIUM}HeaderToValue", {"headers": "h", "fields": "x", "operation": "copy"})],
            ["a"],
            {"value.a": ["a"], "value.x": []},
        ),
        ([("io.factorhouse.smt.OpenLineageLifecycleSmt", {})], ["a"], {"value.a": ["a"]}),
        ([(f"{DEBEZIUM}ExtractChangedRecordState", {})], ["a"], {"value.a": ["a"]}),
        (
            [
                (f"{KAFKA}MaskField$Value", {"fields": "a"}),
                (f"{KAFKA}Cast$Value", {"spec": "a:string"}),
            ],
            ["a"],
            {"value.a": ["a*"]},
        ),
        ([("com.acme.Scramble$Value", {})], ["a"], {"value": ["unknown"]}),
    ],
)
def test_fields_forward(
    steps: list[tuple[str, dict[str, str]]], value: Any, expected: dict[str, list[str]]
) -> None:
    got = flow(chain(*steps).forward("t", record(value)))
    got.pop("key")
    assert got == expected


def test_a_key_from_the_value() -> None:
    steps = chain(
        (f"{KAFKA}ValueToKey", {"fields": "id"}), (f"{KAFKA}ExtractField$Key", {"field": "id"})
    )
    assert flow(steps.forward("t", record(["id", "x"], "string")))["key"] == ["id"]
    found = steps.back("t", Column("key", ()))
    assert found is not None
    assert found[0] == Column("value", ("id",))


def test_columns_back() -> None:
    steps = chain(
        (f"{DEBEZIUM}ExtractNewRecordState", {"add.fields": "op"}),
        (f"{KAFKA}ReplaceField$Value", {"renames": "a:x"}),
        (f"{KAFKA}MaskField$Value", {"fields": "x"}),
        (f"{KAFKA}InsertField$Value", {"static.field": "s", "static.value": "1"}),
        (f"{KAFKA}HoistField$Value", {"field": "doc"}),
    )
    found = steps.back("t", Column("value", ("doc", "x")))
    assert found is not None
    assert found[0] == Column("value", ("after", "a"))
    assert found[1].masking
    assert steps.back("t", Column("value", ("doc", "s"))) is None
    added = steps.back("t", Column("value", ("doc", "__op")))
    assert added is not None
    assert added[0] == Column("value", ("op",))
    with pytest.raises(UnknownColumnsError):
        chain(("com.acme.Scramble", {})).back("t", Column("value", ("a",)))


@pytest.mark.parametrize(
    ("negate", "topic", "name"),
    [("false", "a", "A"), ("false", "b", "b"), ("true", "a", "a"), ("true", "b", "A")],
)
def test_a_predicate_on_the_name(negate: str, topic: str, name: str) -> None:
    steps = chain(
        (
            f"{KAFKA}RegexRouter",
            {"regex": ".*", "replacement": "A", "predicate": "p", "negate": negate},
        ),
        predicates="p",
        predicates__p__type=f"{KAFKA}predicates.TopicNameMatches",
        predicates__p__pattern="a",
    )
    assert steps.names(topic) == [TopicName(name)]


def test_predicates_on_records_leave_both_names() -> None:
    steps = chain(
        (f"{KAFKA}RegexRouter", {"regex": ".*", "replacement": "A", "predicate": "p"}),
        predicates="p",
        predicates__p__type=f"{KAFKA}predicates.HasHeaderKey",
    )
    assert steps.names("a") == [TopicName("A"), TopicName("a")]


def test_the_chain_is_followed_in_order() -> None:
    steps = chain(
        (f"{KAFKA}RegexRouter", {"regex": "a", "replacement": "b"}),
        (f"{KAFKA}RegexRouter", {"regex": "b", "replacement": "c"}),
        (f"{KAFKA}RegexRouter", {"regex": "a", "replacement": "never"}),
    )
    assert steps.names("a") == [TopicName("c")]


def test_times_in_names() -> None:
    (name,) = chain((f"{KAFKA}TimestampRouter", {"timestamp.format": "yyyy.MM.dd"})).names("logs")
    assert name.text == "logs"
    assert name.fits("logs-2026.08.01")
    assert not name.fits("logs-today")
    assert not name.fits("other-2026.08.01")


def test_a_router_by_rows_fits_what_its_pattern_says() -> None:
    (name,) = chain((f"{DEBEZIUM}outbox.EventRouter", {})).names("srv.public.outbox")
    assert name.open
    assert name.fits("outbox.event.order")
    assert not name.fits("srv.public.outbox")
    options = {"route.topic.replacement": "events"}
    assert chain((f"{DEBEZIUM}outbox.EventRouter", options)).names("x") == [TopicName("events")]


def test_dropped_topics_have_no_name() -> None:
    assert chain((f"{KAFKA}Filter", {})).names("a") == []


def test_a_bad_expression_is_said_and_changes_nothing() -> None:
    steps = chain((f"{KAFKA}RegexRouter", {"regex": "((", "replacement": "x"}))
    assert steps.names("a") == [TopicName("a")]
    assert steps.problems


def test_columns_of_other_tasks_are_unknown_under_a_condition() -> None:
    steps = chain(
        (f"{KAFKA}MaskField$Value", {"fields": "a", "predicate": "p"}),
        predicates="p",
        predicates__p__type=f"{KAFKA}predicates.HasHeaderKey",
    )
    assert steps.forward("t", record(["a"])).value is None
    with pytest.raises(UnknownColumnsError):
        steps.back("t", Column("value", ("a",)))


AIVEN = "io.aiven.kafka.connect.transforms."


@pytest.mark.parametrize(
    ("kind", "options", "topic", "becomes"),
    [
        ("io.debezium.connector.jdbc.transforms.CollectionNameTransformation",
         {"collection.naming.prefix": "p_", "collection.naming.style": "UPPER_CASE"},
         "srv.orders", [TopicName("p_SRV.ORDERS")]),
        (f"{COMMON}ChangeTopicCase",
         {"from": "LOWER_HYPHEN", "to": "UPPER_CAMEL"}, "web-site-clicks", [TopicName("WebSiteClicks")]),
        (f"{COMMON}ChangeTopicCase",
         {"from": "UPPER_CAMEL", "to": "LOWER_UNDERSCORE"}, "WebClicks", [TopicName("web_clicks")]),
        (f"{AIVEN}ExtractTopic$Value", {"field.name": "t"}, "orders", [TopicName("", ".+", open=True)]),
        (f"{AIVEN}TombstoneHandler", {"behavior": "drop_silent"}, "orders", [TopicName("orders")]),
        (f"{COMMON}LowerCaseTopic", {}, "Orders", [TopicName("orders")]),
        (f"{COMMON}SchemaNameToTopic$Value", {}, "orders", [TopicName("", ".+", open=True)]),
        ("io.lenses.connect.smt.header.InsertWallclock", {"header.name": "t"}, "orders",
         [TopicName("orders")]),
    ],
)  # fmt: skip
def test_names_by_other_vendors(
    kind: str, options: dict[str, str], topic: str, becomes: list[TopicName]
) -> None:
    found = chain((kind, options))
    assert found.names(topic) == becomes
    assert found.unknown == []


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (f"{AIVEN}Hash$Value", {"field.name": "a"}, {"value.a": ["a*"], "value.b": ["b"]}),
        (f"{AIVEN}CaseTransform$Value", {"field.names": "b"}, {"value.a": ["a"], "value.b": ["b~"]}),
        (f"{AIVEN}ConcatFields$Value", {"field.names": "a,b", "output.field.name": "c"},
         {"value.a": ["a"], "value.b": ["b"], "value.c": ["a~", "b~"]}),
        (f"{COMMON}ChangeCase$Value", {"from": "LOWER_CAMEL", "to": "UPPER_UNDERSCORE"},
         {"value.A": ["a"], "value.B": ["b"]}),
        (f"{COMMON}PatternRename$Value", {"field.pattern": "A", "field.replacement": "x_$0"},
         {"value.x_a": ["a"], "value.b": ["b"]}),
        (f"{COMMON}BytesToString$Value", {"fields": "a"}, {"value.a": ["a~"], "value.b": ["b"]}),
        (f"{COMMON}ToLong$Value", {"fields": "b"}, {"value.a": ["a"], "value.b": ["b~"]}),
        (f"{COMMON}ToJSON$Value", {}, {"value": ["a~", "b~"]}),
        (f"{COMMON}ExtractXPath$Value", {"input.field": "a", "output.field": "c"},
         {"value.a": ["a"], "value.b": ["b"], "value.c": ["a~"]}),
        (f"{COMMON}PatternMapString$Value", {"src.field.name": "a", "dest.field.name": "a"},
         {"value.b": ["b"], "value.a": ["a~"]}),
        (f"{COMMON}TopicNameToField$Value", {"field": "t"},
         {"value.a": ["a"], "value.b": ["b"], "value.t": []}),
        (f"{COMMON}HeaderToField$Value", {"header.mappings": "h:STRING,i:STRING:j"},
         {"value.a": ["a"], "value.b": ["b"], "value.h": [], "value.j": []}),
        (f"{COMMON}SetMaximumPrecision$Value", {"precision.max": "9"},
         {"value.a": ["a"], "value.b": ["b"]}),
        ("io.confluent.connect.transforms.GzipDecompress$Value", {},
         {"value.a": ["a~"], "value.b": ["b~"]}),
    ],
)  # fmt: skip
def test_fields_by_other_vendors(
    kind: str, options: dict[str, str], expected: dict[str, list[str]]
) -> None:
    after = chain((kind, options)).forward("t", record(["a", "b"]))
    found = flow(after)
    assert {key: value for key, value in found.items() if key != "key"} == expected


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (f"{AIVEN}KeyToValue", {"key.fields": "id, dept", "value.fields": "id, d"},
         {"value.a": ["a"], "value.id": ["key.id"], "value.d": ["key.dept"]}),
        (f"{AIVEN}KeyToValue", {"key.fields": "*"},
         {"value.a": ["a"], "value._key.id": ["key.id"], "value._key.dept": ["key.dept"]}),
        ("com.clickhouse.kafka.connect.transforms.KeyToValue", {"field": "k"},
         {"value.a": ["a"], "value.k.id": ["key.id"], "value.k.dept": ["key.dept"]}),
    ],
)  # fmt: skip
def test_a_value_with_fields_of_the_key(
    kind: str, options: dict[str, str], expected: dict[str, list[str]]
) -> None:
    made = chain((kind, options))
    found = flow(made.forward("t", record(["a"], ["id", "dept"])))
    assert {key: value for key, value in found.items() if key.startswith("value")} == expected
    back = made.back("t", Column("value", tuple(list(expected)[-1].split(".")[1:])))
    assert back is not None
    assert back[0] == Column("key", ("dept",))


def test_a_nested_field_at_the_top() -> None:
    options = {
        "input.outer.field.name": "o",
        "input.inner.field.name": "i",
        "output.field.name": "x",
    }
    made = chain((f"{COMMON}ExtractNestedField$Value", options))
    found = flow(made.forward("t", record([{"o": ["i", "j"]}])))
    assert found == {
        "value.o.i": ["o.i"],
        "value.o.j": ["o.j"],
        "value.x": ["o.i"],
        "key": ["unknown"],
    }
    back = made.back("t", Column("value", ("x",)))
    assert back is not None
    assert back[0] == Column("value", ("o", "i"))


@pytest.mark.parametrize(
    "kind",
    ["acme.smt.UnwrapUnion$Value", "UnwrapUnion", "io.factorhouse.smt.UnwrapUnionTransform"],
)
def test_a_union_in_the_place_of_which_its_branch_is_put(kind: str) -> None:
    def branch(name: str, *fields: str) -> dict[str, Any]:
        return {
            "type": "record",
            "name": name,
            "fields": [{"name": field, "type": "string"} for field in fields],
        }

    union = ["null", branch("Card", "id", "number"), branch("Transfer", "id", "iban")]
    schema = {
        "type": "record",
        "name": "Payment",
        "fields": [{"name": "at", "type": "long"}, {"name": "by", "type": union}],
    }
    before = from_schema(TopicSchema(read_avro(schema)))
    assert flow(before)["value.by.Card.number"] == ["by.Card.number"]
    made = chain((kind, {}))
    assert made.unknown == []
    found = flow(made.forward("t", before))
    assert found == {
        "value.at": ["at"],
        "value.by.id": ["by.Card.id", "by.Transfer.id"],
        "value.by.number": ["by.Card.number"],
        "value.by.iban": ["by.Transfer.iban"],
        "key": ["unknown"],
    }
    with pytest.raises(UnknownColumnsError):
        made.back("t", Column("value", ("by", "id")))


def test_a_field_that_is_made_of_others_was_no_column() -> None:
    found = chain((f"{AIVEN}ConcatFields$Value", {"field.names": "a", "output.field.name": "c"}))
    assert found.back("t", Column("value", ("c",))) is None
    back = found.back("t", Column("value", ("a",)))
    assert back is not None
    assert back[0] == Column("value", ("a",))


def test_headers_that_records_are_given() -> None:
    insert, drop = f"{KAFKA}InsertHeader", f"{KAFKA}DropHeaders"
    some = {"predicates__some__type": "com.acme.ByTheHour"}

    def given(header: str, value: str, predicate: str = "") -> tuple[str, dict[str, str]]:
        options = {"header": header, "value.literal": value}
        return insert, {**options, "predicate": predicate} if predicate else options

    assert chain().headers("orders") == {}
    assert chain(given("a", "1"), given("b", "2")).headers("orders") == {"a": "1", "b": "2"}
    assert chain(given("a", "1"), given("a", "2")).headers("orders") == {"a": "2"}
    assert chain(given("a", "1"), (drop, {"headers": "a,b"})).headers("orders") == {}
    assert chain(given("a", "1"), given("a", "2", "some"), **some).headers("orders") == {}
