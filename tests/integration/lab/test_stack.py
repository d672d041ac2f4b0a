"""Every service of the lab, used as its user would: one order walks from PostgreSQL to everywhere."""

from __future__ import annotations

import io
import json
import struct
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import fastavro
import httpx
import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from psycopg.conninfo import conninfo_to_dict
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, NestedField, StringType, TimestamptzType

from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import (
        CatalogClient,
        ConnectClient,
        KafkaClient,
        PostgresClient,
        RegistryClient,
        S3Client,
    )

ORDERS = [
    ("o-1", "lamp", Decimal("19.99"), "acme"),
    ("o-2", "desk", Decimal("249.50"), "acme"),
    ("o-3", "chair", Decimal("0.01"), "globex"),
]
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


class Shop(NamedTuple):
    """A database with orders, and the topic its changes go to."""

    url: str
    topic: str


@pytest.fixture(scope="module")
def shop(
    kafka: KafkaClient, connect: ConnectClient, registry: RegistryClient, postgres: PostgresClient
) -> Shop:
    url = postgres.database("shop")
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(
            "create table orders (order_id text primary key, item text, price numeric(10,2),"
            " supplier text, bid_time timestamp default now())"
        )
        for order in ORDERS:
            database.execute("insert into orders values (%s, %s, %s, %s)", order)
    at = conninfo_to_dict(url)
    topic = kafka.topic("orders", partitions=3)
    connect.create(
        {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": at["host"],
            "database.port": at["port"],
            "database.user": at["user"],
            "database.password": connect.secret("postgres.password"),
            "database.dbname": at["dbname"],
            "table.include.list": "public.orders",
            "topic.prefix": unique("dbz"),
            "plugin.name": "pgoutput",
            "slot.name": unique("slot"),
            "publication.name": unique("publication"),
            "publication.autocreate.mode": "filtered",
            "time.precision.mode": "connect",
            "transforms": "unwrap,route",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": ".*",
            "transforms.route.replacement": topic,
            "key.converter": STRINGS,
            **registry.avro_converter(),
        },
        "source",
    )
    return Shop(url, topic)


def decode(registry: RegistryClient, value: bytes) -> dict[str, Any]:
    """An Avro record in Confluent's wire format, its schema asked from the registry."""
    magic, number = struct.unpack(">bI", value[:5])
    assert magic == 0
    answer = httpx.get(f"{registry.url}/schemas/ids/{number}").json()
    decoded = fastavro.schemaless_reader(io.BytesIO(value[5:]), json.loads(answer["schema"]))
    assert isinstance(decoded, dict)
    return decoded


def test_a_row_change_is_seen_in_kafka_as_avro(
    shop: Shop, kafka: KafkaClient, registry: RegistryClient
) -> None:
    with psycopg.connect(shop.url, autocommit=True) as database:
        database.execute("update orders set price = 21.50 where order_id = 'o-1'")
    records = [decode(registry, m.value()) for m in kafka.consume(shop.topic, 4)]
    prices = [record["price"] for record in records if record["order_id"] == "o-1"]
    assert prices == [Decimal("19.99"), Decimal("21.50")]
    assert {record["supplier"] for record in records} == {"acme", "globex"}


@pytest.mark.full  # the demo has this sink with two tasks
def test_the_topic_reaches_an_iceberg_table_by_three_tasks(
    shop: Shop, connect: ConnectClient, registry: RegistryClient, catalog: CatalogClient
) -> None:
    namespace = catalog.namespace()
    table = catalog.client.create_table(
        f"{namespace}.orders",
        Schema(
            NestedField(1, "order_id", StringType()),
            NestedField(2, "item", StringType()),
            NestedField(3, "price", DecimalType(10, 2)),
            NestedField(4, "supplier", StringType()),
            NestedField(5, "bid_time", TimestamptzType()),
        ),
    )
    name = connect.create(
        {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": 3,
            "topics": shop.topic,
            "iceberg.tables": f"{namespace}.orders",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": catalog.url,
            "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "iceberg.catalog.s3.endpoint": catalog.lab.context.url("s3"),
            "iceberg.catalog.s3.path-style-access": "true",
            "iceberg.catalog.s3.access-key-id": connect.secret("s3.access.key"),
            "iceberg.catalog.s3.secret-access-key": connect.secret("s3.secret.key"),
            "iceberg.catalog.client.region": "us-east-1",
            "iceberg.control.topic": unique("control"),
            "iceberg.control.group-id-prefix": unique("group"),
            "iceberg.control.commit.interval-ms": 2000,
            "iceberg.control.commit.timeout-ms": 5000,
            "key.converter": STRINGS,
            **registry.avro_converter(),
        },
        "iceberg",
    )
    assert len(connect.status(name)["tasks"]) == 3

    def rows() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = table.refresh().scan().to_arrow().to_pylist()
        return found if {row["order_id"] for row in found} >= {"o-1", "o-2", "o-3"} else None

    found = wait_until(rows, seconds=120, what="the orders in Iceberg", interval=0.5)
    assert found is not None
    assert table.schema().find_type("price") == DecimalType(10, 2)
    assert {row["price"] for row in found if row["order_id"] == "o-2"} == {Decimal("249.50")}
    assert table.location().startswith("s3://warehouse/")


