"""A worker whose Debezium reports lineage itself, and a server as its reader sees it."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from headwater.lab.clients import ConnectClient, unique
from headwater.lab.files.plugins import plugin_path
from headwater.lab.lab import Lab
from headwater.lab.services import SERVICES
from headwater.lab.services.connect import SECRETS, Connect

from .secured import add

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import KafkaClient, PostgresClient
    from headwater.lab.services.base import LabContext

BUNDLE = "debezium-lineage"
JSON = "org.apache.kafka.connect.json.JsonConverter"
PARTITIONS = 3
Json = dict[str, Any]


class ReportingConnect(Connect):
    """A worker of a cluster of its own on another lab's broker, with one plug-in."""

    needs: ClassVar[tuple[str, ...]] = ()  # type: ignore[assignment]
    bundles: ClassVar[tuple[str, ...]] = (BUNDLE,)

    def __init__(self, bootstrap: str, password: str) -> None:
        self.bootstrap, self.password = bootstrap, password
        self.group = unique("reporting")

    def prepare(self, lab: LabContext) -> None:
        super().prepare(lab)
        topics = {f"{kind}.storage.topic": f"{self.group}-{kind}" for kind in
                  ("config", "offset", "status")}  # fmt: skip
        more = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "plugin.path": plugin_path(lab.cache, BUNDLE),
        }
        add(lab, "connect.properties", {**more, **topics})
        add(lab, SECRETS, {"postgres.password": self.password})


class Reporting:
    """The worker, and what it reports to."""

    def __init__(
        self, folder: Path, kafka: KafkaClient, postgres: PostgresClient, server: str
    ) -> None:
        self.kafka, self.postgres = kafka, postgres
        self.lab = Lab(folder / "lab")
        password = postgres.lab.home.settings.postgres_password
        self.service = ReportingConnect(kafka.bootstrap, password)
        self.start()
        self.connect = ConnectClient(self.lab, "connect")
        self.client = folder / "openlineage.yml"
        self.client.write_text(f"transport:\n  type: http\n  url: {server}\n")

    def start(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(SERVICES, "connect", self.service)
            self.lab.up(["connect"])

    def kill(self) -> None:
        from headwater.lab import process

        leader = process.find(self.lab.home.root)["connect"]
        leader.kill()
        leader.wait(10)

    def close(self) -> None:
        self.lab.down()


class Gate:
    """A door before PostgreSQL: whoever connects waits until it is opened."""

    def __init__(self, port: int) -> None:
        self._behind = ("127.0.0.1", port)
        self._open = threading.Event()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        threading.Thread(target=self._let_in, daemon=True).start()

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.set()
        self._door.close()

    def _let_in(self) -> None:
        while True:
            try:
                came, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(came,), daemon=True).start()

    def _serve(self, came: socket.socket) -> None:
        self._open.wait()
        behind = socket.create_connection(self._behind)
        threading.Thread(target=self._carry, args=(behind, came), daemon=True).start()
        self._carry(came, behind)

    @staticmethod
    def _carry(source: socket.socket, target: socket.socket) -> None:
        try:
            while some := source.recv(65536):
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            target.close()


class Database:
    """A database of one connector's own, so that no other job stands beside its tables."""

    def __init__(self, postgres: PostgresClient) -> None:
        self.url = postgres.database("reported")
        self.at = conninfo_to_dict(self.url)
        self.slot, self.publication = unique("slot"), unique("publication")
        self._done(
            "create table orders (order_id text primary key, price numeric(10,2));"
            "create table customers (customer_id text primary key, city text);"
            "insert into orders values ('o-1', 19.99);"
            "insert into customers values ('c-1', 'Oslo')"
        )

    def break_off(self) -> bool:
        """End the connection that changes come by, once there is one."""
        return self._done(
            "select pg_terminate_backend(pid) from pg_stat_replication join pg_replication_slots"
            f" on pid = active_pid where slot_name = '{self.slot}' and state = 'streaming'"
        )

    def let_go(self) -> bool:
        """Give the slot back, once nobody holds it."""
        return self._done(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
            f" where slot_name = '{self.slot}' and not active"
        )

    def _done(self, statement: str) -> bool:
        with psycopg.connect(self.url, autocommit=True) as database:
            return database.execute(statement).rowcount > 0

    def config(self, prefix: str, password: str, client: Path) -> dict[str, str]:
        """A connector that reports what it reads, and by its transform what it writes."""
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": str(self.at["host"]),
            "database.port": str(self.at["port"]),
            "database.user": str(self.at["user"]),
            "database.password": password,
            "database.dbname": str(self.at["dbname"]),
            "table.include.list": "public.orders,public.customers",
            "topic.prefix": prefix,
            "plugin.name": "pgoutput",
            "slot.name": self.slot,
            "publication.name": self.publication,
            "publication.autocreate.mode": "filtered",
            "key.converter": JSON,
            "value.converter": JSON,
            "transforms": "lineage",
            "transforms.lineage.type": "io.debezium.transforms.openlineage.OpenLineage",
            "openlineage.integration.enabled": "true",
            "openlineage.integration.config.file.path": str(client),
        }


