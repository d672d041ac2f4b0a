"""The demo: orders walk from a shop's database through Kafka into an Iceberg table."""

from __future__ import annotations

import random
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import psycopg
from psycopg.conninfo import conninfo_to_dict

from headwater.errors import HeadwaterError
from headwater.lab.ports import LOOPBACK
from headwater.lab.services.catalog import CATALOG
from headwater.lab.services.connect import secrets_file
from headwater.lab.services.registry import CONFLUENT_API, NATIVE_API, avro_converter
from headwater.lab.services.s3 import REGION
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lab.lab import Lab

SUPPLIERS = ("acme", "globex", "initech", "umbrella")
ITEMS = ("lamp", "desk", "chair", "shelf", "clock", "rug")
TOPIC = "orders"
TABLE = "default.orders_landing"
RUNNING_SECONDS = 90.0


class Seen(NamedTuple):
    """How many orders each stage holds."""

    database: int
    topic: int
    table: int

    @property
    def complete(self) -> bool:
        return 0 < self.database <= min(self.topic, self.table)


class Demo:
    """The stages of the orders pipeline on a running lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.database_url = lab.env()["POSTGRES_URL"]

    def prepare(self) -> None:
        """Make table, topic and connectors; what is there already stays."""
        with psycopg.connect(self.database_url, autocommit=True) as database:
            database.execute(
                "create table if not exists orders (order_id text primary key, item text not null,"
                " price numeric(10,2) not null, supplier text not null,"
                " bid_time timestamp not null default now())"
            )
        # Left to itself the sink would make decimal(38,2) of the price.
        from pyiceberg.schema import Schema
        from pyiceberg.types import DecimalType, NestedField, StringType, TimestamptzType

        self.catalog.create_namespace_if_not_exists("default")
        self.catalog.create_table_if_not_exists(
            TABLE,
            Schema(
                NestedField(1, "order_id", StringType()),
                NestedField(2, "item", StringType()),
                NestedField(3, "price", DecimalType(10, 2)),
                NestedField(4, "supplier", StringType()),
                NestedField(5, "bid_time", TimestamptzType()),
            ),
        )
        self._connector("orders-source", self._source())
        self._connector("orders-iceberg-sink", self._sink())

    def order(self, count: int = 1) -> None:
        """Let customers order."""
        rows = [
            (
                uuid.uuid4().hex[:12],
                random.choice(ITEMS),  # noqa: S311
                random.randint(100, 99_999) / 100,  # noqa: S311
                random.choice(SUPPLIERS),  # noqa: S311
            )
            for _ in range(count)
        ]
        with psycopg.connect(self.database_url) as database, database.cursor() as cursor:
            cursor.executemany(
                "insert into orders (order_id, item, price, supplier) values (%s, %s, %s, %s)", rows
            )

    def look(self) -> Seen:
        """Count the orders at every stage."""
        with psycopg.connect(self.database_url) as database:
            row = database.execute("select count(*) from orders").fetchone()
        snapshot = self.catalog.load_table(TABLE).current_snapshot()
        landed = snapshot.summary["total-records"] if snapshot and snapshot.summary else 0
        return Seen(row[0] if row else 0, self._end_offset(), int(landed or 0))

    @cached_property
    def catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog(CATALOG, type="rest", uri=self.lab.context.url("catalog"))

    @cached_property
    def _consumer(self) -> Any:
        from confluent_kafka import Consumer

        bootstrap = f"{LOOPBACK}:{self.lab.context.port('kafka')}"
        return Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "headwater-demo", "log_level": 0}
        )

    def _end_offset(self) -> int:
        from confluent_kafka import KafkaException, TopicPartition

        try:
            _, end = self._consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=5)
        except KafkaException:  # the topic comes with its first record
            return 0
        return max(0, int(end))

    def _secret(self, key: str) -> str:
        return f"${{file:{secrets_file(self.lab.context)}:{key}}}"

    def _source(self) -> dict[str, str]:
        at = conninfo_to_dict(self.database_url)
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": str(at["host"]),
            "database.port": str(at["port"]),
            "database.user": str(at["user"]),
            "database.password": self._secret("postgres.password"),
            "database.dbname": str(at["dbname"]),
            "table.include.list": "public.orders",
            "topic.prefix": "shop",
            "plugin.name": "pgoutput",
            "publication.autocreate.mode": "filtered",
            "time.precision.mode": "connect",
            "transforms": "unwrap,route",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": "shop\\.public\\.(.*)",
            "transforms.route.replacement": "$1",
            **self._avro(),
        }

    def _sink(self) -> dict[str, str]:
        return {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": "2",
            "topics": TOPIC,
            "iceberg.tables": TABLE,
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": self.lab.context.url("catalog"),
            "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "iceberg.catalog.s3.endpoint": self.lab.context.url("s3"),
            "iceberg.catalog.s3.path-style-access": "true",
            "iceberg.catalog.s3.access-key-id": self._secret("s3.access.key"),
            "iceberg.catalog.s3.secret-access-key": self._secret("s3.secret.key"),
            "iceberg.catalog.client.region": REGION,
            "iceberg.control.commit.interval-ms": "3000",
            "iceberg.control.commit.timeout-ms": "5000",
            **self._avro(),
        }

    def _avro(self) -> dict[str, str]:
        return {
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            **avro_converter(self.lab.context.url("registry", NATIVE_API)),
        }

    def _connector(self, name: str, config: Mapping[str, str]) -> None:
        url = self.lab.context.url("connect", f"/connectors/{name}")
        answer = httpx.put(f"{url}/config", json=dict(config), timeout=60, trust_env=False)
        if answer.status_code >= 400:
            raise HeadwaterError(f"Connect refused {name}: {answer.text}")

        def running() -> bool:
            status = httpx.get(f"{url}/status", timeout=30, trust_env=False).json()
            parts = [status.get("connector", {}), *status.get("tasks", [])]
            for part in parts:
                if part.get("state") == "FAILED":
                    said = part.get("trace", "").splitlines()[0]
                    raise HeadwaterError(
                        f"{name} failed: {said}", hint="headwater lab logs connect"
                    )
            return len(parts) > 1 and all(part.get("state") == "RUNNING" for part in parts)

        wait_until(running, seconds=RUNNING_SECONDS, what=f"{name} to run", interval=0.3)

    def addresses(self) -> dict[str, str]:
        """Where a person can look for themselves."""
        lab = self.lab.context
        return {
            "Kafka": f"{LOOPBACK}:{lab.port('kafka')}, topic {TOPIC}",
            "Connect": lab.url("connect", "/connectors?expand=status"),
            "registry": lab.url("registry", f"{CONFLUENT_API}/subjects"),
            "catalog": lab.url("catalog", f"/v1/namespaces/default/tables/{TABLE.split('.')[1]}"),
        }
