"""The batch job on a real Iceberg table reads the days it sums up, and replaces no others."""

from __future__ import annotations

import re
import time
from datetime import date
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

DAYS = ("2026-03-01", "2026-03-02", "2026-03-03")


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> DataFrame:
    """Orders of three days, as the stream lays them down."""
    import orders

    orders.create_table(spark, "lab.default.orders", orders.ORDERS_TABLE, "days(bid_time)")
    for number, day in enumerate(DAYS):
        spark.sql(
            "INSERT INTO lab.default.orders VALUES "
            f"('a{number}', 'lamp', 1.00, 'acme', TIMESTAMP '{day} 00:00:00'), "
            f"('b{number}', 'lamp', 2.00, 'acme', TIMESTAMP '{day} 23:59:59.999')"
        )
    return spark.table("lab.default.orders")


def plan(frame: DataFrame) -> str:
    """The plan that Spark carries out."""
    frame.collect()
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_the_latest_day_is_found_without_opening_a_file(table: DataFrame) -> None:
    import supplier_stats

    found = plan(supplier_stats.newest(table))
    assert "LocalTableScan" in found
    assert "BatchScan" not in found
    assert supplier_stats.latest_day(table) == date(2026, 3, 3)


@pytest.fixture(params=["Pacific/Kiritimati", "Pacific/Niue"])
def machine_zone(request: pytest.FixtureRequest) -> Iterator[None]:
    """A machine that is half a day before or after UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("machine_zone")
@pytest.mark.parametrize(
    "order", [DAYS[0], *(pytest.param(day, marks=pytest.mark.full) for day in DAYS[1:])]
)
def test_the_latest_day_is_one_of_utc_wherever_the_job_runs(table: DataFrame, order: str) -> None:
    import supplier_stats

    day = date.fromisoformat(order)
    for at in ("00:00:00", "23:59:59.999"):
        upto = table.where(f"bid_time <= TIMESTAMP '{order} {at}'")
        assert supplier_stats.latest_day(upto) == day


def test_a_table_without_orders_has_no_latest_day(table: DataFrame) -> None:
    import supplier_stats

    assert supplier_stats.latest_day(table.where("supplier = 'nobody'")) is None


def test_only_the_days_that_are_summed_up_are_read(table: DataFrame) -> None:
    import supplier_stats

    one = table.where(supplier_stats.Days(date(2026, 3, 2), date(2026, 3, 2)).of("bid_time"))
    pushed = plan(one)
    assert re.search(r"filters=.*bid_time >= \d+, bid_time < \d+", pushed), pushed
    assert "Filter (" not in pushed  # whole partitions: no row is looked at again
    assert one.count() == 2


def test_a_backfill_replaces_its_days_and_no_others(spark: SparkSession, table: DataFrame) -> None:
    import orders
    import supplier_stats

    target = "lab.default.supplier_stats"
    orders.create_table(spark, target, supplier_stats.COLUMNS, "days(hour)")

    def run(*given: str) -> None:
        days = supplier_stats.asked(supplier_stats.arguments().parse_args(given), table)
        assert days is not None
        totals = supplier_stats.hourly(table.where(days.of("bid_time")))
        totals.writeTo(target).overwrite(days.of("hour"))

    def counts() -> dict[str, int]:
        rows = spark.table(target).selectExpr("cast(hour as string) hour", "count").collect()
        assert len(rows) == len({row["hour"] for row in rows})
        return {row["hour"][:13]: row["count"] for row in rows}

    run()
    latest = {"2026-03-03 00": 1, "2026-03-03 23": 1}
    assert counts() == latest
    run("--from", "2026-03-01", "--to", "2026-03-02")
    all_days = {f"{day} {hour}": 1 for day in DAYS for hour in ("00", "23")}
    assert counts() == all_days
    run()
    assert counts() == all_days
