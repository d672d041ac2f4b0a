"""Orders as they come from Kafka, and the table they go to.

Nothing here knows where it runs: addresses come from options or the environment (`options.py`), so
the same files go to `spark-submit` on any cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import options
import registry
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PRICE = "decimal(10,2)"
ORDERS_TABLE = """
    order_id STRING, item STRING, price DECIMAL(10,2), supplier STRING, bid_time TIMESTAMP
"""
FIELDS = ("order_id", "item", "price", "supplier", "bid_time")
REASONS = (
    "the record is empty",
    "not Avro in Confluent's wire format",
    "does not fit the schema",
    "no order_id",
    "no price",
    "a price that is not positive",
    "no supplier",
    "no bid_time",
)
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


def decode(value: Column, known: list[registry.Writer]) -> Column:
    """The record in a Kafka value, read as the newest schema known when the job started.

    A record of a later schema is read by the newest known: a column added at the end does not hurt.
    """
    payload = F.expr("substring(value, 6, length(value) - 5)")
    newest = known[-1]

    def read(writer: registry.Writer) -> Column:
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
    wrong = (
        value.isNull(),
        F.hex(F.substring(value, 1, 1)) != "00",
        # What does not fit comes as a record of nothing but nulls.
        F.coalesce(*(record[field].cast("string") for field in FIELDS)).isNull(),
        record["order_id"].isNull(),
        record["price"].isNull(),
        record["price"] <= 0,
        record["supplier"].isNull(),
        record["bid_time"].isNull(),
    )
    found = F.lit(None).cast("string")
    for condition, why in reversed(list(zip(wrong, REASONS, strict=True))):
        found = F.when(condition, why).otherwise(found)
    return found


def read_orders(spark: SparkSession, settings: argparse.Namespace) -> DataFrame:
    """The topic as a stream: the raw value, the decoded record, and why it is bad if it is."""
    stream = (
        spark.readStream.format("kafka")
        .options(**options.kafka(settings))
        .option("subscribe", settings.input_topic)
        .option("startingOffsets", "earliest")
        .option("failOnDataLoss", "false")
        # A long backlog comes in pieces that fit.
        .option("maxOffsetsPerTrigger", settings.most)
        .load()
    )
    known = registry.writers(settings.registry_url, settings.input_topic)
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


def started(writer: DataStreamWriter, name: str, settings: argparse.Namespace) -> StreamingQuery:
    """Start a stream under its name, from its checkpoint if it has one."""
    if settings.checkpoint:
        writer = writer.option("checkpointLocation", settings.checkpoint)
    when = {"availableNow": True} if settings.once else {"processingTime": settings.every}
    return writer.queryName(name).trigger(**when).start()


def create_table(spark: SparkSession, table: str, columns: str, partition: str) -> None:
    """Make an Iceberg table, and its namespace, unless they are there."""
    namespace, _, name = table.rpartition(".")
    if "." not in namespace:
        raise SystemExit(f"the table {name} is in no namespace: name it as default.{name}")
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in TABLE_PROPERTIES.items())
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING iceberg "
        f"PARTITIONED BY ({partition}) TBLPROPERTIES ({properties})"
    )
