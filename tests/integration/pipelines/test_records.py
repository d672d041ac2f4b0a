"""Repeated, late, bad and newer records, and a restart from the checkpoint, on real components."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lab.clients import unique
from tests.integration.pipelines import jobs, wire
from tests.integration.pipelines.wire import order

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient, RegistryClient
    from headwater.lab.lab import Lab

# What the table is made with, as the pipeline promises it.
WANTED = {
    "write.format.default": "parquet",
    "write.parquet.compression-codec": "snappy",
    "write.target-file-size-bytes": "134217728",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "3",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
}


class Pipeline:
    """The two streams over topics and a table of their own."""

    def __init__(self, lab: Lab, kafka: KafkaClient, folder: Path, namespace: str) -> None:
        self.lab, self.kafka, self.folder = lab, kafka, folder
        self.topic = kafka.topic("orders", 2)
        self.totals, self.dead = kafka.topic("totals"), kafka.topic("dead")
        self.table = f"{namespace}.orders"

    def run(self) -> str:
        """Let both handle what is there; returns what the ingestion said."""
        ingestion = self._start("iceberg_ingestion.py", "--table", self.table,
                                "--dead-letter-topic", self.dead)  # fmt: skip
        stats = self._start("supplier_stats_stream.py", "--output-topic", self.totals)
        stats.end()
        return ingestion.end()

    def _start(self, program: str, *arguments: str) -> jobs.Job:
        folder = self.folder / program
        checkpoint = (folder / "checkpoint").as_uri()
        given = ["--input-topic", self.topic, "--checkpoint", checkpoint, *arguments]
        return jobs.start(self.lab, program, *given, folder=folder)

    def window_totals(self) -> dict[str, tuple[Decimal, int]]:
        found = jobs.window_totals(self.kafka.bootstrap, self.totals)
        return {window[11:]: total for (_, window), total in found.items()}

    def reasons(self) -> Counter[str]:
        """How often each reason stands in the dead-letter topic, where a record was counted once."""
        keys = {record.key() for record in jobs.records(self.kafka.bootstrap, self.dead)}
        return Counter(json.loads(key)["reason"] for key in keys)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_what_is_repeated_late_bad_or_newer_and_a_restart(
    lab: Lab,
    kafka: KafkaClient,
    registry: RegistryClient,
    catalog: CatalogClient,
    tmp_path: Path,
) -> None:
    pipeline = Pipeline(lab, kafka, tmp_path, unique("shop"))
    first = wire.schema()
    number = wire.register(registry.url, pipeline.topic, first)

    def old(*given: Any, **more: Any) -> bytes:
        return wire.encode(first, number, order(*given, **more))

    junk = bytes([0]) + number.to_bytes(4, "big") + b"\xff\xff"
    nobody = wire.encode(first, number, {**order("x", "1.00", "12:00:00"), "supplier": None})
    again = old("a", "1.10", "12:00:01")
    kafka.produce(
        pipeline.topic,
        [again, again, old("b", "2.00", "12:00:59"), junk, b"{}", nobody, old("c", "-1", "12:00")],
    )
    empty(kafka, pipeline.topic)
    said = pipeline.run()

    def landed() -> dict[str, Decimal]:
        rows = catalog.client.load_table(pipeline.table).scan().to_arrow().to_pylist()
        assert len(rows) == len({row["order_id"] for row in rows})
        return {row["order_id"]: row["price"] for row in rows}

    table = catalog.client.load_table(pipeline.table)
    assert [str(field.transform) for field in table.spec().fields] == ["day"]
    assert table.metadata.format_version == 2
    assert WANTED.items() <= table.properties.items()
    assert landed() == {"a": Decimal("1.10"), "b": Decimal("2.00")}
    assert pipeline.window_totals() == {"12:00": (Decimal("3.10"), 2)}
    bad = {
        "the record is empty": 1,
        "not Avro in Confluent's wire format": 1,
        "does not fit the schema": 1,
        "a price that is not positive": 1,
        "no supplier": 1,
    }
    assert pipeline.reasons() == bad
    assert "5 records rejected" in said

    # A column is added; what was written before it, and by a schema newer still, is read all the same.
    second = wire.schema("discount")
    newer = wire.register(registry.url, pipeline.topic, second)
    third = wire.schema("discount", "channel")
    kafka.produce(
        pipeline.topic,
        [
            wire.encode(second, newer, order("d", "5.00", "12:30:00", discount="10 %")),
            wire.encode(third, 2**31 - 1, order("e", "6.00", "12:30:01", discount=None, channel="web")),
            old("f", "0.40", "12:00:30"),  # late: it corrects a window
            again,
        ],
    )  # fmt: skip
    pipeline.run()
    assert landed() == {
        "a": Decimal("1.10"),
        "b": Decimal("2.00"),
        "d": Decimal("5.00"),
        "e": Decimal("6.00"),
        "f": Decimal("0.40"),
    }
    assert pipeline.window_totals() == {
        "12:00": (Decimal("3.50"), 3),
        "12:30": (Decimal("11.00"), 2),
    }
    assert pipeline.reasons() == bad


def empty(kafka: KafkaClient, topic: str) -> None:
    """A record without a value, as a deleted row leaves one."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(topic, None, key=b"gone")
    assert producer.flush(30) == 0
