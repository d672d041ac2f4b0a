"""Orders as Connect writes them, ready in Kafka: Avro, the schema in the registry."""

from __future__ import annotations

import json
import random
import struct
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lab.lab import Lab

PARTITIONS = 4
BEGIN = 1_772_366_400_000  # 2026-03-01T12:00:00Z
SCHEMA = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "order_id", "type": "string"},
        {"name": "item", "type": "string"},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "supplier", "type": "string"},
        {"name": "bid_time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def zigzag(number: int) -> bytes:
    """A whole number as Avro writes it."""
    number <<= 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def text(value: str) -> bytes:
    return zigzag(len(value)) + value.encode()


def values(schema: int, count: int) -> Iterator[bytes]:
    """Orders of an hour, a few out of order; written by hand, since a library takes ten times as long."""
    chance = random.Random(7)
    head = struct.pack(">bI", 0, schema)
    items = [text(item) for item in ("lamp", "desk", "chair", "shelf", "clock")]
    suppliers = [text(f"supplier {n:02d}") for n in range(50)]
    prices = [
        b"\x06" + chance.randint(100, 99_999).to_bytes(3, "big", signed=True) for _ in range(1000)
    ]
    for n in range(count):
        at = BEGIN + n * 3_000_000 // count - (chance.randrange(60_000) if n % 20 == 0 else 0)
        yield b"".join(
            (head, b"\x20", b"%016x" % n, items[n % 5], prices[n * 7 % 1000],
             suppliers[n * 13 % 50], zigzag(at))
        )  # fmt: skip


def fill(lab: Lab, count: int) -> str:
    """A topic with so many orders, and its schema in the registry."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    env = lab.env()
    topic = f"orders-{count}"
    admin = AdminClient({"bootstrap.servers": env["BOOTSTRAP"]})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        future.result(30)
    subject = f"{env['REGISTRY_URL']}/subjects/{topic}-value/versions"
    answer = httpx.post(subject, json={"schema": json.dumps(SCHEMA)}, trust_env=False, timeout=30)
    producer = Producer(
        {"bootstrap.servers": env["BOOTSTRAP"], "linger.ms": 50, "batch.size": 1 << 20,
         "queue.buffering.max.messages": 500_000}
    )  # fmt: skip
    for n, value in enumerate(values(int(answer.json()["id"]), count)):
        while True:
            try:
                # In turn, so that partitions hold the same hour and not one after another.
                producer.produce(topic, value, partition=n // 500 % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    return topic
