"""Every case's lineage is exactly its truth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from headwater.spark.plan.plan_lineage import join_batch_to_stream, read_batch, read_streaming

from .cases import CASES, Case
from .cases.truth import differences, found, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient, PostgresClient, S3Client
    from headwater.lineage.schema import SchemaOrigin
    from headwater.spark.model import PlanLineage

    from .cases.stage import Stage


QUICK = frozenset(
    [
        "create",
        "map_in_pandas",
        "python_udf",
        "from_topic_to_topic",
        "structs",
        "create_table_as_select",
        "outer_join_with_a_second_condition",
        "windows",
        "subqueries",
        "merge_by_clause",
        "write_parquet",
        "views_through_to_tables",
        "write_jdbc",
        "time_travel_by_snapshot",
        "topic_to_table",
        "merge_for_each_batch",
    ]
)
"""One case of each kind; the others follow in the full tests."""


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaClient,
    catalog: CatalogClient,
    s3: S3Client,
    postgres: PostgresClient,
) -> Iterator[Stage]:
    from .cases.stage import Stage

    folder: Path = tmp_path_factory.mktemp("cases")
    with pytest.MonkeyPatch.context() as patch:
        # Workers must find the same packages as the driver.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        made = Stage(folder, kafka, catalog, s3, postgres)
        yield made
        made.spark.stop()


def played(stage: Stage, case: Case) -> tuple[list[PlanLineage], dict[str, str]]:
    """Run a case; the lineage of everything in it that writes."""
    stage.case = case.name
    stage.drain()
    told = case.job(stage)
    if not case.stream:
        lineages = [read_batch(stage.spark, execution) for _, execution in stage.drain()]
        return [one for one in lineages if one.outputs], told if isinstance(told, dict) else {}
    stream = read_streaming(stage.spark, told._jsq)
    if case.name == "rate_to_memory":
        told.stop()
    told.awaitTermination(60)
    if stream.operation != "foreach_batch":
        stage.drain()
        return [stream], {}
    batches = [
        join_batch_to_stream(stage.spark, execution, stream) for _, execution in stage.drain()
    ]
    return [one for one in batches if one.outputs and one.inputs], {}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.full)
        for case in CASES
    ],
)
def test_lineage_is_exact(stage: Stage, case: Case) -> None:
    lineages, words = played(stage, case)
    truth = read(case.truth.format(**words) if words else case.truth)
    seen = [
        found(lineage, stage.names, output)
        for lineage in lineages
        for output in sorted(truth.outputs) or [""]
    ]
    assert seen or not truth.outputs
    # One write may end in several callbacks, of which the last is the command a person gave. That all
    # of them are one run is judged by events, in `test_life_of_batches`.
    wrong = differences(truth, seen[-1]) if seen else []
    problems = [problem for lineage in lineages for problem in lineage.problems]
    assert not wrong, "\n".join([*wrong, *problems])


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60
    assert {case.name for case in CASES} >= QUICK


def written(stage: Stage, name: str) -> PlanLineage:
    """The lineage of the last thing that wrote."""
    stage.case = name
    found = [read_batch(stage.spark, execution) for _, execution in stage.drain()]
    return [one for one in found if one.outputs][-1]


def test_an_overwrite_says_whether_rows_stay(stage: Stage) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    stage.case = "overwritten"
    rows = stage.orders.select("id", "city")
    stage.sql("create table {out} (id bigint, city string) using iceberg partitioned by (city)")
    stage.spark.sql(
        "create table parted (id bigint, city string) using parquet partitioned by (city)"
    )
    path = stage.path("parted")

    def partial(write: Callable[[], object]) -> bool:
        stage.drain()
        write()
        (made,) = written(stage, "overwritten").outputs
        assert made.change is not None
        assert made.change.change == "OVERWRITE"
        return made.change.partial

    def files(**options: str) -> Callable[[], None]:
        writer = rows.write.mode("overwrite").partitionBy("city").options(**options)
        return lambda: writer.parquet(path)

    def table() -> None:
        stage.spark.sql(f"insert overwrite parted select id, city from {stage.table('orders')}")

    assert partial(lambda: stage.sql("insert overwrite {out} partition (city = 'Bern') select 1"))
    assert partial(lambda: rows.writeTo(stage.out).overwrite(F.col("city") == "Bern"))
    assert partial(lambda: rows.writeTo(stage.out).overwritePartitions())
    assert partial(
        lambda: stage.spark.sql("insert overwrite parted partition (city = 'x') select 1")
    )
    assert partial(files(partitionOverwriteMode="dynamic"))
    assert not partial(lambda: rows.writeTo(stage.out).overwrite(F.lit(True)))
    assert not partial(lambda: stage.sql("insert overwrite {out} select id, city from {orders}"))
    assert not partial(table)
    assert not partial(files())
    stage.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        assert partial(table)
        assert partial(files())
        assert not partial(files(partitionOverwriteMode="static"))
        # Without partitions there is nothing that could stay.
        assert not partial(lambda: rows.write.mode("overwrite").parquet(stage.path("plain")))
    finally:
        stage.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def test_the_columns_of_a_table_of_metadata_are_not_those_of_the_table(stage: Stage) -> None:
    from headwater.spark.stores.iceberg import FORMAT

    kinds = stage.spark._jvm.org.apache.iceberg.MetadataTableType.values()  # type: ignore[union-attr]
    assert {str(one).lower() for one in kinds} == FORMAT.metadata_tables
    orders = stage.table("orders")
    for kind in sorted(FORMAT.metadata_tables):
        stage.case = f"about_{kind}"
        stage.drain()
        read = stage.spark.table(f"{orders}.{kind}")
        read.limit(1).write.mode("overwrite").format("json").save(stage.path(kind))
        (made,) = written(stage, stage.case).inputs
        assert stage.names[made.id] == "orders"
        assert (made.schema, made.schema_source) == (None, None)
        assert [link.name for link in made.symlinks] == [f"{stage.namespace}.orders"]
    stage.case = "about_rows"
    stage.drain()
    ids = stage.spark.table(f"{orders}.snapshots").rdd.map(lambda row: (row.snapshot_id,))
    stage.spark.createDataFrame(ids, "id bigint").write.parquet(stage.path("ids"))
    (made,) = written(stage, stage.case).inputs
    assert made.schema is None
    assert [link.name for link in made.symlinks] == [f"{stage.namespace}.orders"]


def test_a_table_says_its_catalog_its_name_in_it_and_its_columns(stage: Stage) -> None:
    stage.case = "catalogued"
    stage.sql("create table {out} (id bigint, address struct<zip: string>) using iceberg")
    stage.sql("insert into {out} select id, struct(address.zip as zip) from {orders}")
    (made,) = written(stage, "catalogued").outputs
    address = stage.spark.conf.get("spark.sql.catalog.lab.uri")
    assert made.catalog is not None
    assert (made.catalog.framework, made.catalog.type, made.catalog.name) == (
        "iceberg",
        "rest",
        "lab",
    )
    (link,) = made.symlinks
    assert (link.namespace, link.name) == (address, f"{stage.namespace}.out_catalogued")
    assert made.schema is not None
    assert [field.name for field in made.schema.columns()] == ["id", "address.zip"]


def test_a_table_says_which_schema_of_its_catalog_it_has(stage: Stage) -> None:
    stage.case = "asked"

    def asked(statement: str) -> tuple[SchemaOrigin, list[str]]:
        stage.drain()
        stage.sql(statement)
        (made,) = written(stage, "asked").outputs
        assert made.schema_source is not None, statement
        assert made.schema is not None
        return made.schema_source, [field.name for field in made.schema.fields]

    stage.sql("create table {out} (id bigint) using iceberg")
    first, columns = asked("insert into {out} values (1)")
    assert (first.kind, first.version, columns) == ("catalog", "0", ["id"])
    second, columns = asked("alter table {out} add column note string")
    assert (second.subject, second.version, columns) == (first.subject, "1", ["id", "note"])
    # The schema before is the current one again, under its own id.
    third, columns = asked("alter table {out} drop column note")
    assert (third.subject, third.version, columns) == (first.subject, "0", ["id"])
    assert first.order < second.order < third.order
    replaced, columns = asked("create or replace table {out} using iceberg as select 1 one, 2 two")
    assert (replaced.subject, columns) == (first.subject, ["one", "two"])
    assert replaced.order > third.order
    stage.sql("drop table {out}")
    stage.sql("create table {out} (id bigint) using iceberg")
    anew, _ = asked("insert into {out} values (1)")
    assert anew.version == "0"
    assert anew.subject != first.subject


def test_what_a_catalog_answered_is_beside_an_input_too_unless_it_is_of_another_time(
    stage: Stage,
) -> None:
    stage.case = "read"
    stage.sql("create table {out} using iceberg as select id, price from {orders}")
    (orders,) = written(stage, "read").inputs
    assert orders.schema_source is not None
    assert orders.schema is not None
    assert [field.name for field in orders.schema.fields][:3] == ["id", "customer", "price"]
    stage.sql(
        "create or replace table {out} using iceberg as select id from {orders} version as of "
        + str(stage.sql("select snapshot_id from {orders}.snapshots").first()[0])  # type: ignore[index]
    )
    (orders,) = written(stage, "read").inputs
    assert orders.schema_source is None


def test_a_table_that_is_updated_shows_its_own_columns_alone(stage: Stage) -> None:
    stage.case = "updated"
    stage.sql("create table {out} (id bigint, note string) using iceberg")
    stage.sql("insert into {out} values (1, 'a')")
    stage.drain()
    stage.sql("update {out} set note = 'x' where id > 5")
    found = written(stage, "updated")
    shown = [one.schema.columns() for one in (*found.inputs, *found.outputs) if one.schema]
    assert [[field.name for field in fields] for fields in shown] == [["id", "note"]] * 2


def test_a_topic_says_its_cluster_and_the_columns_it_was_read_as(stage: Stage) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    stage.case = "clustered"
    topic = stage.topic("sales")
    value = F.from_json(F.col("value").cast("string"), "id bigint, key string").alias("v")
    read = stage.from_topic(topic).select(value).select("v.id", "v.key")
    read.writeTo(stage.out).using("iceberg").create()
    (sales,) = written(stage, "clustered").inputs
    assert sales.type == "TOPIC"
    assert sales.bootstrap == (stage.kafka.bootstrap,)
    assert sales.cluster_id
    assert sales.schema is not None
    assert sales.schema_source is None, (
        "what a program reads a record as is no answer of a registry"
    )
    assert [(f.name, f.type) for f in sales.schema.columns()] == [
        ("id", "long"),
        ("value.key", "string"),
    ]


def test_a_database_never_shows_its_password(stage: Stage) -> None:
    stage.case = "secret"
    stage.customers.write.format("jdbc").options(**stage.pg("people")).save()
    assert stage.pg_options()["password"] not in str(written(stage, "secret"))


def test_a_jvm_that_compiles_nothing_is_read_step_by_step(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.spark import jvm

    stage.case = "steps"
    stage.sql(
        "create table {out} using iceberg as select city, sum(price) total from {orders}"
        " where id in (select max(customer) from {orders}) group by cube (city)"
    )
    execution = stage.drain()[-1][1]
    quick = read_batch(stage.spark, execution)
    assert quick.outputs[0].columns is not None
    monkeypatch.setitem(jvm._readers, stage.spark.sparkContext._gateway, None)
    steps = read_batch(stage.spark, execution)
    assert (quick.inputs, quick.outputs, quick.sql) == (steps.inputs, steps.outputs, steps.sql)


def test_sql_is_told(stage: Stage) -> None:
    stage.case = "told"
    stage.sql("create table {out} using iceberg as select 1 one")
    assert written(stage, "told").sql.startswith("create table")


def test_a_plan_that_is_too_large_keeps_its_datasets(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.spark.plan.compose.MAX_NODES", 2)
    stage.case = "large"
    stage.sql("create table {out} using iceberg as select id from {orders} where id > 1")
    found = written(stage, "large")
    assert [stage.names[dataset.id] for dataset in found.inputs] == ["orders"]
    assert [stage.names[dataset.id] for dataset in found.outputs] == ["out"]
    assert not found.columns
    assert any("too large" in problem for problem in found.problems)


def test_reading_that_keeps_costing_too_much_is_turned_off(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from headwater.spark.driver import plan_reader
    from headwater.spark.driver.bridge import JvmBridge

    monkeypatch.setattr("headwater.emit.internal_errors._reported", set())
    monkeypatch.setattr(plan_reader, "SLOW_SECONDS", 0.0)
    frame = stage.orders.select("id", "price")
    small = frame._jdf.queryExecution()
    for number in range(40):
        frame = frame.where(f"id > {number}").select("id", "price")
    large = frame._jdf.queryExecution()
    reads = plan_reader.PlanReader(JvmBridge(stage.spark))
    before = [reads.batch(large) for _ in range(plan_reader.MAX_SLOW)]
    after = reads.batch(large)
    assert all(one.nodes > 64 for one in before)
    assert after.nodes == 0
    assert any("too large" in problem for problem in after.problems)
    assert [stage.names[dataset.id] for dataset in after.inputs] == ["orders"]
    assert reads.batch(small).nodes > 0, "small plans are still read whole"
    assert caplog.text.count("column lineage of large plans disabled for") == 1


def test_nothing_is_raised_whatever_is_read(stage: Stage) -> None:
    found = read_batch(stage.spark, object())
    assert found.problems
    assert not found.inputs


@pytest.mark.full
def test_two_hundred_nodes_are_read_in_time(stage: Stage) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    frame = stage.orders.select("id", "customer", "price", "city")
    for number in range(97):
        frame = frame.withColumn("price", F.col("price") + number).where(F.col("id") > number)
    execution = frame._jdf.queryExecution()
    found = [read_batch(stage.spark, execution) for _ in range(20)]
    assert found[0].nodes >= 190
    assert min(one.seconds for one in found) < 0.24
