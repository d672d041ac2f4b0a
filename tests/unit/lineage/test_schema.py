"""Schemas of every format, from golden cases in tests/fixtures/schema."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headwater.lineage import schema as schemas
from headwater.lineage.schema import Schema, types

FIXTURES = Path(__file__).parents[2] / "fixtures" / "schema"


def cases(name: str) -> list[Any]:
    rows = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["case"]) for row in rows]


def shaped(data: Any) -> Schema:
    return msgspec.convert(data, Schema)


@pytest.mark.parametrize("case", cases("avro"))
def test_avro(case: dict[str, Any]) -> None:
    references = case.get("references")
    assert schemas.read_avro(json.dumps(case["schema"]), references) == shaped(case["expected"])
    assert schemas.read_avro(case["schema"], references) == shaped(case["expected"])


@pytest.mark.parametrize("case", cases("json_schema"))
def test_json_schema(case: dict[str, Any]) -> None:
    got = schemas.read_json_schema(json.dumps(case["schema"]), case.get("references"))
    assert got == shaped(case["expected"])


@pytest.mark.parametrize("case", cases("protobuf"))
def test_protobuf(case: dict[str, Any]) -> None:
    got = schemas.read_protobuf(case["schema"], case.get("references"), case.get("message"))
    assert got == shaped(case["expected"])


@pytest.mark.parametrize("case", cases("connect"))
def test_connect(case: dict[str, Any]) -> None:
    assert schemas.read_connect(case["schema"]) == shaped(case["expected"])


@pytest.mark.parametrize("case", cases("facet"))
def test_facet(case: dict[str, Any]) -> None:
    got = schemas.read_facet(case["schema"])
    assert got == shaped(case["expected"])
    assert schemas.read_facet({"fields": schemas.write_fields(got)}) == got


@pytest.mark.parametrize("case", cases("topics"))
def test_the_columns_of_a_topic(case: dict[str, Any]) -> None:
    value, key = (None if case[k] is None else shaped(case[k]) for k in ("value", "key"))
    assert [field.name for field in schemas.topic_columns(value, key)] == case["columns"]


@pytest.mark.parametrize("case", cases("changes"))
def test_changes_and_what_they_break(case: dict[str, Any]) -> None:
    old, new = shaped(case["old"]), shaped(case["new"])
    assert [str(change) for change in schemas.diff(old, new)] == case["changes"]
    verdict = schemas.compatible(old, new)
    assert [one.change.path for one in verdict.breaks] == case["breaks"]
    assert bool(verdict) is not bool(case["breaks"])


@pytest.mark.parametrize("case", cases("refused"))
def test_a_schema_that_cannot_be_read_says_where(case: dict[str, Any]) -> None:
    readers: dict[str, Any] = {
        "avro": schemas.read_avro,
        "json": schemas.read_json_schema,
        "protobuf": schemas.read_protobuf,
        "connect": schemas.read_connect,
    }
    with pytest.raises(schemas.SchemaError, match=re.escape(case["says"])):
        readers[case["reader"]](case["schema"])


def test_a_record_that_becomes_one_value_breaks_its_readers() -> None:
    old, new = schemas.read_avro(RECORD), Schema((), "string")
    assert [str(change) for change in schemas.diff(old, new)] == [
        "value changed its type from struct to string"
    ]
    assert not schemas.compatible(old, new)


def test_a_break_says_why() -> None:
    old, new = shaped({"fields": [{"name": "a", "type": "long"}]}), Schema()
    (found,) = schemas.compatible(old, new).breaks
    assert str(found).startswith("a was removed (it was long): readers still ask for it")


RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


def nested_avro(depth: int) -> Any:
    kind: Any = "int"
    for level in range(depth):
        kind = {"type": "record", "name": f"R{level}", "fields": [{"name": "f", "type": kind}]}
    return kind


def test_depth_is_bounded() -> None:
    assert len(schemas.read_avro(nested_avro(schemas.MAX_DEPTH)).columns()) == 1
    with pytest.raises(schemas.SchemaError, match=r"f\.f\.f.*deeper than 32 levels"):
        schemas.read_avro(nested_avro(schemas.MAX_DEPTH + 1))


def test_count_is_bounded() -> None:
    many = [{"name": f"f{n}", "type": "int"} for n in range(schemas.MAX_FIELDS + 1)]
    with pytest.raises(schemas.SchemaError, match=r"f\d+: the schema has more than 20000 fields"):
        schemas.read_avro({"type": "record", "name": "R", "fields": many})
    with pytest.raises(schemas.SchemaError, match="more than 20000 fields"):
        schemas.read_facet({"fields": many})


def test_types_that_double_at_every_level_are_bounded() -> None:
    kinds = {f"T{n}": {"type": "object", "properties": both(f"T{n + 1}")} for n in range(30)}
    bomb = {"$ref": "#/$defs/T0", "$defs": {**kinds, "T30": {"type": "string"}}}
    with pytest.raises(schemas.SchemaError, match="more than 20000 fields"):
        schemas.read_json_schema(bomb)
    messages = " ".join(f"message T{n} {{ T{n + 1} a = 1; T{n + 1} b = 2; }}" for n in range(30))
    with pytest.raises(schemas.SchemaError, match="more than 20000 fields"):
        schemas.read_protobuf(f'syntax = "proto3"; {messages} message T30 {{ int32 x = 1; }}')


def both(target: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/$defs/{target}"} for name in ("a", "b")}


def test_types_wrapped_in_types_are_bounded() -> None:
    def wrapped(depth: int) -> str:
        return '{"type":' * depth + '"int"' + "}" * depth

    assert schemas.read_avro(wrapped(100)).type == "int"
    with pytest.raises(schemas.SchemaError, match="nested too deeply"):
        schemas.read_avro(wrapped(20_000))


def test_deep_proto_text_is_bounded() -> None:
    text = "".join(f"message M{n} {{ " for n in range(200)) + "}" * 200
    with pytest.raises(schemas.SchemaError, match="nested deeper than 64"):
        schemas.read_protobuf(text)


def test_a_version_is_stable() -> None:
    schema = schemas.read_avro(RECORD)
    assert schema.version == "70347aa49fc3621f3488cf21b9e33e63"
    assert schemas.read_avro({**RECORD, "doc": "words", "name": "Other"}).version == schema.version


def test_a_column_is_found_by_its_path() -> None:
    schema = schemas.read_avro(nested_avro(2))
    inner = schema.field("f.f")
    assert inner is not None
    assert inner.type == "int"
    assert schema.field("f.g") is None
    assert [field.name for field in schema.columns(containers=True)] == ["f", "f.f"]


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("ARRAY<Integer>", "array<int>"),
        ("list<map<text, list<numeric( 10 , 2 )>>>", "array<map<string,array<decimal(10,2)>>>"),
        ("map<int,struct<a:list<integer>,b:int>>", "map<int,struct<a:list<integer>,b:int>>"),
        ("array<struct<a:list<integer>>>", "array<struct<a:list<integer>>>"),
        ("array<decimal(10,2)>", "array<decimal(10,2)>"),
        ("map<,int>", "map<,int>"),
        ("varchar(20)", "varchar(20)"),
    ],
)
def test_a_type_has_one_spelling(written: str, normal: str) -> None:
    assert types.normal(written) == normal
    assert types.widens(written, normal)


def test_types_in_containers_widen_as_they_do_alone() -> None:
    assert types.widens("map<int,array<float>>", "map<long,list<double>>")
    assert not types.widens("map<int,array<double>>", "map<int,array<float>>")
    assert not types.widens("array<int>", "array<array<int>>")
    assert not types.widens("array<int>", "map<int,int>")
    assert not types.widens("array<int>", "int")


@pytest.mark.parametrize(
    "piece", ["array<", "map<int,", "a<b>", "array<int>,", "array< ", "<", ",", "("]
)
def test_a_type_is_read_in_one_pass_however_deep_it_is(piece: str) -> None:
    times = []
    for count in (2_000, 20_000):
        text = piece * count + "integer" + ">" * count
        began = time.thread_time()
        assert types.widens(text, types.normal(text))
        times.append(time.thread_time() - began)
    assert times[1] < 30 * max(times[0], 0.01), times
