"""The shapes of streaming jobs, each started by its name; all read what the tests put there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

ORDER = "order_id string, supplier string, price double, bid_time timestamp"


class Place:
    """Where a shape reads and writes, as the test gave it."""

    def __init__(self, text: str) -> None:
        given: dict[str, Any] = json.loads(text)
        self.bootstrap: str = given.get("bootstrap", "")
        self.topic: str = given.get("topic", "")
        self.other: str = given.get("other", "")
        self.out: str = given.get("out", "")
        self.namespace: str = given.get("namespace", "")
        self.work = Path(given["work"])


def session(name: str, **conf: str) -> SparkSession:
    """A small session with the catalog of the lab, where there is one."""
    builder: Any = (
        SparkSession.builder.master("local[2]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "768m")
        .config(
            "spark.driver.extraJavaOptions",
            "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC",
        )
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.scripting.enabled", "true")  # off by default before Spark 4.1
        .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        .config("spark.sql.warehouse.dir", os.environ["WAREHOUSE"])
        .config("spark.driver.extraClassPath", os.environ.get("JARS", ""))
    )
    if os.environ.get("ICEBERG_CATALOG_URI"):
        lab = "spark.sql.catalog.lab"
        extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        for key, value in {
            "spark.sql.extensions": extensions,
            lab: "org.apache.iceberg.spark.SparkCatalog",
            f"{lab}.type": "rest",
            f"{lab}.uri": os.environ["ICEBERG_CATALOG_URI"],
            f"{lab}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            f"{lab}.s3.endpoint": os.environ["S3_ENDPOINT"],
            f"{lab}.s3.path-style-access": "true",
        }.items():
            builder = builder.config(key, value)
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def orders(spark: SparkSession, place: Place, topic: str = "") -> DataFrame:
    """The orders of a topic as a stream."""
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", place.bootstrap)
        .option("subscribe", topic or place.topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    parsed = F.from_json(F.col("value").cast("string"), ORDER).alias("order")
    return raw.select(parsed).select("order.*")


def kafka_to_kafka(spark: SparkSession, place: Place) -> Any:
    """Orders by supplier, back to Kafka."""
    cheap = orders(spark, place).where("price > 0")
    value = F.to_json(F.struct("supplier", (F.col("price") * 2).alias("doubled")))
    return (
        cheap.select(F.col("order_id").alias("key"), value.alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", place.bootstrap)
        .option("topic", place.out)
    )


def failing(spark: SparkSession, place: Place) -> Any:
    """As `kafka_to_kafka`, with a function that breaks."""

    @F.udf("string")
    def broken(_: str) -> str:
        raise ValueError("no such supplier")

    return (
        orders(spark, place)
        .select(broken("supplier").alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", place.bootstrap)
        .option("topic", place.out)
    )


def kafka_to_iceberg(spark: SparkSession, place: Place) -> Any:
    """Orders into a table."""
    table = f"lab.{place.namespace}.orders"
    spark.sql(f"create table if not exists {table} ({ORDER}) using iceberg")
    return Starts(orders(spark, place).writeStream, lambda writer: writer.toTable(table))


def merge(spark: SparkSession, place: Place) -> Any:
    """The latest order of each supplier, merged batch by batch."""
    table = f"lab.{place.namespace}.latest"
    spark.sql(f"create table if not exists {table} ({ORDER}) using iceberg")

    def upsert(batch: DataFrame, _: int) -> None:
        batch.dropDuplicates(["supplier"]).createOrReplaceTempView("batch")
        batch.sparkSession.sql(
            f"merge into {table} t using batch b on t.supplier = b.supplier"
            " when matched then update set * when not matched then insert *"
        )

    return orders(spark, place).writeStream.foreachBatch(upsert)


def stream_stream(spark: SparkSession, place: Place) -> Any:
    """Orders and payments, joined as they come."""
    left = orders(spark, place).withWatermark("bid_time", "1 minute")
    right = (
        orders(spark, place, place.other)
        .withWatermark("bid_time", "1 minute")
        .select(F.col("order_id").alias("paid_id"), F.col("price").alias("paid"),
                F.col("bid_time").alias("paid_time"))
    )  # fmt: skip
    joined = left.join(
        right, F.expr("order_id = paid_id and paid_time between bid_time - interval 1 minute"
                      " and bid_time + interval 1 minute"),
    )  # fmt: skip
    value = F.to_json(F.struct("order_id", "paid"))
    return (
        joined.select(value.alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", place.bootstrap)
        .option("topic", place.out)
    )


def stream_static(spark: SparkSession, place: Place) -> Any:
    """Orders, with the names of their suppliers from a file."""
    names = str(place.work / "names")
    spark.createDataFrame([("acme", "Acme Ltd")], "supplier string, name string").write.mode(
        "overwrite"
    ).parquet(names)
    named = orders(spark, place).join(spark.read.parquet(names), "supplier")
    return (
        named.select("order_id", "name")
        .writeStream.format("parquet")
        .option("path", str(place.work / "named"))
    )


def file_to_file(spark: SparkSession, place: Place) -> Any:
    """Files into files."""
    stream = spark.readStream.schema(ORDER).json(str(place.work / "in"))
    return (
        stream.select("order_id", "price")
        .writeStream.format("json")
        .option("path", str(place.work / "copied"))
    )


class Starts:
    """A writer that starts in its own way."""

    def __init__(self, writer: Any, start: Callable[[Any], StreamingQuery]) -> None:
        self.writer = writer
        self._start = start

    def start(self) -> StreamingQuery:
        return self._start(self.writer)


SHAPES: dict[str, Callable[[SparkSession, Place], Any]] = {
    "kafka_to_kafka": kafka_to_kafka,
    "kafka_to_iceberg": kafka_to_iceberg,
    "merge": merge,
    "stream_stream": stream_stream,
    "stream_static": stream_static,
    "file_to_file": file_to_file,
    "failing": failing,
}


def start(
    spark: SparkSession, place: Place, shape: str, name: str, *, bounded: bool = False
) -> StreamingQuery:
    """Start a shape under a name; a bounded one ends when it has read what is there."""
    made = SHAPES[shape](spark, place)
    writer = made.writer if isinstance(made, Starts) else made
    writer = writer.option("checkpointLocation", str(place.work / f"checkpoint-{name or shape}"))
    if name:
        writer = writer.queryName(name)
    if bounded:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime="200 milliseconds")
    query: StreamingQuery = made.start() if isinstance(made, Starts) else writer.start()
    return query