@pytest.mark.full
def test_the_topic_reaches_another_table_by_jdbc(
    shop: Shop, connect: ConnectClient, registry: RegistryClient, postgres: PostgresClient
) -> None:
    target = postgres.database("copy")
    at = conninfo_to_dict(target)
    connect.create(
        {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "topics": shop.topic,
            "connection.url": f"jdbc:postgresql://{at['host']}:{at['port']}/{at['dbname']}",
            "connection.username": at["user"],
            "connection.password": connect.secret("postgres.password"),
            "insert.mode": "upsert",
            "primary.key.mode": "record_value",
            "primary.key.fields": "order_id",
            "collection.name.format": "orders_copy",
            "schema.evolution": "basic",
            "key.converter": STRINGS,
            **registry.avro_converter(),
        },
        "jdbc",
    )

    def copied() -> bool:
        try:
            with psycopg.connect(target) as database:
                found = database.execute("select order_id, item from orders_copy").fetchall()
        except psycopg.errors.UndefinedTable:
            return False
        return {("o-2", "desk"), ("o-3", "chair")} <= set(found)

    wait_until(copied, seconds=120, what="the copied orders", interval=0.3)


@pytest.mark.full
def test_records_become_objects_in_s3(
    kafka: KafkaClient, connect: ConnectClient, s3: S3Client
) -> None:
    topic, bucket = kafka.topic("raw"), s3.bucket("raw")
    kafka.produce(topic, ['{"n": 1}', '{"n": 2}'])
    secret, key = connect.secret("s3.secret.key"), connect.secret("s3.access.key")
    connect.create(
        {
            "connector.class": "org.apache.camel.kafkaconnector.CamelSinkConnector",
            "topics": topic,
            "camel.sink.url": f"aws2-s3://{bucket}?accessKey=RAW({key})&secretKey=RAW({secret})"
            f"&region=us-east-1&overrideEndpoint=true&uriEndpointOverride={s3.url}"
            "&keyName=archive/${exchangeId}.json",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
        },
        "camel",
    )

    def bodies() -> list[bytes]:
        keys = s3.keys(bucket)
        # An object may be listed a moment before it can be read.
        with suppress(s3.client.exceptions.NoSuchKey):
            return sorted(
                s3.client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys
            )
        return []

    wait_until(lambda: len(bodies()) == 2, seconds=120, what="two objects", interval=0.3)
    assert bodies() == [b'{"n": 1}', b'{"n": 2}']


@pytest.mark.full
def test_objects_in_s3_become_records(
    kafka: KafkaClient, connect: ConnectClient, s3: S3Client
) -> None:
    topic, bucket = kafka.topic("objects"), s3.bucket("drop")
    s3.client.put_object(Bucket=bucket, Key="a.json", Body=b'{"n": 1}')
    secret, key = connect.secret("s3.secret.key"), connect.secret("s3.access.key")
    connect.create(
        {
            "connector.class": "org.apache.camel.kafkaconnector.CamelSourceConnector",
            "topics": topic,
            "camel.source.url": f"aws2-s3://{bucket}?accessKey=RAW({key})&secretKey=RAW({secret})"
            f"&region=us-east-1&overrideEndpoint=true&uriEndpointOverride={s3.url}",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
        },
        "camel",
    )
    (record,) = kafka.consume(topic, 1)
    assert dict(record.headers())["CamelHeader.CamelAwsS3Key"] == b"a.json"


