"""Stream job `iceberg-ingestion`: orders from Kafka into the Iceberg table `default.orders`.

Each order lands once, whatever is delivered twice: an order that is in the table already, by its id
and time, is left alone. So a batch that is done again after a crash adds nothing. What cannot be an
order goes to a dead-letter topic with the reason, and is counted in the log; a batch that is done
again sends it again under the same key, which says where the record was.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import options
import orders
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

JOB = "iceberg-ingestion"


class Summary(NamedTuple):
    """What a micro-batch holds: the span of its orders, and bad records by reason."""

    first: str | None
    last: str | None
    rejected: dict[str, int]


def summary(batch: DataFrame) -> Summary:
    """Look at a micro-batch once, before it is written."""
    fine = F.col("reason").isNull()
    at = F.when(fine, F.col("order.bid_time").cast("timestamp"))
    counts = [F.count_if(F.col("reason") == why).alias(why) for why in orders.REASONS]
    found = batch.agg(
        F.min(at).cast("string").alias("first"), F.max(at).cast("string").alias("last"), *counts
    ).first()
    assert found is not None
    rejected = {why: found[why] for why in orders.REASONS if found[why]}
    return Summary(found["first"], found["last"], rejected)


def ingest(batch: DataFrame, number: int, settings: argparse.Namespace) -> None:
    """Write one micro-batch: new orders to the table, bad records to the dead-letter topic."""
    batch.persist()
    try:
        held = summary(batch)
        if held.first is not None:
            merge(batch, held, f"{settings.catalog}.{settings.table}")
        if held.rejected:
            rejected(batch).write.format("kafka").options(
                **options.kafka(settings), topic=settings.dead_letter_topic
            ).save()
            reasons = ", ".join(f"{why}: {count}" for why, count in held.rejected.items())
            total = sum(held.rejected.values())
            sys.stderr.write(f"{JOB}: batch {number}: {total} records rejected ({reasons})\n")
    finally:
        batch.unpersist()


def merge(batch: DataFrame, held: Summary, table: str) -> None:
    """Add the orders that the table does not have.

    The span of the batch keeps Iceberg from looking at days and files that cannot hold its orders.
    """
    orders.good(batch).dropDuplicates(["order_id"]).createOrReplaceTempView("new_orders")
    batch.sparkSession.sql(
        f"MERGE INTO {table} t USING new_orders s "
        "ON t.order_id = s.order_id AND t.bid_time = s.bid_time "
        f"AND t.bid_time BETWEEN TIMESTAMP '{held.first}' AND TIMESTAMP '{held.last}' "
        "WHEN NOT MATCHED THEN INSERT *"
    )


def rejected(records: DataFrame) -> DataFrame:
    """Bad records as they came, with the reason and where they were as JSON in the key."""
    where = F.struct("reason", "topic", "partition", "offset")
    return records.where(F.col("reason").isNotNull()).select(
        F.to_json(where).alias("key"), F.col("value")
    )


def start(spark: SparkSession, settings: argparse.Namespace) -> StreamingQuery:
    """Make the table unless it is there, and start the stream."""
    table = f"{settings.catalog}.{settings.table}"
    orders.create_table(spark, table, orders.ORDERS_TABLE, "days(bid_time)")
    writer = orders.read_orders(spark, settings).writeStream.foreachBatch(
        lambda batch, number: ingest(batch, number, settings)
    )
    return orders.started(writer, settings.job_name or JOB, settings)


def main(settings: argparse.Namespace) -> None:
    name = f"{settings.job_name or JOB}-stream"
    spark = options.attach(options.session(name, settings, settings.table), name)
    start(spark, settings).awaitTermination()


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.stream_arguments(__doc__)
    parser.add_argument("--table", default="default.orders", help="where to  [default.orders]")
    parser.add_argument(
        "--dead-letter-topic",
        default="orders-dead-letter",
        help="where bad records go  [orders-dead-letter]",
    )
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
