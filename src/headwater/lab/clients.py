"""The lab's services as tests use them: clients, and names that no other test has."""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any

import httpx

from headwater.lab.services import SERVICES
from headwater.lab.services import s3 as s3_service
from headwater.lab.services.logins import connect_login, kafka_client
from headwater.lab.services.registry import avro_converter
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.lab.lab import Lab

READY_SECONDS = 60.0


def unique(prefix: str) -> str:
    """A name no other test has."""
    return f"{prefix}_{uuid.uuid4().hex[:10]}"


class ServiceClient:
    """A service as tests use it."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab = lab
        self.env: dict[str, str] = SERVICES[name].env(lab.context)
        self.port = lab.context.port(name)


class KafkaClient(ServiceClient):
    @property
    def bootstrap(self) -> str:
        return self.env["BOOTSTRAP"]

    @property
    def _settings(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, **kafka_client(self.lab.context)}

    @cached_property
    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._settings)

    def topic(self, prefix: str = "topic", partitions: int = 1) -> str:
        """A new topic."""
        from confluent_kafka.cimpl import NewTopic

        name = unique(prefix)
        for future in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(30)
        return name

    def produce(self, topic: str, values: Sequence[bytes | str]) -> None:
        """Write records and wait until the broker has them."""
        from confluent_kafka import Producer

        producer = Producer(self._settings)
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(30) == 0

    def consume(self, topic: str, count: int, seconds: float = READY_SECONDS) -> list[Any]:
        """Read a topic from its start until so many records have come."""
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                **self._settings,
                "group.id": unique("reader"),
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        consumer.subscribe([topic])
        found: list[Any] = []

        def enough() -> bool:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(message)
            return len(found) >= count

        try:
            wait_until(enough, seconds=seconds, what=f"{count} records in {topic}", interval=0)
        finally:
            consumer.close()
        return found


class ConnectClient(ServiceClient):
    @property
    def url(self) -> str:
        return self.env["CONNECT_URL"]

    @cached_property
    def http(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, timeout=30, trust_env=False, auth=connect_login(self.lab.context)
        )

    def secret(self, key: str) -> str:
        """A placeholder the worker replaces by the lab's secret of that name."""
        return f"${{file:{self.env['CONNECT_SECRETS_FILE']}:{key}}}"

    def create(self, config: Mapping[str, object], prefix: str = "connector") -> str:
        """Make a connector under a unique name and wait until it and its tasks run."""
        name = unique(prefix)
        body = {key: str(value) for key, value in config.items()}
        answer = self.http.put(f"/connectors/{name}/config", json=body)
        assert answer.status_code == 201, answer.text
        self.wait_running(name)
        return name

    def status(self, name: str) -> Any:
        return self.http.get(f"/connectors/{name}/status").json()

    def wait_running(self, name: str, seconds: float = READY_SECONDS) -> None:
        """Wait until the connector runs, and every task that it has.

        The status lists a task from the moment it starts, so of three it lists one for a while:
        how many there are is in the connector's own answer.
        """

        def running() -> bool:
            status = self.status(name)
            tasks = status.get("tasks", [])
            parts = [status.get("connector", {}), *tasks]
            failed = [part for part in parts if part.get("state") == "FAILED"]
            assert not failed, failed[0].get("trace")
            made = self.http.get(f"/connectors/{name}").json().get("tasks", [])
            return len(tasks) == len(made) > 0 and all(
                part.get("state") == "RUNNING" for part in parts
            )

        wait_until(running, seconds=seconds, what=f"connector {name} to run")

    def delete(self, name: str) -> None:
        self.http.delete(f"/connectors/{name}").raise_for_status()


class RegistryClient(ServiceClient):
    @property
    def url(self) -> str:
        """The Confluent API."""
        return self.env["REGISTRY_URL"]

    @property
    def native_url(self) -> str:
        """Apicurio's own API, which its Connect converters use."""
        return self.env["APICURIO_URL"]

    def subject(self, prefix: str = "subject") -> str:
        return unique(prefix)

    def avro_converter(self, side: str = "value") -> dict[str, str]:
        """A connector's settings for Avro in Confluent's wire format."""
        return avro_converter(self.native_url, side)


class S3Client(ServiceClient):
    @property
    def url(self) -> str:
        return self.env["S3_ENDPOINT"]

    @cached_property
    def client(self) -> Any:
        return s3_service.client(self.lab.context)

    def bucket(self, prefix: str = "bucket") -> str:
        """A new bucket."""
        name = unique(prefix).replace("_", "-")
        self.client.create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        found = self.client.list_objects_v2(Bucket=bucket)
        return [entry["Key"] for entry in found.get("Contents", [])]


class CatalogClient(ServiceClient):
    @property
    def url(self) -> str:
        return self.env["ICEBERG_CATALOG_URI"]

    @cached_property
    def client(self) -> Any:
        """A pyiceberg catalog."""
        from pyiceberg.catalog import load_catalog

        settings = self.lab.home.settings
        return load_catalog(
            self.env["ICEBERG_CATALOG_NAME"],
            **{
                "type": "rest",
                "uri": self.url,
                "s3.endpoint": self.lab.context.url("s3"),
                "s3.access-key-id": settings.s3_access_key,
                "s3.secret-access-key": settings.s3_secret_key,
                "s3.region": s3_service.REGION,
                "s3.path-style-access": "true",
            },
        )

    def namespace(self, prefix: str = "namespace") -> str:
        """A new namespace."""
        name = unique(prefix)
        self.client.create_namespace(name)
        return name


class PostgresClient(ServiceClient):
    @property
    def url(self) -> str:
        return self.env["POSTGRES_URL"]

    def database(self, prefix: str = "db") -> str:
        """The URL of a new, empty database."""
        name = unique(prefix)
        self.run(f"create database {name}")
        return self.url.rsplit("/", 1)[0] + f"/{name}"

    def run(self, *statements: str) -> None:
        """Run statements, each on its own."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())


class HiveClient(ServiceClient):
    @property
    def url(self) -> str:
        return self.env["HMS_ENDPOINT"]


class SparkClient(ServiceClient):
    @property
    def master(self) -> str:
        return self.env["SPARK_MASTER"]
