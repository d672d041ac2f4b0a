"""A function over a field of a struct takes that field alone, whichever function Spark has."""

from __future__ import annotations

import itertools
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.lab.files.jars import pipeline_jars
from headwater.spark.plan.plan_lineage import read_batch
from headwater.spark.remote.client_plan import ClientPlan
from headwater.spark.remote.explain.layout import UnclearText, parse_tree
from headwater.spark.remote.explain.query import QueryReader
from headwater.spark.remote.server_client import RemoteSession
from tests.unit.spark import remote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

QUICK = ("sha2", "mask", "coalesce", "sum", "max_by", "transform", "window", "case", "+")
"""One of each kind of rule; the others follow in the full tests."""

FIELDS = {
    "t": "timestamp", "s": "string", "n": "bigint", "i": "int", "d": "double", "b": "binary",
    "z": "boolean", "a": "array<int>", "l": "array<struct<x: int, y: int>>",
}  # fmt: skip
BY_HAND = {
    **{sign: f"o.n {sign} o.i" for sign in
       ("%", "&", "*", "+", "-", "/", "<", "<=", "<=>", "=", "==", ">", ">=", "^", "|", "div")},
    "<<": "shiftleft(o.n, o.i)", ">>": "shiftright(o.n, o.i)", ">>>": "shiftrightunsigned(o.n, o.i)",
    "~": "~ o.n", "!": "! o.z", "not": "not o.z", "and": "o.z and o.n > 1", "or": "o.z or o.n > 1",
    "between": "o.n between o.i and 7", "when": "case when o.z then o.n end",
    "case": "case when o.z then o.n else o.i end", "cast": "cast(o.n as string)",
    **{name: f"{name}(o.s)" for name in
       ("bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint",
        "string", "time", "timestamp", "tinyint")},
    "collate": "collate(o.s, 'UNICODE')", "extract": "extract(hour from o.t)",
    "overlay": "overlay(o.s placing o.s from 2)", "inline": "inline(o.l)",
    "inline_outer": "inline_outer(o.l)", "posexplode": "posexplode(o.a)",
    "posexplode_outer": "posexplode_outer(o.a)", "json_tuple": "json_tuple(o.s, 'a')",
    "stack": "stack(2, o.n, o.n)", "percentile_cont": "percentile_cont(0.5) within group (order by o.d)",
    "percentile_disc": "percentile_disc(0.5) within group (order by o.d)",
    "make_time": "make_time(o.i, o.i, o.d)", "to_time": "to_time(o.s)", "try_to_time": "try_to_time(o.s)",
    "time_diff": "time_diff('HOUR', to_time(o.s), to_time(o.s))",
    "time_trunc": "time_trunc('HOUR', to_time(o.s))",
    "st_geogfromwkb": "st_geogfromwkb(o.b)", "st_geomfromwkb": "st_geomfromwkb(o.b)",
    "st_asbinary": "st_asbinary(st_geogfromwkb(o.b))", "st_srid": "st_srid(st_geogfromwkb(o.b))",
    "st_setsrid": "st_setsrid(st_geogfromwkb(o.b), 4326)", "to_avro": "to_avro(o.s)",
    "window": "window, count(*) from src group by window(o.t, '5 minutes')",
    "session_window": "session_window, count(*) from src group by session_window(o.t, '5 minutes')",
    "window_time": "window_time(window) from"
    " (select window, count(*) from src group by window(o.t, '5 minutes'))",
    "grouping": "grouping(o.n) from src group by cube(o.n)",
    "grouping_id": "grouping_id() from src group by cube(o.n)",
}  # fmt: skip
"""Calls that cannot be made from the examples of Spark's own documentation."""

