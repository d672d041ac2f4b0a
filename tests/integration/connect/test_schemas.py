"""Schemas of every format out of a real registry, and of records where there is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.connect.model import Connector
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.connect.services.registry import SchemaRegistry
from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

from .watching import ClusterAgent, columns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.clients import ConnectClient, KafkaClient, RegistryClient

    from .shop import Shop

ADDRESS = {
    "type": "record", "name": "Address", "namespace": "shop",
    "fields": [{"name": "city", "type": "string"}],
}  # fmt: skip
CUSTOMER = {
    "type": "record", "name": "Customer", "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "home", "type": "shop.Address"}],
}  # fmt: skip
JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "home": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
PROTOBUF = """syntax = "proto3";
package shop;
message Customer { int64 id = 1; Address home = 2; }
message Address { string city = 1; }
"""


@pytest.fixture
def asked(registry: RegistryClient) -> Iterator[SchemaRegistry]:
    made = SchemaRegistry(Endpoint((registry.url,)))
    yield made
    made.close()


def put(registry: RegistryClient, subject: str, schema: Any, **more: Any) -> None:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    answer = httpx.post(
        f"{registry.url}/subjects/{subject}/versions",
        json={"schema": text, **more},
        trust_env=False,
        timeout=30,
    )
    assert answer.is_success, answer.text


def test_every_format_with_nested_records_and_references(
    registry: RegistryClient, asked: SchemaRegistry
) -> None:
    address, topic = unique("address"), unique("customers")
    put(registry, address, ADDRESS)
    reference = {"name": "shop.Address", "subject": address, "version": 1}
    formats = {
        "AVRO": (CUSTOMER, {"references": [reference]}),
        "JSON": (JSON_SCHEMA, {}),
        "PROTOBUF": (PROTOBUF, {}),
    }
    for kind, (schema, more) in formats.items():
        put(registry, f"{topic}-{kind}-value", schema, schemaType=kind, **more)
    for kind in formats:
        found = asked.latest(f"{topic}-{kind}-value")
        assert found is not None
        assert found.schema is not None, found.problem
        assert [f.name for f in found.schema.columns()] == ["id", "home.city"], kind


@pytest.mark.full
def test_key_and_value_by_every_strategy(registry: RegistryClient, asked: SchemaRegistry) -> None:
    topic = unique("orders")
    put(registry, f"{topic}-value", {**CUSTOMER, "fields": CUSTOMER["fields"][:1]})
    put(registry, f"{topic}-key", '"string"')
    put(registry, f"{topic}-shop.Address", ADDRESS)
    metadata = LiveMetadata(registry=asked)
    strategy = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
    for config, value, key in (
        ({}, ["id"], "string"),
        ({"value.converter.value.subject.name.strategy": strategy}, ["city"], "string"),
    ):
        found = metadata.topic_schema(topic, Connector("c", "sink", config))
        assert found is not None
        assert found.value is not None
        assert found.key is not None
        assert [f.name for f in found.value.fields] == value
        assert found.key.type == key


@pytest.mark.full
def test_columns_of_json_records_where_sampling_is_allowed(
    shop: Shop, kafka: KafkaClient, connect: ConnectClient, tmp_path: Path
) -> None:
    topic = kafka.topic("sampled")
    kafka.produce(topic, ['{"id": 1, "home": {"city": "Oslo"}}'])
    sink = connect.create(shop.json_sink(topic), "sampled")
    agent = ClusterAgent(
        tmp_path, connect.url, "--kafka-bootstrap", kafka.bootstrap, "--poll", "0.3", "--sample"
    ).start()
    try:
        agent.wait_for(sink, "START")
        wait_until(
            lambda: columns(agent.events(sink)[-1]["inputs"][0]) == ["id", "home"],
            seconds=120,
            what="the columns of a record",
        )

        def row() -> dict[str, Any]:
            shown = agent.command("list", "--json", "--kafka-bootstrap", kafka.bootstrap)
            return next(row for row in json.loads(shown) if row["name"] == sink)

        assert row()["state"] == "RUNNING"
        assert [part.rsplit("/", 1)[-1] for part in row()["inputs"]] == [topic]
        wait_until(lambda: row()["lag"] == 0, seconds=120, what="its offsets to be committed")
    finally:
        agent.kill()
        connect.delete(sink)
