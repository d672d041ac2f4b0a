"""Stream job `supplier-stats`: totals per supplier in windows of event time, from Kafka to Kafka.

Each order counts once: Connect may send one again after a crash, so ids are remembered for as long
as an order may be late. When a window's total is written is a choice:

- `--emit update`, the default: with every batch that changes it. A late order corrects its window as
  long as the watermark has not passed it, and a batch that is done again after a crash sends its totals
  again; therefore a record replaces the one before it with the same key (supplier and window): the last
  one of a key is the one that counts. A topic with `cleanup.policy=compact` keeps just those.
- `--emit final`: once, when the watermark has passed the window. No record corrects another, so readers
  may append; but a batch that is done again after a crash sends its totals again, under the same keys:
  whoever adds up takes each key once. And a total comes only when an order of a later time (by
  `--lateness`) has moved the watermark on.

Values are Avro in Confluent's wire format, with a subject in the registry, so that a sink connector on the
topic has columns; `--format json` needs no registry to be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import options
import orders
import registry
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

JOB = "supplier-stats"
FIELDS = ("window_start", "window_end", "supplier", "total_price", "count")
# Milliseconds, since Connect knows no times that are finer.
_TIME = {"type": "long", "logicalType": "timestamp-millis"}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "SupplierStats",
    "namespace": "shop",
    "fields": [
        {"name": "window_start", "type": _TIME},
        {"name": "window_end", "type": _TIME},
        {"name": "supplier", "type": "string"},
        {
            "name": "total_price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2},
        },
        {"name": "count", "type": "long"},
    ],
}
# When a window is written, and how Spark calls that.
EMIT = {"update": "update", "final": "append"}


def once(stream: DataFrame, lateness: str) -> DataFrame:
    """Orders in time, each one once, however often it was delivered."""
    return stream.withWatermark("bid_time", lateness).dropDuplicatesWithinWatermark(["order_id"])


def totals(stream: DataFrame, window: str) -> DataFrame:
    """Price and count of every supplier in every window."""
    return (
        stream.groupBy(F.window("bid_time", window), "supplier")
        .agg(F.sum("price").cast("decimal(18,2)").alias("total_price"), F.count("*").alias("count"))
        .select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            "supplier",
            "total_price",
            "count",
        )
    )


def to_records(stats: DataFrame, writer: registry.Writer | None) -> DataFrame:
    """Totals as Kafka records, keyed by supplier and window: Avro by a writer's schema, else JSON."""
    total = F.struct(*FIELDS)
    if writer is None:
        value = F.to_json(total)
    else:
        # Confluent's wire format: a zero, the schema's number, the record.
        prefix = F.unhex(F.lit(f"00{writer.id:08X}"))
        value = F.concat(prefix, to_avro(total, writer.schema))
    key = F.to_json(F.struct("supplier", "window_start"))
    return stats.select(key.alias("key"), value.alias("value"))


def start(spark: SparkSession, settings: argparse.Namespace) -> StreamingQuery:
    """Make the schema of the totals known, and start the stream."""
    stream = once(orders.good(orders.read_orders(spark, settings)), settings.lateness)
    avro = settings.format == "avro"
    written = (settings.registry_url, settings.output_topic, SCHEMA)
    writer = registry.register(*written) if avro else None
    sink = (
        to_records(totals(stream, settings.window), writer)
        .writeStream.outputMode(EMIT[settings.emit])
        .format("kafka")
        .options(**options.kafka(settings), topic=settings.output_topic)
    )
    return orders.started(sink, settings.job_name or JOB, settings)


def main(settings: argparse.Namespace) -> None:
    name = f"{settings.job_name or JOB}-stream"
    spark = options.attach(options.session(name, settings, settings.output_topic), name)
    start(spark, settings).awaitTermination()


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.stream_arguments(__doc__)
    parser.add_argument("--window", default="1 minute", help="length of a window  [1 minute]")
    parser.add_argument("--lateness", default="1 hour", help="how late an order may be  [1 hour]")
    parser.add_argument(
        "--emit",
        choices=EMIT,
        default="update",
        help="write a window whenever it changes, or once, when it is over  [update]",
    )
    parser.add_argument(
        "--format",
        choices=("avro", "json"),
        default="avro",
        help="of the totals; avro has a subject in the registry  [avro]",
    )
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
