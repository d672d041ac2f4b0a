"""Batch job `supplier_stats`: hourly totals per supplier of the latest day of `default.orders`.

The result table is made if it is missing, then overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import options
import orders
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame

JOB = "supplier_stats"
COLUMNS = "hour TIMESTAMP, supplier STRING, total_price DECIMAL(18,2), count BIGINT"


def latest_day(table: DataFrame) -> DataFrame:
    """The orders of the last day that has any."""
    last = table.select(F.max(F.to_date("bid_time")).alias("day"))
    return table.join(F.broadcast(last), F.to_date("bid_time") == F.col("day")).drop("day")


def hourly(table: DataFrame) -> DataFrame:
    """Price and count of every supplier in every hour."""
    return table.groupBy(F.date_trunc("hour", "bid_time").alias("hour"), "supplier").agg(
        F.sum("price").cast("decimal(18,2)").alias("total_price"), F.count("*").alias("count")
    )


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    spark = options.attach(options.session(name, settings, settings.output_table), name)
    target = f"{settings.catalog}.{settings.output_table}"
    orders.create_table(spark, target, COLUMNS, "days(hour)")
    source = spark.table(f"{settings.catalog}.{settings.table}")
    hourly(latest_day(source)).writeTo(target).overwrite(F.lit(True))
    spark.stop()


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.arguments(__doc__)
    parser.add_argument("--table", default="default.orders", help="where from  [default.orders]")
    parser.add_argument(
        "--output-table",
        default="default.supplier_stats",
        help="where to  [default.supplier_stats]",
    )
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
