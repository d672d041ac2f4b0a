"""Names of what Spark reads and writes, without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.lineage import sql
from headwater.lineage.model import Dataset, LifecycleChange
from headwater.lineage.naming import DatasetName, hive_namespace
from headwater.spark import jvm
from headwater.spark.columns.output import flat
from headwater.spark.columns.records import json_path
from headwater.spark.columns.source import MetadataSource, OpaqueSource, Source
from headwater.spark.columns.value import IDENTITY, Value
from headwater.spark.jvm import kind
from headwater.spark.plan import writes
from headwater.spark.plan.operators import describe
from headwater.spark.stores import files, jdbc, kafka
from headwater.spark.stores.catalog import default_location
from headwater.spark.stores.files import roots
from headwater.spark.stores.formats import by_name, is_log
from headwater.spark.stores.iceberg import FORMAT as ICEBERG
from headwater.spark.stores.paths import TypedPaths, name_of


class FakeSession:
    """Settings of a session, and the problems that were met."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.problems: list[str] = []

    def setting(self, key: str) -> str:
        return self.settings.get(key.removeprefix("spark.sql.catalog.").replace(".", "_"), "")

    def problem(self, text: str) -> None:
        self.problems.append(text)


def session(**settings: str) -> Any:
    return FakeSession(**settings)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["s3a://b/sales/year=2026/month=1"], [("s3://b", "sales")]),
        (["/d/a", "/d/b"], [("file", "/d/a"), ("file", "/d/b")]),
        (["hdfs://nn:8020/in/*.csv"], [("hdfs://nn:8020", "/in")]),
    ],
)
def test_paths_become_the_folders_a_person_would_name(
    paths: list[str], expected: list[tuple[str, str]]
) -> None:
    assert roots(paths) == [DatasetName(*name) for name in expected]


@pytest.mark.parametrize(
    ("typed", "paths", "expected"),
    [
        (["/d/*.parquet"], ["file:/d/part-00000-a.parquet", "file:/d/part-00001-a.parquet"], ["file:/d"]),
        (["/d/*.csv"], ["file:/d/only.csv"], ["file:/d"]),
        (["in/*.csv"], ["file:/home/in/only.csv"], ["file:/home/in"]),
        ([], ["file:/d/part-00000-a.parquet"], ["file:/d"]),
        ([], ["file:/d/countries.csv"], ["file:/d/countries.csv"]),
        (["/d/countries.csv"], ["file:/d/countries.csv"], ["file:/d/countries.csv"]),
        (["countries.csv"], ["file:/d/countries.csv"], ["file:/d/countries.csv"]),
        (["s3a://b/d/1.csv", "s3a://b/d/2.csv"], ["s3a://b/d/1.csv", "s3a://b/d/2.csv"],
         ["s3a://b/d/1.csv", "s3a://b/d/2.csv"]),
        (["/d/k=*/*.parquet"], ["file:/d/k=1/part-00000", "file:/d/k=2/part-00000"],
         ["file:/d/k=1", "file:/d/k=2"]),
        (["/d/*"], ["file:/d/orders.parquet", "file:/d/bids"], ["file:/d/orders.parquet", "file:/d/bids"]),
    ],
)  # fmt: skip
def test_a_glob_over_files_is_their_folder_and_a_file_that_was_given_is_itself(
    typed: list[str], paths: list[str], expected: list[str]
) -> None:
    folders = ["file:/d/orders.parquet", "file:/d/bids/k=1", "file:/d/k=1", "file:/d/k=2"]
    assert list(dict.fromkeys(files.without_files(paths, folders, TypedPaths(typed)))) == expected


class Index:
    """The index of files that a relation of Spark's has."""

    def __init__(self, roots: list[str], folders: list[str]) -> None:
        self._roots, self._folders = roots, folders

    def rootPaths(self) -> Listed:  # noqa: N802
        return Listed(self._roots)

    def leafDirToChildrenFiles(self) -> Any:  # noqa: N802
        size = len(self._folders)
        return SimpleNamespace(keys=lambda: Listed(self._folders), size=lambda: size)


class Listed(list[str]):
    """A sequence of the JVM's."""

    def size(self) -> int:
        return len(self)

    def take(self, count: int) -> Listed:
        return Listed(self[:count])

    def mkString(self, between: str) -> str:  # noqa: N802
        return between.join(self)


def test_a_read_of_many_folders_says_so_instead_of_listing_them() -> None:
    given = session()
    folders = [f"file:/lake/{number}" for number in range(101)]
    parts = [f"{folder}/part-00000" for folder in folders]
    index = Index(parts[:100], folders[:100])
    assert len(files.indexed(given, index, "parquet", "file relation").datasets) == 100
    assert given.problems == []
    index = Index(parts, folders)
    found = files.indexed(given, index, "parquet", "file relation")
    assert found.datasets == ()
    assert found.column("a", "long").all() == Value.unknown().all()
    assert given.problems == ["101 folders are read at once: more than 100 are not listed"]


