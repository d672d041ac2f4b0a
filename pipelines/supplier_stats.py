"""Batch job `supplier_stats`: hourly totals per supplier of the latest day of `default.orders`.

Which day that is, the table's statistics say; of the orders only those of the days asked for are read.
The result table is made if it is missing, and its rows of these days are replaced, so that a run can be
repeated and a backfill (`--from 2026-11-01 --to 2026-11-07`) leaves the other days alone. One of the two
options alone asks for that single day.
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

import options
import orders
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import Column, DataFrame

JOB = "supplier_stats"
COLUMNS = "hour TIMESTAMP, supplier STRING, total_price DECIMAL(18,2), count BIGINT"


class Days(NamedTuple):
    """Days to sum up, both included."""

    first: date
    last: date

    def of(self, column: str) -> Column:
        """Whether a time lies in them; whole days, which are a table's partitions."""
        end = self.last + timedelta(days=1)
        return F.expr(
            f"{column} >= TIMESTAMP '{self.first} 00:00:00' AND {column} < TIMESTAMP '{end} 00:00:00'"
        )


def latest_day(table: DataFrame) -> date | None:
    """The last day that has orders. Iceberg knows it from its files' statistics and opens none."""
    found = newest(table).first()
    return found["day"] if found else None


def newest(table: DataFrame) -> DataFrame:
    """The day of the newest order: of the greatest time, since files have statistics of the bare column.

    Spark makes the day of it, in the session's zone. Python would in that of this machine.
    """
    return table.agg(F.max("bid_time").alias("last")).select(F.to_date("last").alias("day"))


def hourly(table: DataFrame) -> DataFrame:
    """Price and count of every supplier in every hour."""
    return table.groupBy(F.date_trunc("hour", "bid_time").alias("hour"), "supplier").agg(
        F.sum("price").cast("decimal(18,2)").alias("total_price"), F.count("*").alias("count")
    )


def asked(settings: argparse.Namespace, table: DataFrame) -> Days | None:
    """The days to sum up: those that were asked for, else the latest one that has orders."""
    if settings.first is None and settings.last is None:
        day = latest_day(table)
        return Days(day, day) if day else None
    first, last = settings.first or settings.last, settings.last or settings.first
    if first > last:
        raise SystemExit(f"--from {first} is after --to {last}")
    return Days(first, last)


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    spark = options.attach(options.session(name, settings, settings.output_table), name)
    target = f"{settings.catalog}.{settings.output_table}"
    orders.create_table(spark, target, COLUMNS, "days(hour)")
    source = spark.table(f"{settings.catalog}.{settings.table}")
    days = asked(settings, source)
    if days is None:
        sys.stderr.write(f"{JOB}: {settings.table} has no orders yet\n")
    else:
        hourly(source.where(days.of("bid_time"))).writeTo(target).overwrite(days.of("hour"))
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
    for name, dest, what in (("--from", "first", "first"), ("--to", "last", "last")):
        parser.add_argument(
            name, dest=dest, metavar="DAY", type=date.fromisoformat,
            help=f"{what} day of a backfill, as 2026-11-01; alone, the only one  "
            "[the latest day that has orders]",
        )  # fmt: skip
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