NOT_JUDGED = {
    "from_avro", "from_protobuf", "to_protobuf",  # need a schema that this test has not got
    "cume_dist", "dense_rank", "ntile", "percent_rank", "rank", "row_number",  # the window decides
    "rand", "randn", "random", "randstr", "uniform", "current_time",  # take constants alone
    "schema_of_avro", "schema_of_csv", "schema_of_json", "schema_of_xml",
    "curdate", "current_catalog", "current_database", "current_date", "current_schema",
    "current_timestamp", "current_timezone", "current_user", "e", "input_file_block_length",
    "input_file_block_start", "input_file_name", "localtimestamp", "monotonically_increasing_id",
    "now", "pi", "session_user", "spark_partition_id", "user", "uuid", "version",
}  # fmt: skip
"""Functions that take no column, or only one that decides nothing of a value."""


class Call(NamedTuple):
    """A call over fields of `o`, and the fields that it is given."""

    frame: DataFrame
    fields: frozenset[str]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.jars": ",".join(map(str, pipeline_jars())),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m",
        "spark.ui.enabled": "false",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.geospatial.enabled": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[1]").appName("functions")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Source:
    return Source(spark, str(tmp_path))


class Source:
    """Files with one struct column `o`, whose field `other` no call is given."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark = spark
        self.folder = folder

    def view(self, fields: dict[str, str]) -> None:
        listed = ", ".join(f"{name}: {kind}" for name, kind in fields.items())
        schema = f"o struct<{listed}, other: string>"
        self.spark.read.schema(schema).parquet(self.folder).createOrReplaceTempView("src")

    def by_hand(self, name: str) -> Call | None:
        self.view(FIELDS)
        text = BY_HAND[name] if "src" in BY_HAND[name] else f"{BY_HAND[name]} from src"
        frame = self._sql(f"select {text}")
        return None if frame is None else Call(frame, frozenset(re.findall(r"\bo\.\w+", text)))

    def _sql(self, text: str) -> DataFrame | None:
        try:
            return self.spark.sql(text)
        except (PySparkException, Py4JJavaError):
            return None

    def from_example(self, name: str, examples: str) -> Call | None:
        """The first example of a function that can be given fields instead of constants."""
        for arguments, rest in example_calls(name, examples):
            if (made := self._filled(name, arguments, rest)) is not None:
                return made
        return None

    def _filled(self, name: str, arguments: list[str], rest: str) -> Call | None:
        values = re.search(r"\bfrom\b.*$", rest, re.IGNORECASE | re.DOTALL)
        table = re.sub(
            r"(?is)\b(group by|order by|having|where)\b.*$", "", values[0] if values else ""
        )
        kinds: dict[int, str] = {}
        for place, argument in enumerate(arguments):
            if "->" not in argument and (kind := self._type(NAMED.sub("", argument), table)):
                kinds[place] = kind
        try:
            self.view({f"a{place}": kind for place, kind in kinds.items()})
        except PySparkException:
            return None
        # Some arguments must be constants: as many as Spark allows become fields.
        for count in range(min(len(kinds), 5), 0, -1):
            for chosen in itertools.combinations(kinds, count):
                if (frame := self._called(name, arguments, chosen)) is not None:
                    return Call(frame, frozenset(f"o.a{place}" for place in chosen))
        return None

    def _type(self, text: str, table: str) -> str:
        found = self._sql(f"select {text} as x {table}")
        return found.schema[0].dataType.simpleString() if found is not None else ""

    def _called(self, name: str, arguments: list[str], chosen: tuple[int, ...]) -> DataFrame | None:
        given = [
            (found[0] if (found := NAMED.match(argument)) else "") + f"o.a{place}"
            if place in chosen
            else argument
            for place, argument in enumerate(arguments)
        ]
        for order in ("", " over (order by 1)", " within group (order by 1)"):
            called = f"{name}({', '.join(given)}){order}"
            if (frame := self._sql(f"select {called} as r from src")) is not None:
                return frame
        return None


NAMED = re.compile(r"^(?:\w+\s*=>\s*|(?:distinct|all)\s+)", re.IGNORECASE)


def example_calls(name: str, examples: str) -> Iterator[tuple[list[str], str]]:
    """The arguments of a function in the examples of its documentation, and what follows them."""
    for match in re.finditer(
        r">\s*(SELECT .*?);\s*$", examples, re.MULTILINE | re.DOTALL | re.IGNORECASE
    ):
        statement = match[1]
        found = re.search(rf"(?<![\w.]){re.escape(name)}\(", statement, re.IGNORECASE)
        if found is not None:
            arguments, end = split(statement, found.end())
            yield arguments, statement[end:]


def split(text: str, at: int) -> tuple[list[str], int]:
    """The arguments of a call whose bracket was opened before a place, and where it closes."""
    depth, quote, last = 1, "", at
    found: list[str] = []
    while at < len(text) and depth:
        sign = text[at]
        if quote:
            at += sign == "\\"
            quote = "" if sign == quote else quote
        elif sign in "'\"`":
            quote = sign
        else:
            depth += (sign in "([{") - (sign in ")]}")
            if (sign == "," and depth == 1) or not depth:
                found.append(text[last:at].strip())
                last = at + 1
        at += 1
    return [argument for argument in found if argument], at


def registry(spark: SparkSession) -> dict[str, str]:
    """Every function that Spark has, with the examples of its documentation."""
    found: Any = spark._jsparkSession.sessionState().functionRegistry()
    listed = found.listFunction()
    identifiers = [listed.apply(place) for place in range(listed.size())]
    return {
        str(one.funcName()): str(found.lookupFunction(one).get().getExamples())
        for one in identifiers
    }


def in_plan(spark: SparkSession, frame: Any) -> set[str]:
    """The columns that a frame's columns and rows come from, as its plan says."""
    found = read_batch(spark, frame._jdf.queryExecution())
    bits = [
        part
        for known in (found.frontier or {}).values()
        for part in (known.value.all(), known.rows)
    ]
    return {".".join(path) for part in bits for _, path in part}