def test_more_files_are_not_more_datasets() -> None:
    parts = [f"s3a://b/sales/k={number % 9}/part-{number:05}.parquet" for number in range(20_000)]
    index = Index(parts[:5000], [f"s3a://b/sales/k={number}" for number in range(9)])
    (found,) = files.indexed(session(), index, "parquet", "file relation").datasets
    assert found.id == DatasetName("s3://b", "sales")


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
    place = DatasetName("s3://w", "db/t")
    made = ICEBERG.in_catalog(session(**settings), "c", ["db", "t"], place)
    assert made is not None
    assert made.id == DatasetName("s3://w", "db/t")
    assert [(one.namespace, one.name) for one in made.symlinks] == ([link] if link else [])
    assert made.catalog is not None
    assert "password" not in str(made)


def test_a_branch_in_the_name_is_a_version_and_not_a_name() -> None:
    parts = ["db", "t", "branch_trial"]
    given = session(c_type="rest", c_uri="http://cat")
    made = ICEBERG.in_catalog(given, "c", parts, DatasetName("s3://w", "t"))
    assert made is not None
    assert made.symlinks[0].name == "db.t"
    assert ICEBERG.version(object(), parts, {}) == "trial"


@pytest.mark.parametrize(
    ("identifier", "link"),
    [(["db", "t", "snapshots"], "db.t"), (["w", "t#files"], "w.t"), (["db", "files"], "db.files")],
)
def test_a_table_of_metadata_is_a_read_of_its_table_without_columns(
    identifier: list[str], link: str
) -> None:
    """The classes of Iceberg's are stood for by what they answer; `test_cases.py` asks them."""
    about = identifier[-1] != "files"

    class Asked(FakeSession):
        def texts(self, given: Any, *paths: str) -> list[str | None]:
            assert paths[:2] == ("location", "table.location")
            return ["s3://w/t", "s3://w/t" if about else None]

    held = SimpleNamespace(location=lambda: "s3://w/t")
    table = SimpleNamespace(table=lambda: held)
    given: Any = Asked(c_type="rest", c_uri="http://cat")
    found = ICEBERG.table(given, table, "c", identifier, {})
    assert found is not None
    assert isinstance(found, MetadataSource) is about
    (made,) = found.datasets
    assert made.id == DatasetName("s3://w", "t")
    assert [one.name for one in made.symlinks] == [link]
    outputs: Any = [SimpleNamespace(name="n", get=lambda _: "long")]
    describe(found, outputs)
    assert (found.datasets[0].schema is None) is about
    assert bool(found.column("n", "long").all()) is not about


def test_rows_that_a_program_made_of_a_table_are_not_its_columns() -> None:
    found = OpaqueSource((Dataset("s3://w", "t"),))
    outputs: Any = [SimpleNamespace(name="n", get=lambda _: "long")]
    describe(found, outputs)
    assert found.datasets[0].schema is None


def test_the_timeline_and_the_files_of_a_hudi_table_are_not_its_columns() -> None:
    def relation(name: str) -> Any:
        path = SimpleNamespace(toString=lambda: "s3://w/t")
        return SimpleNamespace(
            getClass=lambda: SimpleNamespace(getName=lambda: f"org.apache.hudi.{name}"),
            metaClient=lambda: SimpleNamespace(getBasePath=lambda: path),
        )

    hudi = by_name("hudi")
    assert hudi is not None
    for name in ("TimelineRelation", "FileSystemRelation"):
        found = hudi.relation(session(), relation(name), None)
        assert isinstance(found, MetadataSource)
        assert [one.id for one in found.datasets] == [DatasetName("s3://w", "t")]


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
    assert ICEBERG.version(object(), ["db", "t"], options) == version


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
    assert len(files.table_paths(table)) == paths.asked == files.MAX_PATHS


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
    assert hive_namespace("thrift://a:9083,thrift://b:9083") == "hive://a:9083"
    assert hive_namespace("thrift://a") == hive_namespace("a") == "hive://a:9083"


