"""The pipeline's logic on small frames."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import iceberg_ingestion
import options
import orders
import pytest
import supplier_stats
import supplier_stats_stream
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = "order_id string, item string, price decimal(10,2), supplier string, bid_time timestamp"
BOUNDS = ("window_start", "window_end")
TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
NOON = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), ORDER)


def order(number: int, price: str, supplier: str = "acme", at: datetime = NOON) -> tuple[Any, ...]:
    return (f"o-{number}", "lamp", Decimal(price), supplier, at)


RECORDS: list[tuple[bytes | None, Any, str | None]] = [
    (b"\x00\x00\x00\x00\x01x", order(1, "9.99"), None),
    (None, None, "the record is empty"),
    (b"{}", None, "not Avro in Confluent's wire format"),
    (b"\x00\x00\x00\x00\x01x", None, "does not fit the schema"),
    (b"\x00....x", (None,) * 5, "does not fit the schema"),
    (b"\x00....x", (None, "lamp", Decimal(1), "acme", NOON), "no order_id"),
    (b"\x00....x", ("o-1", "lamp", None, "acme", NOON), "no price"),
    (b"\x00....x", order(1, "0.00"), "a price that is not positive"),
    (b"\x00....x", ("o-1", "lamp", Decimal(1), None, NOON), "no supplier"),
    (b"\x00....x", ("o-1", "lamp", Decimal(1), "acme", None), "no bid_time"),
]


@pytest.fixture(scope="module")
def reasons(spark: SparkSession) -> list[str | None]:
    """What the job says of each record, in their order."""
    shape = f"value binary, order struct<{ORDER.replace(' ', ':').replace(',:', ',')}>"
    rows = spark.createDataFrame([(value, record) for value, record, _ in RECORDS], shape)
    told = rows.select(orders.reason(F.col("order"), F.col("value"))).collect()
    return [row[0] for row in told]


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_a_bad_record_is_told_apart_with_its_reason(reasons: list[str | None], number: int) -> None:
    value, record, expected = RECORDS[number]
    assert reasons[number] == expected, (value, record)


def test_rejected_records_keep_their_bytes_and_say_where_they_were(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("orders", 0, 7, b"junk", "no price"), ("orders", 0, 8, b"fine", None)],
        "topic string, partition int, offset long, value binary, reason string",
    )
    (found,) = iceberg_ingestion.rejected(rows).collect()
    assert bytes(found["value"]) == b"junk"
    assert found["key"] == '{"reason":"no price","topic":"orders","partition":0,"offset":7}'


def test_a_micro_batch_is_summed_up_by_the_span_of_its_orders_and_by_reasons(
    spark: SparkSession,
) -> None:
    later = datetime(2026, 3, 1, 12, 0, 0, 123456)  # noqa: DTZ001
    never = datetime(1999, 1, 1)  # noqa: DTZ001
    rows = [
        (order(1, "1.00"), None),
        (order(2, "1.00", at=later), None),
        (order(3, "-1.00", at=never), "a price that is not positive"),
        (None, "the record is empty"),
        (None, "the record is empty"),
    ]
    shape = f"order struct<{ORDER.replace(' ', ':').replace(',:', ',')}>, reason string"
    found = iceberg_ingestion.summary(spark.createDataFrame(rows, shape))
    assert (found.first, found.last) == ("2026-03-01 12:00:00", "2026-03-01 12:00:00.123456")
    assert found.rejected == {"the record is empty": 2, "a price that is not positive": 1}


def test_window_totals_are_per_supplier_and_window(spark: SparkSession) -> None:
    late = datetime(2026, 3, 1, 12, 1)  # noqa: DTZ001
    stream = frame(
        spark,
        order(1, "1.10"),
        order(2, "2.20"),
        order(3, "5.00", "globex"),
        order(4, "7.00", at=late),
    )
    rows = supplier_stats_stream.totals(stream, "1 minute").collect()
    found = {
        (r["window_start"].minute, r["supplier"]): (r["total_price"], r["count"]) for r in rows
    }
    assert found == {
        (0, "acme"): (Decimal("3.30"), 2),
        (0, "globex"): (Decimal("5.00"), 1),
        (1, "acme"): (Decimal("7.00"), 1),
    }


def test_totals_without_a_schema_are_json(spark: SparkSession) -> None:
    orders_of_noon = frame(spark, order(1, "10.00"), order(2, "2.50"))
    stats = supplier_stats_stream.totals(orders_of_noon, "1 minute")
    (record,) = supplier_stats_stream.to_records(stats, None).collect()
    start, end = (stats.select(F.date_format(name, TIME)).collect()[0][0] for name in BOUNDS)
    assert json.loads(record["key"]) == {"supplier": "acme", "window_start": start}
    assert json.loads(record["value"]) == {
        "window_start": start,
        "window_end": end,
        "supplier": "acme",
        "total_price": 12.5,
        "count": 2,
    }


def test_every_setting_of_a_login_to_kafka_can_be_a_variable(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the names that the client itself has, in the version that Spark's source is tested with."""
    assert spark._jvm is not None
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    config = loader.loadClass("org.apache.kafka.clients.consumer.ConsumerConfig")
    names = {str(n) for n in config.getMethod("configNames", None).invoke(None, None)}
    logins = {name for name in names if name.startswith(("security.protocol", "sasl.", "ssl."))}
    assert logins >= {"ssl.truststore.location", "sasl.jaas.config", "security.protocol"}
    for name in logins:
        monkeypatch.setenv(f"KAFKA_{name.upper().replace('.', '_')}", name)
    given = supplier_stats_stream.arguments().parse_args(["--bootstrap=k:9092", "--registry-url=r"])
    assert options.kafka(given) == {
        "kafka.bootstrap.servers": "k:9092",
        **{f"kafka.{name}": name for name in logins},
    }


def test_hourly_totals_cover_the_days_that_were_asked_for(spark: SparkSession) -> None:
    before = datetime(2026, 2, 28, 23, 59)  # noqa: DTZ001
    table = frame(spark, order(1, "1.00", at=before), order(2, "2.00"), order(3, "3.00"))

    def totals(*given: str) -> dict[datetime, Decimal]:
        days = supplier_stats.asked(supplier_stats.arguments().parse_args(given), table)
        assert days is not None
        rows = supplier_stats.hourly(table.where(days.of("bid_time"))).collect()
        return {row["hour"]: row["total_price"] for row in rows}

    late = before.replace(minute=0)
    assert totals() == {NOON: Decimal("5.00")}
    assert totals("--from", "2026-02-28") == {late: Decimal("1.00")}
    assert totals("--from", "2026-02-01", "--to", "2026-03-01") == {
        late: Decimal("1.00"),
        NOON: Decimal("5.00"),
    }
    assert totals("--to", "2026-02-27") == {}
    nothing = frame(spark, order(1, "1.00")).where("false")
    assert supplier_stats.asked(supplier_stats.arguments().parse_args([]), nothing) is None


@pytest.mark.parametrize("given", [["--from", "2026-03-02", "--to", "2026-03-01"], ["--to", "now"]])
def test_days_that_are_none_are_refused(given: list[str], spark: SparkSession) -> None:
    with pytest.raises(SystemExit):
        supplier_stats.asked(supplier_stats.arguments().parse_args(given), frame(spark))
