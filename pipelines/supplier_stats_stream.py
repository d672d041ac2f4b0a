"""Stream job `supplier-stats`: totals per supplier in windows of event time, from Kafka to Kafka.

Each order counts once: Connect may send one again after a crash, so ids are remembered for as long
as an order may be late. A late order corrects its window as long as the watermark has not passed it,
and a batch that is done again after a crash sends its totals again; therefore a record replaces the
one before it with the same key (supplier and window): the last one of a key is the one that counts.
A topic with `cleanup.policy=compact` keeps just those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import options
import orders
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

JOB = "supplier-stats"


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


def to_records(stats: DataFrame) -> DataFrame:
    """Totals as Kafka records: JSON, keyed by supplier and window."""
    return stats.select(
        F.to_json(F.struct("supplier", "window_start")).alias("key"),
        F.to_json(F.struct("window_start", "window_end", "supplier", "total_price", "count")).alias(
            "value"
        ),
    )


def start(spark: SparkSession, settings: argparse.Namespace) -> StreamingQuery:
    """Start the stream."""
    stream = once(orders.good(orders.read_orders(spark, settings)), settings.lateness)
    writer = (
        to_records(totals(stream, settings.window))
        .writeStream.outputMode("update")
        .format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("topic", settings.output_topic)
    )
    return orders.started(writer, settings.job_name or JOB, settings)


def main(settings: argparse.Namespace) -> None:
    name = f"{settings.job_name or JOB}-stream"
    spark = options.attach(options.session(name, settings, settings.output_topic), name)
    start(spark, settings).awaitTermination()


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.stream_arguments(__doc__)
    parser.add_argument("--window", default="1 minute", help="length of a window  [1 minute]")
    parser.add_argument("--lateness", default="1 hour", help="how late an order may be  [1 hour]")
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