@pytest.mark.full
def test_mirror_maker_copies_a_topic_and_tells_where_its_groups_are(
    kafka: KafkaClient, connect: ConnectClient
) -> None:
    topic, group = kafka.topic("mirrored"), unique("group")
    kafka.produce(topic, ["one", "two"])
    reader = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    reader.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    reader.close()
    clusters = {
        "source.cluster.alias": "east",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": kafka.bootstrap,
        "target.cluster.bootstrap.servers": kafka.bootstrap,
        "key.converter": BYTES,
        "value.converter": BYTES,
    }
    source = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "topics": topic,
        "replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
        "sync.topic.acls.enabled": "false",
    }
    connect.create({**clusters, **source}, "mirror")
    values = [message.value() for message in kafka.consume(f"east.{topic}", 2)]
    assert values == [b"one", b"two"]
    checkpoint = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
        "groups": group,
        "checkpoints.topic.replication.factor": 1,
        "emit.checkpoints.interval.seconds": 1,
    }
    connect.create({**clusters, **checkpoint}, "checkpoint")
    (told,) = kafka.consume("east.checkpoints.internal", 1)
    assert group.encode() in told.key()
    assert f"east.{topic}".encode() in told.key()


@pytest.mark.full
def test_mirror_maker_gives_signs_of_life(kafka: KafkaClient, connect: ConnectClient) -> None:
    heartbeat = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        "source.cluster.alias": "north",
        "target.cluster.alias": "south",
        "source.cluster.bootstrap.servers": kafka.bootstrap,
        "target.cluster.bootstrap.servers": kafka.bootstrap,
        "heartbeats.topic.replication.factor": 1,
        "emit.heartbeats.interval.seconds": 1,
        "key.converter": BYTES,
        "value.converter": BYTES,
    }
    name = connect.create(heartbeat, "heartbeat")
    told = kafka.consume("heartbeats", 2)
    assert all(b"north" in one.key() and b"south" in one.key() for one in told)
    connect.delete(name)  # it would go on for as long as the lab is there


@pytest.mark.full
def test_a_file_is_streamed_through_a_topic(
    kafka: KafkaClient, connect: ConnectClient, tmp_path: Path
) -> None:
    source, topic = tmp_path / "in.txt", kafka.topic("lines")
    source.write_text("first\nsecond\n")
    connect.create(
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": source,
            "topic": topic,
            "value.converter": STRINGS,
        },
        "file",
    )
    assert [m.value() for m in kafka.consume(topic, 2)] == [b"first", b"second"]


AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
JSON_SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}
PROTOBUF = 'syntax = "proto3";\nmessage Order {\n  string id = 1;\n}\n'


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", json.dumps(AVRO)),
        pytest.param("JSON", json.dumps(JSON_SCHEMA), marks=pytest.mark.full),
        pytest.param("PROTOBUF", PROTOBUF, marks=pytest.mark.full),
    ],
)
def test_the_registry_keeps_every_kind_of_schema(
    registry: RegistryClient, kind: str, text: str
) -> None:
    from confluent_kafka.schema_registry import Schema as Registered
    from confluent_kafka.schema_registry import SchemaRegistryClient

    client = SchemaRegistryClient({"url": registry.url})
    subject = registry.subject()
    number = client.register_schema(subject, Registered(text, kind))
    latest = client.get_latest_version(subject)
    assert latest.schema_id == number
    assert (latest.schema.schema_type or "AVRO") == kind
    read = client.get_schema(number).schema_str or ""
    assert "".join(read.split()) == "".join(text.split())
    assert subject in client.get_subjects()


def test_connect_never_shows_a_secret(connect: ConnectClient, shop: Shop) -> None:
    settings = connect.lab.home.settings
    told = connect.http.get("/connectors?expand=info&expand=status").text
    assert shop.topic in told
    assert settings.postgres_password not in told
    assert settings.s3_secret_key not in told
    for log in connect.lab.home.logs.iterdir():
        text = log.read_text(errors="replace")
        assert settings.postgres_password not in text, log
        assert settings.s3_secret_key not in text, log
