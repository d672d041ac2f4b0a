"""Window totals as a real stream over files: repeated, late and too late orders, and a restart."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
import supplier_stats_stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ORDER = "order_id string, item string, price decimal(10,2), supplier string, bid_time timestamp"
Totals = dict[tuple[str, str], tuple[Decimal, int]]


class Stream:
    """The job's logic on a folder of files; the last record of a key is the one that counts."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.source, self.checkpoint = folder / "orders", folder / "checkpoint"
        self.source.mkdir()
        self.last: Totals = {}
        self.records = 0

    def deliver(self, *orders: tuple[str, str, str], emit: str = "update") -> None:
        """Bring orders (id, price, time of day), and let the stream run until it has seen them."""
        rows = [
            {"order_id": number, "item": "lamp", "price": price, "supplier": "acme",
             "bid_time": f"2026-03-01 {at}"}
            for number, price, at in orders
        ]  # fmt: skip
        lines = "\n".join(map(json.dumps, rows))
        (self.source / f"{len(list(self.source.iterdir()))}.json").write_text(lines)
        stream = self.spark.readStream.schema(ORDER).json(str(self.source))
        once = supplier_stats_stream.once(stream, "1 hour")
        (
            supplier_stats_stream.totals(once, "1 minute")
            .writeStream.outputMode(supplier_stats_stream.EMIT[emit])
            .foreachBatch(self._take)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )

    def _take(self, batch: DataFrame, _number: int) -> None:
        for row in batch.selectExpr("*", "date_format(window_start, 'HH:mm') at").collect():
            self.records += 1
            self.last[row["supplier"], row["at"]] = (row["total_price"], row["count"])


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Any:
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    return Stream(spark, tmp_path)


def test_an_order_counts_once_and_a_late_one_corrects_its_window(stream: Stream) -> None:
    stream.deliver(("a", "1.10", "12:00:01"), ("a", "1.10", "12:00:01"), ("b", "2.00", "12:00:59"))
    assert stream.last == {("acme", "12:00"): (Decimal("3.10"), 2)}
    stream.deliver(("b", "2.00", "12:00:59"), ("c", "5.00", "12:30:00"))
    stream.deliver(("d", "0.40", "11:59:30"), ("a", "1.10", "12:00:01"), ("e", "1.00", "12:00:02"))
    assert stream.last == {
        ("acme", "11:59"): (Decimal("0.40"), 1),
        ("acme", "12:00"): (Decimal("4.10"), 3),
        ("acme", "12:30"): (Decimal("5.00"), 1),
    }


@pytest.mark.full
def test_an_order_past_the_watermark_changes_nothing(stream: Stream) -> None:
    stream.deliver(("a", "1.00", "12:00:00"), ("b", "1.00", "14:00:00"))
    before = dict(stream.last)
    stream.deliver(("c", "1.00", "12:00:00"), ("a", "1.00", "12:00:00"))
    assert stream.last == before


@pytest.mark.full
def test_a_window_may_be_written_once_when_it_is_over(stream: Stream) -> None:
    stream.deliver(("a", "1.00", "12:00:00"), ("b", "2.00", "12:00:30"), emit="final")
    stream.deliver(("c", "4.00", "12:00:59"), emit="final")
    assert stream.last == {}
    stream.deliver(("d", "8.00", "13:01:01"), emit="final")
    assert stream.last == {("acme", "12:00"): (Decimal("7.00"), 3)}
    stream.deliver(("e", "1.00", "12:00:00"), ("f", "1.00", "13:01:02"), emit="final")
    assert stream.records == 1