def in_text(frame: Any) -> set[str]:
    """The same from the text that a Spark Connect server explains the plan with."""
    text = str(frame._jdf.queryExecution().analyzed().toString())
    text = re.sub(r"Relation \[(.*?)\] parquet", r"RelationV2[\1] lab.shop.src", text)
    schema = frame.sparkSession.table("src").schema.jsonValue()["fields"]
    remote.TABLES["lab.shop.src"] = {item["name"]: item["type"] for item in schema}
    try:
        reader = QueryReader(RemoteSession(remote.Described()), ClientPlan(), "", {})
        query = reader.query(parse_tree(text))
    except UnclearText:
        return set()
    parts = [*(column.value.all() for column in query.columns), query.rows]
    return {".".join(path) for part in parts for _, path in part}


def fields_of(columns: set[str]) -> set[str]:
    """Columns by the field of `o` that they lie in."""
    return {".".join(name.split(".")[:2]) for name in columns if name}


def judged(source: Source, name: str, examples: str) -> list[str]:
    call = source.by_hand(name) if name in BY_HAND else source.from_example(name, examples)
    if call is None:
        return [f"{name}: no call of it could be made"]
    wrong = []
    if (plan := fields_of(in_plan(source.spark, call.frame))) != call.fields:
        wrong.append(f"{name}: {sorted(plan)} in the plan instead of {sorted(call.fields)}")
    if extra := fields_of(in_text(call.frame)) - call.fields:
        wrong.append(f"{name}: {sorted(extra)} in the text besides {sorted(call.fields)}")
    return wrong


def test_one_of_each_kind_takes_its_field_alone(source: Source) -> None:
    known = registry(source.spark)
    wrong = [line for name in QUICK for line in judged(source, name, known.get(name, ""))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.full
def test_every_function_takes_its_field_alone(source: Source) -> None:
    known = registry(source.spark)
    names = sorted(set(known) - NOT_JUDGED - set(QUICK))
    wrong = [line for name in names for line in judged(source, name, known[name])]
    assert not wrong, "\n".join(wrong)
    assert len(names) > 450, "the registry was read"