@pytest.mark.parametrize(
    ("settings", "identifier", "expected"),
    [
        ({"ice_type": "hive"}, ["default", "orders"], "orders"),
        ({"ice_type": "hive"}, ["DEFAULT", "orders"], "orders"),
        ({"ice_type": "hive"}, ["shop", "orders"], "shop.db/orders"),
        ({"ice_type": "hive"}, ["Shop", "orders"], "Shop.db/orders"),
        ({"ice_uri": "thrift://ms"}, ["default", "orders"], "orders"),
        ({}, ["default", "orders"], "orders"),
        ({"ice_type": "rest", "ice_uri": "http://c"}, ["default", "orders"], "default/orders"),
        ({"ice_type": "hadoop"}, ["default", "orders"], "default/orders"),
        ({"ice_catalog-impl": "acme.Own"}, ["default", "orders"], "default/orders"),
        ({}, ["a", "b", "orders"], "a/b/orders"),
    ],
)
def test_where_a_table_is_planned_to_lie(
    settings: dict[str, str], identifier: list[str], expected: str
) -> None:
    class Named:
        def name(self) -> str:
            return "ice"

    here = session(**settings, ice_warehouse="s3://warehouse/")
    assert ICEBERG.planned_location(here, Named(), identifier) == ("s3://warehouse", expected)


@pytest.mark.parametrize(
    ("database", "expected"), [("default", "/w/orders"), ("shop", "/w/shop.db/orders")]
)
def test_where_a_table_is_planned_to_lie_in_a_database_that_spark_does_not_know(
    database: str, expected: str
) -> None:
    class Refusing(FakeSession):
        def default_location(self, quoted: str) -> str:
            raise LookupError(quoted)

    here: Any = Refusing(spark_sql_warehouse_dir="file:/w")
    found = default_location(here, database, "orders")
    assert name_of(found) == ("file", expected)


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
def test_the_columns_of_a_query_are_those_of_its_tables(
    query: str, expected: dict[str, list[str]]
) -> None:
    read = sql.parse(query, "postgres")
    assert read is not None
    found = jdbc.result_columns(read, {name: Source(()) for name in read.tables})
    assert found is not None
    assert {n: [path[0] for _, path in v.bits] for n, v in found.items()} == expected


def test_every_column_of_a_table_is_its_own() -> None:
    read = sql.parse("select * from people", "postgres")
    assert read is not None
    people = Source(())
    found = jdbc.result_columns(read, {"people": people})
    assert found is not None
    column = found.get("any")
    assert column is not None
    assert column.bits == {(people, ("any",)): IDENTITY}


@pytest.mark.parametrize(
    "query", ["select id, price from people, sales", "select p.*, 1 from people p join x on true"]
)
def test_a_query_that_does_not_say_gives_no_columns(query: str) -> None:
    read = sql.parse(query, "postgres")
    assert read is not None
    assert jdbc.result_columns(read, {name: Source(()) for name in read.tables}) is None


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


class Command:
    """A command of a plan; its catalog table lies in one of its fields."""

    def __init__(self, name: str) -> None:
        self.name = name

    def getClass(self) -> Any:  # noqa: N802
        return SimpleNamespace(getName=lambda: f"org.apache.spark.sql.{self.name}")

    def query(self) -> str:
        return "query"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("execution.command.CreateDataSourceTableAsSelectCommand", "table"),
        ("hudi.command.CreateHoodieTableAsSelectCommand", "table"),
        ("hive.execution.CreateHiveTableAsSelectCommand", "tableDesc"),
    ],
)
def test_a_table_made_from_a_query_is_found_in_the_field_of_its_command(
    name: str, field: str
) -> None:
    table = {
        f"{field}.identifier.quotedString": "`spark_catalog`.`default`.`out`",
        f"{field}.provider": "hudi",
        f"{field}.storage.locationUri": "file:/warehouse/out",
    }
    spark = session()
    spark.texts = lambda _, *paths: [table.get(path) for path in paths]
    plan: Any = Command(name)
    found = writes._read_write(spark, plan, kind(plan))
    assert found is not None
    assert [one.name for one in found.outputs] == ["/warehouse/out"]
    assert found.operation == "create_table_as_select"


class Plan:
    """A plan, or a part of one, as the JVM shows it: every member is a method without arguments."""

    def __init__(self, kind: str = "", **members: Any) -> None:
        self.kind = kind
        for name, value in members.items():
            setattr(self, name, lambda value=value: value)

    def getClass(self) -> Plan:  # noqa: N802
        return self

    def getName(self) -> str:  # noqa: N802
        return f"org.apache.spark.{self.kind}"


class Answering(FakeSession):
    """A session whose plans are Python's own objects."""

    def texts(self, given: Any, *paths: str) -> list[Any]:
        found = (jvm._follow(given, path) for path in paths)
        return [one if isinstance(one, list) else jvm._text(one) for one in found]

    def mapping(self, given: Any) -> dict[str, str]:
        return dict(given)


def v2(kind: str, parts: int = 1, options: dict[str, str] | None = None, **more: Any) -> Plan:
    table = Plan("acme.Table", partitioning=["identity"] * parts)
    relation = Plan("DataSourceV2Relation", table=table)
    return Plan(kind, table=relation, writeOptions=options or {}, query=None, **more)


