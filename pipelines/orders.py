"""What the three jobs share: settings, the Spark session, and orders as they come from Kafka.

Nothing here knows where it runs: addresses come from options or the environment, so the same files
go to `spark-submit` on any cluster (`--py-files pipelines/orders.py`).
"""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote
from urllib.request import urlopen

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PRICE = "decimal(10,2)"
ORDERS_TABLE = """
    order_id STRING, item STRING, price DECIMAL(10,2), supplier STRING, bid_time TIMESTAMP
"""
# Copy-on-write keeps reads simple; three old metadata files are enough to look back.
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "snappy",
    "write.target-file-size-bytes": str(128 << 20),
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "3",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
}


def arguments(description: str) -> argparse.ArgumentParser:
    """Options that every job has; each one's default comes from the environment."""
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    env = os.environ.get
    add("--bootstrap", default=env("BOOTSTRAP"), help="Kafka's address  [$BOOTSTRAP]")
    add(
        "--input-topic",
        default=env("INPUT_TOPIC", "orders"),
        help="topic of orders, Avro in Confluent's wire format  [$INPUT_TOPIC, else orders]",
    )
    add(
        "--output-topic",
        default=env("OUTPUT_TOPIC", "supplier-stats"),
        help="topic of window totals  [$OUTPUT_TOPIC, else supplier-stats]",
    )
    add("--registry-url", default=env("REGISTRY_URL"), help="schema registry  [$REGISTRY_URL]")
    add(
        "--catalog",
        default=env("ICEBERG_CATALOG_NAME", "lab"),
        help="name of the Iceberg catalog  [$ICEBERG_CATALOG_NAME, else lab]",
    )
    add(
        "--catalog-uri",
        default=env("ICEBERG_CATALOG_URI"),
        help="Iceberg REST catalog  [$ICEBERG_CATALOG_URI]",
    )
    add(
        "--hms-endpoint",
        default=env("HMS_ENDPOINT"),
        help="Hive metastore, used when there is no REST catalog  [$HMS_ENDPOINT]",
    )
    add("--warehouse", default=env("ICEBERG_WAREHOUSE"), help="  [$ICEBERG_WAREHOUSE]")
    add("--s3-endpoint", default=env("S3_ENDPOINT"), help="S3 server, if not AWS  [$S3_ENDPOINT]")
    add(
        "--checkpoint",
        default=env("CHECKPOINT"),
        help="folder of the stream's checkpoint; without one it starts at the topic's beginning "
        "[$CHECKPOINT]",
    )
    add(
        "--job-name",
        default=env("OPENLINEAGE_JOBNAME"),
        help="name of the job in lineage  [$OPENLINEAGE_JOBNAME]",
    )
    add(
        "--once",
        action="store_true",
        default=env("AVAILABLE_NOW") == "1",
        help="handle what is there and end, instead of going on  [$AVAILABLE_NOW=1]",
    )
    return parser


def session(name: str, settings: argparse.Namespace) -> SparkSession:
    """A session whose Iceberg catalog is the one the settings name."""
    catalog = f"spark.sql.catalog.{settings.catalog}"
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")
        .config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
    )
    if settings.catalog_uri:
        builder = builder.config(f"{catalog}.type", "rest")
        builder = builder.config(f"{catalog}.uri", settings.catalog_uri)
    elif settings.hms_endpoint:
        builder = builder.config(f"{catalog}.type", "hive")
        builder = builder.config(f"{catalog}.uri", settings.hms_endpoint)
    if settings.warehouse:
        builder = builder.config(f"{catalog}.warehouse", settings.warehouse)
    if settings.s3_endpoint:
        builder = (
            builder.config(f"{catalog}.io-impl", "org.apache.iceberg.aws.s3.S3FileIO")
            .config(f"{catalog}.s3.endpoint", settings.s3_endpoint)
            .config(f"{catalog}.s3.path-style-access", "true")
        )
    return builder.getOrCreate()


def attach(spark: SparkSession, name: str) -> SparkSession:
    """Report lineage when headwater is installed; the job runs just the same without it."""
    try:
        import headwater.spark
    except ImportError:
        return spark
    return headwater.spark.attach(spark, app_name=name)


class Writer(NamedTuple):
    """A schema that records were written with, and the number they carry for it."""

    id: int
    schema: str


def writers(registry_url: str, topic: str) -> list[Writer]:
    """Every version of a topic's value schema, oldest first."""
    subject = f"{registry_url.rstrip('/')}/subjects/{quote(topic, safe='')}-value/versions"

    def get(url: str) -> object:
        with urlopen(url, timeout=30) as answer:  # noqa: S310
            return json.load(answer)

    found = []
    for version in get(subject):  # type: ignore[attr-defined]
        entry = get(f"{subject}/{version}")
        found.append(Writer(entry["id"], entry["schema"]))  # type: ignore[index]
    return found


def decode(value: Column, known: list[Writer]) -> Column:
    """The record in a Kafka value, read as the newest schema known when the job started.

    A record of a later schema is read by the newest known: a column added at the end does not hurt.
    """
    payload = F.expr("substring(value, 6, length(value) - 5)")
    newest = known[-1]

    def read(writer: Writer) -> Column:
        return from_avro(
            payload, writer.schema, {"mode": "PERMISSIVE", "avroSchema": newest.schema}
        )

    decoded = read(newest)
    for writer in known[:-1]:
        number = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("int")
        decoded = F.when(number == writer.id, read(writer)).otherwise(decoded)
    return decoded


def reason(record: Column, value: Column) -> Column:
    """Why a record cannot be an order; null when it can."""
    return (
        F.when(value.isNull(), "the record is empty")
        .when(F.hex(F.substring(value, 1, 1)) != "00", "not Avro in Confluent's wire format")
        .when(record.isNull(), "does not fit the schema")
        .when(record["order_id"].isNull(), "no order_id")
        .when(record["price"].isNull(), "no price")
        .when(record["price"] <= 0, "a price that is not positive")
        .when(record["supplier"].isNull(), "no supplier")
        .when(record["bid_time"].isNull(), "no bid_time")
    )


def read_orders(spark: SparkSession, settings: argparse.Namespace) -> DataFrame:
    """The topic as a stream: the raw value, the decoded record, and why it is bad if it is."""
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("subscribe", settings.input_topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
        .load()
    )
    known = writers(settings.registry_url, settings.input_topic)
    decoded = stream.withColumn("order", decode(F.col("value"), known))
    return decoded.withColumn("reason", reason(F.col("order"), F.col("value")))


def good(records: DataFrame) -> DataFrame:
    """The orders among the records, in the table's shape."""
    order = F.col("order")
    return records.where(F.col("reason").isNull()).select(
        order["order_id"].alias("order_id"),
        order["item"].alias("item"),
        order["price"].cast(PRICE).alias("price"),
        order["supplier"].alias("supplier"),
        order["bid_time"].cast("timestamp").alias("bid_time"),
    )


def create_table(spark: SparkSession, table: str, columns: str, partition: str) -> None:
    """Make an Iceberg table, and its namespace, unless they are there."""
    catalog, namespace, _ = table.split(".")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog}.{namespace}")
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in TABLE_PROPERTIES.items())
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING iceberg "
        f"PARTITIONED BY ({partition}) TBLPROPERTIES ({properties})"
    )
