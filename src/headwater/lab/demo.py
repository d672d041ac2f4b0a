"""The demo: the whole orders pipeline on a lab, with lineage from one end to the other."""

from __future__ import annotations

import subprocess
import threading
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import psycopg

from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.ports import LOOPBACK
from headwater.lab.services import DEFAULT
from headwater.lab.services.catalog import CATALOG
from headwater.lab.services.s3 import client
from headwater.lab.services.streams import spark_job
from headwater.lab.shop import Shop
from headwater.lab.traffic import Traffic
from headwater.lab.verdict import Judge

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lab.fetch import Progress
    from headwater.lab.lab import Lab

STREAMS = ("supplier-stats", "iceberg-ingestion")
SERVICES = (*DEFAULT, "server", "agent")
BATCH_SECONDS = 300.0
ENDED_SECONDS = 20.0
FIRST_ORDERS = 200


class Demo:
    """Starts the pipeline, keeps it busy, and ends it so that every run has its right end."""

    def __init__(self, lab: Lab, changed: Callable[[str, str], None]) -> None:
        self.lab = lab
        self.changed = changed
        self._batch: subprocess.Popen[bytes] | None = None
        self._ending = threading.Event()

    def start(self, progress: Progress | None = None) -> None:
        """Bring everything up, in the order in which one needs the other."""
        self.lab.up(SERVICES, progress=progress, changed=self.changed)
        self.traffic.prepare()
        self.shop.create_tables()
        self.shop.deploy()
        for name in self.shop.configs():
            self.changed(name, "running")
        # Streams read the registry when they start: the first orders bring the schemas there.
        self.traffic.send(FIRST_ORDERS, bad=2)
        self._wait_for_topic()
        self.lab.up(STREAMS, progress=progress, changed=self._new_only)

    def summarise(self) -> None:
        """Run the batch job to its end."""
        data = self.lab.home.data("supplier_stats")
        data.mkdir(parents=True, exist_ok=True)
        command = spark_job(self.lab.context, "supplier_stats.py", scratch=data)
        env = process.environment(self.lab.home.root, "", command.env)
        with self.lab.home.log("supplier_stats").open("ab") as log:
            self._batch = subprocess.Popen(
                command.argv, cwd=data, env=env, stdout=log, stderr=subprocess.STDOUT
            )
        code = self._batch.wait(BATCH_SECONDS)
        if code and not self._ending.is_set():
            raise HeadwaterError(
                f"the batch job ended with exit code {code}",
                hint=f"its words: {self.lab.home.log('supplier_stats')}",
            )

    def stop(self) -> None:
        """End jobs first, then connectors, then what they stood on."""
        self._ending.set()
        if self._batch and self._batch.poll() is None:
            self._batch.terminate()
            self._batch.wait(30)
        running = process.find(self.lab.home.root)
        if "server" in running:
            self.lab.down(STREAMS)
            if "agent" in running and "connect" in running:
                self.shop.stop()
                deadline = time.monotonic() + ENDED_SECONDS
                while self.judge.running() and time.monotonic() < deadline:
                    time.sleep(0.3)
        self.lab.down()

    def counts(self) -> dict[str, int]:
        """How much each stage holds."""
        with psycopg.connect(self.traffic.url) as database:
            row = database.execute("select count(*) from orders").fetchone()
        objects = client(self.lab.context).list_objects_v2(Bucket="raw").get("KeyCount", 0)
        return {
            "PostgreSQL   shop.public.orders": row[0] if row else 0,
            "Kafka        orders": self._end_offset("orders"),
            "S3           raw/archive (first 1,000)": int(objects),
            "Iceberg      default.orders_landing": self._rows("default.orders_landing"),
            "Iceberg      default.orders": self._rows("default.orders"),
            "Kafka        supplier-stats": self._end_offset("supplier-stats"),
            "Iceberg      default.supplier_stats": self._rows("default.supplier_stats"),
            "Kafka        orders-dead-letter": self._end_offset("orders-dead-letter"),
        }

    @cached_property
    def traffic(self) -> Traffic:
        return Traffic(self.lab.env()["POSTGRES_URL"])

    @cached_property
    def shop(self) -> Shop:
        return Shop(self.lab.context, self.lab.env()["POSTGRES_URL"])

    @cached_property
    def judge(self) -> Judge:
        return Judge(self.lab.context)

    @cached_property
    def _catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog(CATALOG, type="rest", uri=self.lab.context.url("catalog"))

    @cached_property
    def _consumer(self) -> Any:
        from confluent_kafka import Consumer

        bootstrap = f"{LOOPBACK}:{self.lab.context.port('kafka')}"
        return Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "headwater-demo", "log_level": 0}
        )

    def _new_only(self, service: str, state: str) -> None:
        if service in STREAMS:
            self.changed(service, state)

    def _rows(self, table: str) -> int:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            snapshot = self._catalog.load_table(table).current_snapshot()
        except NoSuchTableError:
            return 0
        return int((snapshot and snapshot.summary and snapshot.summary["total-records"]) or 0)

    def _end_offset(self, topic: str) -> int:
        from confluent_kafka import KafkaException, TopicPartition

        try:
            _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)
        except KafkaException:  # the topic comes with its first record
            return 0
        return max(0, int(end))

    def _wait_for_topic(self) -> None:
        from headwater.lab.waiting import wait_until

        wait_until(
            lambda: self._end_offset("orders") >= FIRST_ORDERS,
            seconds=90,
            what="the first orders in Kafka",
            interval=0.3,
        )