@pytest.mark.parametrize(
    ("plan", "partial"),
    [
        (v2("OverwriteByExpression", deleteExpr="true"), False),
        (v2("OverwriteByExpression", deleteExpr="(day#1 <=> x)"), True),
        (v2("OverwriteByExpression", options={"overwrite-mode": "dynamic"}, deleteExpr="true"), True),
        (v2("OverwritePartitionsDynamic"), True),
        (v2("OverwritePartitionsDynamic", parts=0), False),
    ],
)  # fmt: skip
def test_an_overwrite_of_a_table_says_whether_rows_stay(
    monkeypatch: pytest.MonkeyPatch, plan: Any, partial: bool
) -> None:
    monkeypatch.setattr("headwater.spark.plan.leaves.v2", lambda *_: Source((Dataset("a", "b"),)))
    here: Any = Answering()
    (output,) = writes.READERS[kind(plan)](here, plan).outputs
    assert output.change == LifecycleChange("OVERWRITE", partial=partial)


@pytest.mark.parametrize(
    ("static", "dynamic", "partial"),
    [(0, False, False), (0, True, True), (1, False, True)],
)
def test_an_overwrite_of_files_says_whether_rows_stay(
    static: int, dynamic: bool, partial: bool
) -> None:
    plan = Plan(
        "InsertIntoHadoopFsRelationCommand",
        catalogTable=None,
        mode=Plan(toString="Overwrite"),
        fileFormat=Format("org.apache.spark.ParquetFileFormat"),
        outputPath=Plan(toString="file:/out"),
        staticPartitions=Plan(size=static),
        dynamicPartitionOverwrite=dynamic,
        query=None,
    )
    here: Any = Answering()
    (output,) = writes.READERS[kind(plan)](here, plan).outputs
    assert output.change == LifecycleChange("OVERWRITE", partial=partial)


@pytest.mark.parametrize(("path", "partial"), [("file:/d", False), ("file:/d/k=1", True)])
def test_an_overwrite_of_a_partitions_folder_is_one_of_a_part(path: str, partial: bool) -> None:
    by_writer = Plan(
        "InsertIntoHadoopFsRelationCommand",
        catalogTable=None,
        mode=Plan(toString="Overwrite"),
        fileFormat=Format("org.apache.spark.ParquetFileFormat"),
        outputPath=Plan(toString=path),
        query=None,
    )
    located = Plan(isDefined=True, get=Plan(toString=path))
    by_statement = Plan(
        "InsertIntoDataSourceDirCommand",
        storage=Plan(locationUri=located),
        provider="parquet",
        query=None,
    )
    here: Any = Answering()
    for plan in (by_writer, by_statement):
        (output,) = writes.READERS[kind(plan)](here, plan).outputs
        assert output.name == "/d"
        assert output.change == LifecycleChange("OVERWRITE", partial=partial)


@pytest.mark.parametrize("partial", [False, True])
def test_an_overwrite_of_a_hive_table_says_whether_rows_stay(
    monkeypatch: pytest.MonkeyPatch, partial: bool
) -> None:
    monkeypatch.setattr(
        "headwater.spark.stores.catalog.read_table", lambda *_: Dataset("file", "/h")
    )
    partition = Plan(isEmpty=not partial)
    plan = Plan("InsertIntoHiveTable", table=None, overwrite=True, partition=partition, query=None)
    here: Any = Answering()
    (output,) = writes.READERS[kind(plan)](here, plan).outputs
    assert output.change == LifecycleChange("OVERWRITE", partial=partial)


@pytest.mark.parametrize(
    ("name", "options", "dynamic", "partial"),
    [
        ("delta", {}, False, False),
        ("delta", {}, True, True),
        ("delta", {"replaceWhere": "day = 1"}, False, True),
        ("hudi", {"hoodie.datasource.write.operation": "insert_overwrite"}, False, True),
        ("hudi", {"hoodie.datasource.write.operation": "insert_overwrite_table"}, True, False),
        ("hudi", {}, True, False),
    ],
)
def test_a_table_format_says_whether_an_overwrite_leaves_rows(
    name: str, options: dict[str, str], dynamic: bool, partial: bool
) -> None:
    table_format = by_name(name)
    assert table_format is not None
    assert table_format.overwrites_part(options, dynamic=dynamic) is partial


@pytest.mark.parametrize(
    ("options", "setting", "dynamic"),
    [
        ({}, "STATIC", False),
        ({}, "dynamic", True),
        ({"PartitionOverwriteMode": "dynamic"}, "STATIC", True),
        ({"partitionOverwriteMode": "static"}, "DYNAMIC", False),
    ],
)
def test_the_option_of_a_writer_goes_before_the_setting(
    options: dict[str, str], setting: str, dynamic: bool
) -> None:
    assert writes.is_dynamic(options, setting) is dynamic
