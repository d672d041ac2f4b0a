"""Stream job `iceberg-ingestion`: orders from Kafka into the Iceberg table `default.orders`.

Each order lands once, whatever is delivered twice. What cannot be an order goes to a dead-letter
topic with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orders
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame

JOB = "iceberg-ingestion"


def ingest(batch: DataFrame, table: str, bootstrap: str, dead_letters: str) -> None:
    """Write one micro-batch: new orders to the table, bad records to the dead-letter topic."""
    spark = batch.sparkSession
    batch.persist()
    try:
        new = orders.good(batch).dropDuplicates(["order_id"])
        new.createOrReplaceTempView("new_orders")
        spark.sql(
            f"MERGE INTO {table} t USING new_orders s "
            "ON t.order_id = s.order_id AND t.bid_time = s.bid_time "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        rejected(batch).write.format("kafka").option("kafka.bootstrap.servers", bootstrap).option(
            "topic", dead_letters
        ).save()
    finally:
        batch.unpersist()


def rejected(records: DataFrame) -> DataFrame:
    """Bad records as they came, with the reason and where they were as JSON in the key."""
    where = F.struct("reason", "topic", "partition", "offset")
    return records.where(F.col("reason").isNotNull()).select(
        F.to_json(where).alias("key"), F.col("value")
    )


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    spark = orders.attach(orders.session(f"{name}-stream", settings), f"{name}-stream")
    table = f"{settings.catalog}.{settings.table}"
    orders.create_table(spark, table, orders.ORDERS_TABLE, "days(bid_time)")
    writer = (
        orders.read_orders(spark, settings)
        .writeStream.queryName(name)
        .foreachBatch(
            lambda batch, _number: ingest(
                batch, table, settings.bootstrap, settings.dead_letter_topic
            )
        )
        .trigger(
            **({"availableNow": True} if settings.once else {"processingTime": settings.every})
        )
    )
    if settings.checkpoint:
        writer = writer.option("checkpointLocation", settings.checkpoint)
    writer.start().awaitTermination()


if __name__ == "__main__":
    parser = orders.arguments(__doc__)
    parser.add_argument("--table", default="default.orders", help="default.orders by default")
    parser.add_argument(
        "--dead-letter-topic",
        default="orders-dead-letter",
        help="where bad records go  [orders-dead-letter]",
    )
    parser.add_argument("--every", default="5 seconds", help="how often to write  [5 seconds]")
    main(parser.parse_args())
