"""Names of what Spark reads and writes, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.lineage.naming import DatasetName
from headwater.spark.columns import flat
from headwater.spark.records import json_path
from headwater.spark.sources import Source
from headwater.spark.stores import files, iceberg, kafka, queries, tables
from headwater.spark.stores.paths import is_log, roots
from headwater.spark.value import IDENTITY, Value


class World:
    """Settings of a session, and the problems that were met."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.problems: list[str] = []

    def setting(self, key: str) -> str:
        return self.settings.get(key.removeprefix("spark.sql.catalog.").replace(".", "_"), "")

    def problem(self, text: str) -> None:
        self.problems.append(text)


def world(**settings: str) -> Any:
    return World(**settings)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["s3a://b/sales/year=2026/month=1"], [("s3://b", "sales")]),
        (["/d/a", "/d/b"], [("file", "/d/a"), ("file", "/d/b")]),
        (["hdfs://nn:8020/in/*.csv"], [("hdfs://nn:8020", "/in")]),
        ([f"s3://b/in/{n}.csv" for n in range(30)], [("s3://b", "in")]),
    ],
)
def test_paths_become_the_folders_a_person_would_name(
    paths: list[str], expected: list[tuple[str, str]]
) -> None:
    assert roots(paths) == [DatasetName(*name) for name in expected]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("file:/lake/orders/_delta_log", True),
        ("file:/lake/orders/_delta_log/00000.json", True),
        ("Scan ExistingRDD Delta Table State #1 - file:/lake/orders/_delta_log[a#1]", True),
        ("s3a://lake/orders/.hoodie/metadata", True),
        ("file:/lake/my_delta_log", False),
        ("file:/lake/_delta_logs/orders", False),
    ],
)
def test_the_log_of_a_table_is_no_dataset(path: str, expected: bool) -> None:
    assert is_log(path) is expected
    assert (roots([path]) == []) is expected


@pytest.mark.parametrize(
    ("settings", "link"),
    [
        ({"c_type": "rest", "c_uri": "http://cat:8181/"}, ("http://cat:8181", "db.t")),
        ({"c_type": "hive", "c_uri": "thrift://h:9083"}, ("hive://h:9083", "db.t")),
        ({"c_type": "hadoop", "c_warehouse": "s3a://w/x"}, ("s3://w/x", "db.t")),
        (
            {"c_type": "jdbc", "c_uri": "jdbc:postgresql://u:p@h/cat?password=x"},
            ("postgres://h:5432/cat", "db.t"),
        ),
        (
            {"c_type": "glue", "c_client_region": "eu-west-1", "c_glue_id": "123"},
            ("arn:aws:glue:eu-west-1:123", "table/db/t"),
        ),
        (
            {"c_catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"},
            None,
        ),
    ],
)
def test_an_iceberg_table_has_its_catalog_name_as_a_symlink(
    settings: dict[str, str], link: tuple[str, str] | None
) -> None:
    made = iceberg.dataset(world(**settings), DatasetName("s3://w", "db/t"), "c", ["db", "t"])
    assert made.id == DatasetName("s3://w", "db/t")
    assert [(one.namespace, one.name) for one in made.symlinks] == ([link] if link else [])
    assert made.catalog is not None
    assert "password" not in str(made)


def test_a_branch_in_the_name_is_a_version_and_not_a_name() -> None:
    made = iceberg.dataset(
        world(c_type="rest", c_uri="http://cat"), DatasetName("s3://w", "t"), "c",
        ["db", "t", "branch_trial"],
    )  # fmt: skip
    assert made.symlinks[0].name == "db.t"
    assert iceberg.version(object(), ["db", "t", "branch_trial"], {}) == "trial"


@pytest.mark.parametrize(
    ("options", "version"),
    [
        ({"headwater.time-travel": "VERSION AS OF '42'"}, "42"),
        ({"snapshot-id": "7"}, "7"),
        ({"tag": "audit"}, "audit"),
        ({}, ""),
    ],
)
def test_the_snapshot_that_was_asked_for(options: dict[str, str], version: str) -> None:
    assert iceberg.version(object(), ["db", "t"], options) == version


