"""Orders as Connect writes them: Avro in Confluent's wire format, the schema in the registry."""

from __future__ import annotations

import io
import json
import struct
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import fastavro
import httpx

FIELDS: list[dict[str, Any]] = [
    {"name": "order_id", "type": ["null", "string"], "default": None},
    {"name": "item", "type": ["null", "string"], "default": None},
    {
        "name": "price",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}],
        "default": None,
    },
    {"name": "supplier", "type": ["null", "string"], "default": None},
    {
        "name": "bid_time",
        "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "default": None,
    },
]


def schema(*more: str) -> dict[str, Any]:
    """The schema of an order, with more nullable columns at the end."""
    added = [{"name": name, "type": ["null", "string"], "default": None} for name in more]
    return {"type": "record", "name": "Value", "namespace": "shop", "fields": [*FIELDS, *added]}


def register(registry_url: str, topic: str, of: dict[str, Any]) -> int:
    """Make a schema known; returns the number that records carry for it."""
    answer = httpx.post(
        f"{registry_url}/subjects/{topic}-value/versions",
        json={"schema": json.dumps(of)},
        trust_env=False,
        timeout=30,
    )
    answer.raise_for_status()
    return int(answer.json()["id"])


def at(text: str) -> datetime:
    """A moment of the day all these tests live in."""
    return datetime.fromisoformat(f"2026-03-01T{text}").replace(tzinfo=timezone.utc)


def order(
    number: str, price: str, when: str, supplier: str = "acme", **more: Any
) -> dict[str, Any]:
    """An order as a record."""
    return {
        "order_id": number,
        "item": "lamp",
        "price": Decimal(price),
        "supplier": supplier,
        "bid_time": at(when),
        **more,
    }


def encode(of: dict[str, Any], number: int, record: dict[str, Any]) -> bytes:
    """A record as the value of a Kafka record."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(of), record)
    return struct.pack(">bI", 0, number) + out.getvalue()