class Sink:
    """Two topics of three partitions into tables of a database of their own, by three tasks."""

    def __init__(self, kafka: KafkaClient, postgres: PostgresClient) -> None:
        self.kafka = kafka
        self.url = postgres.database("sunk")
        self.at = conninfo_to_dict(self.url)
        self.topics = [kafka.topic(name, PARTITIONS) for name in ("orders", "cities")]
        for topic in self.topics:
            for number in range(PARTITIONS):
                self.produce(topic, number, number)

    def produce(self, topic: str, partition: int, number: int) -> None:
        """One row into one partition, which is one task's."""
        fields = [
            {"field": "id", "type": "int32", "optional": False},
            {"field": "city", "type": "string", "optional": True},
        ]
        schema = {"type": "struct", "optional": False, "name": "row", "fields": fields}
        row = {"schema": schema, "payload": {"id": number, "city": "Oslo"}}
        self.write(topic, partition, json.dumps(row))

    def write(self, topic: str, partition: int, text: str) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.kafka.bootstrap})
        producer.produce(topic, text, partition=partition)
        assert producer.flush(30) == 0

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as database:
            database.execute(statement)

    def rows(self, table: str) -> int:
        with psycopg.connect(self.url) as database:
            there = database.execute("select to_regclass(%s)", (table,)).fetchone()
            if there is None or there[0] is None:
                return 0
            found = database.execute(f"select count(*) from {table}").fetchone()
        return int(found[0]) if found else 0

    def config(self, password: str, client: Path) -> dict[str, str]:
        """A sink that reports what it reads and writes, a job for each task."""
        return {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "tasks.max": str(PARTITIONS),
            "topics": ",".join(self.topics),
            "connection.url": f"jdbc:postgresql://{self.at['host']}:{self.at['port']}/"
            f"{self.at['dbname']}",
            "connection.username": str(self.at["user"]),
            "connection.password": password,
            "insert.mode": "upsert",
            "primary.key.mode": "record_value",
            "primary.key.fields": "id",
            "schema.evolution": "basic",
            "flush.max.retries": "0",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": JSON,
            "consumer.override.auto.offset.reset": "earliest",
            "openlineage.integration.enabled": "true",
            "openlineage.integration.config.file.path": str(client),
            "openlineage.integration.dataset.kafka.bootstrap.servers": self.kafka.bootstrap,
        }


class Server:
    """What a server says of one job."""

    def __init__(self, url: str, namespace: str, job: str) -> None:
        self.namespace, self.job = namespace, job
        self.http = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def get(self, path: str, **query: str | int) -> Any:
        answer = self.http.get(path, params=query)
        return answer.json() if answer.status_code == 200 else {}

    def runs(self) -> list[Json]:
        """The job's runs, the newest first."""
        place = f"{quote(self.namespace, safe='')}/jobs/{quote(self.job, safe='')}"
        found: list[Json] = self.get(f"/api/v1/namespaces/{place}/runs", limit=100).get("runs", [])
        return found

    def states(self) -> list[str]:
        """The states of the job's runs, the newest first."""
        return [run["state"] for run in self.runs()]

    def jobs(self, like: str) -> list[str]:
        """The names of all jobs that are shown and have that in their names."""
        found = self.get("/api/v1/jobs", limit=1000).get("jobs", [])
        return sorted(job["name"] for job in found if like in job["name"])

    def facets(self) -> Json:
        """The facets of the newest run."""
        found: Json = self.get(f"/api/v1/jobs/runs/{self.runs()[0]['id']}/facets", type="run")
        return dict(found["facets"])

    def graph(self) -> set[str]:
        """Every node around the job."""
        node = f"job:{self.namespace}:{self.job}"
        found = self.get("/api/v1/lineage", nodeId=node, depth=20)
        return {one["id"] for one in found.get("graph", [])}

    def events(self) -> list[Json]:
        """Every event of the job that was taken in, the earliest first."""
        found = self.get(
            "/api/v1/events/lineage", limit=1000, sortDirection="asc", before="2100-01-01T00:00:00Z"
        )
        job = {"namespace": self.namespace, "name": self.job}
        return [e for e in found.get("events", []) if job.items() <= e["job"].items()]