class Long:
    """A sequence of the JVM's that counts how often it is asked."""

    def __init__(self, length: int) -> None:
        self.length, self.asked = length, 0

    def size(self) -> int:
        return self.length

    def apply(self, place: int) -> str:
        self.asked += 1
        return f"file:/data/{place}"


def test_a_long_list_of_paths_is_asked_for_in_part() -> None:
    paths = Long(100_000)
    table = type("Table", (), {"paths": lambda _: paths})()
    assert len(files.table_paths(table)) == paths.asked == files.MOST_PATHS


@pytest.mark.parametrize("word", ["delta", "hudi"])
def test_a_table_kept_in_files_is_a_table(word: str) -> None:
    (made,) = files.by_paths(["s3://lake/orders/"], word, "path")
    assert (made.type, made.storage_layer) == ("TABLE", word)
    assert made.id == DatasetName("s3://lake", "orders")


class Format:
    """A file format as the JVM shows it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def getClass(self) -> Format:  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return self.name


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("org.apache.spark.sql.delta.DeltaParquetFileFormat", "delta"),
        ("org.apache.spark.sql.execution.datasources.parquet.HoodieParquetFileFormat", "hudi"),
        ("org.apache.spark.sql.execution.datasources.v2.csv.CSVFileFormat", "csv"),
    ],
)
def test_the_word_for_a_format(name: str, word: str) -> None:
    assert files.format_of(Format(name)) == word


def test_topics_that_are_assigned() -> None:
    assert kafka.assigned_topics('{"a": [0, 1], "b": [2]}') == ["a", "b"]
    assert kafka.assigned_topics("nonsense") == []


def test_the_first_metastore_names_the_catalog() -> None:
    assert tables.hive_namespace("thrift://a:9083,thrift://b:9083") == "hive://a:9083"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id, upper(name) n from people", {"id": ["id"], "n": ["name"]}),
        (
            "with a as (select id, max(p) m from s.sales group by id) select a.id, a.m from a",
            {"id": ["id"], "m": ["p"]},
        ),
        ("select 1 one from people", {"one": []}),
    ],
)
def test_a_query_is_taken_apart(query: str, expected: dict[str, list[str]]) -> None:
    taken = queries.take_apart(query, "postgres")
    assert taken is not None
    found = taken.columns({name: Source(()) for name in taken.tables})
    assert found is not None
    assert {n: [path[0] for _, path in v.bits] for n, v in found.items()} == expected


@pytest.mark.parametrize(
    "query", ["select id, price from people, sales", "select p.*, 1 from people p join x on true"]
)
def test_a_query_that_does_not_say_gives_no_columns(query: str) -> None:
    taken = queries.take_apart(query, "postgres")
    assert taken is not None
    assert taken.columns({name: Source(()) for name in taken.tables}) is None


def test_what_is_no_query_is_not_taken_apart() -> None:
    assert queries.take_apart("call something()", "postgres") is None
    assert queries.take_apart("select from where", "postgres") is None


@pytest.mark.parametrize(
    ("path", "names"),
    [("$.a.b", ("a", "b")), ("$.a[0]['b c']", ("a", "b c")), ("$", ()), ("a.b", ()), ("$..x", ())],
)
def test_names_in_a_json_path(path: str, names: tuple[str, ...]) -> None:
    assert json_path(path) == names


def test_columns_inside_columns_have_the_names_of_the_schema() -> None:
    item = {"type": "struct", "fields": [{"name": "sku", "type": "string"}]}
    kind = {"type": "struct", "fields": [
        {"name": "items", "type": {"type": "array", "elementType": item}},
        {"name": "by", "type": {"type": "map", "keyType": "string", "valueType": item}},
        {"name": "tags", "type": {"type": "array", "elementType": "string"}},
    ]}  # fmt: skip
    source = Source(())
    value = Value.column(source, ("order",), kind)
    assert dict(flat(("o",), kind, value)) == {
        ("o", *path): {(source, ("order", *path)): IDENTITY}
        for path in (("items", "sku"), ("by", "key"), ("by", "value", "sku"), ("tags",))
    }
