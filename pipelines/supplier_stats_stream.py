"""Stream job `supplier-stats`: totals per supplier in windows of event time, from Kafka to Kafka.

A late order corrects its window as long as the watermark has not passed it: the newest record of a
key (supplier and window) is the one that counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orders
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame

JOB = "supplier-stats"


def totals(stream: DataFrame, window: str, lateness: str) -> DataFrame:
    """Price and count of every supplier in every window, each order counted once."""
    return (
        stream.withWatermark("bid_time", lateness)
        .groupBy(F.window("bid_time", window), "supplier")
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


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    spark = orders.attach(orders.session(f"{name}-stream", settings), f"{name}-stream")
    stream = orders.good(orders.read_orders(spark, settings))
    writer = (
        to_records(totals(stream, settings.window, settings.lateness))
        .writeStream.queryName(name)
        .outputMode("update")
        .format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("topic", settings.output_topic)
        .trigger(
            **({"availableNow": True} if settings.once else {"processingTime": settings.every})
        )
    )
    if settings.checkpoint:
        writer = writer.option("checkpointLocation", settings.checkpoint)
    writer.start().awaitTermination()


if __name__ == "__main__":
    parser = orders.arguments(__doc__)
    parser.add_argument("--window", default="1 minute", help="length of a window  [1 minute]")
    parser.add_argument("--lateness", default="1 hour", help="how late an order may be  [1 hour]")
    parser.add_argument("--every", default="5 seconds", help="how often to write  [5 seconds]")
    main(parser.parse_args())
