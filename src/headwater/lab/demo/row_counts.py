"""How much each stage of the orders pipeline holds, asked of the stages themselves."""

from __future__ import annotations

import logging
import os
import threading
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import sql

from headwater.lab.ports import LOOPBACK
from headwater.lab.services.logins import kafka_client
from headwater.lab.services.s3 import REGION, bucket_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lab.services.base import LabContext

ASK_SECONDS = 5.0


class KafkaRecord(NamedTuple):
    """A Kafka record."""

    offset: int
    key: bytes | None
    value: bytes | None


class RowCounter:
    """Counts rows, records and objects. One caller at a time asks Kafka."""

    def __init__(self, lab: LabContext, database_url: str) -> None:
        self.lab = lab
        self.database_url = database_url
        self._asking = threading.Lock()

    def stages(self) -> dict[str, Callable[[], int]]:
        """What data passes through, from the shop's database to the summary."""
        counters: tuple[tuple[str, Callable[[str], int], tuple[str, ...]], ...] = (
            ("PostgreSQL", self.table, ("orders", "bids")),
            ("Kafka", self.end_offset, ("orders", "bids")),
            ("S3", self.archived, (self.lab.home.settings.archive,)),
            ("Iceberg", self.rows, ("default.orders_landing", "default.bids")),
            ("Kafka", self.end_offset, ("supplier-stats",)),
            ("Iceberg", self.rows, ("default.orders",)),
            ("Kafka", self.end_offset, ("orders-dead-letter",)),
            ("PostgreSQL", self.table, ("supplier_stats",)),
            ("Iceberg", self.rows, ("default.supplier_stats",)),
            ("S3", self.archived, ("exports",)),
        )
        return {
            f"{store:<12}{name}": partial(count, name)
            for store, count, names in counters
            for name in names
        }

    def table(self, name: str) -> int:
        """Rows of a table of the shop's database."""
        query = sql.SQL("select count(*) from {}").format(sql.Identifier(name))
        with psycopg.connect(self.database_url) as database:
            row = database.execute(query).fetchone()
        return int(row[0]) if row else 0

    def archived(self, bucket: str) -> int:
        """Objects in a bucket.

        The server would look at each of them for every page of a list, and have no time to write.
        """
        folders = os.walk(bucket_folder(self.lab.home, bucket))
        return sum(len(files) for _, _, files in folders)

    def rows(self, table: str) -> int:
        """Rows of an Iceberg table, from its newest snapshot; 0 before there is one."""
        from pyiceberg.exceptions import NoSuchTableError

        try:
            snapshot = self.catalog.load_table(table).current_snapshot()
        except NoSuchTableError:
            return 0
        return int((snapshot and snapshot.summary and snapshot.summary["total-records"]) or 0)

    def has_order(self, table: str, order: str, column: str = "order_id") -> str | None:
        """An order's value of a column in an Iceberg table; nothing when it is not there."""
        found = self.catalog.load_table(table).scan(
            row_filter=f"order_id = '{order}'", selected_fields=(column,)
        )
        values = found.to_arrow().column(column).to_pylist()
        return None if not values else str(values[0])

    def end_offset(self, topic: str) -> int:
        """Records written to a topic; none before it is made."""
        return sum(end for _, end in self._ends(topic))

    def records(self, topic: str, since: int, limit: int = 10_000) -> list[KafkaRecord]:
        """Records of a topic of one partition from an offset on."""
        from confluent_kafka import Consumer, TopicPartition

        ends = self._ends(topic)
        if not ends or ends[0][1] <= since:
            return []
        reader = Consumer({**self._settings, "enable.partition.eof": True})
        try:
            reader.assign([TopicPartition(topic, 0, since)])
            found: list[KafkaRecord] = []
            while len(found) < limit:
                message = reader.poll(ASK_SECONDS)
                if message is None or message.error():
                    break
                found.append(KafkaRecord(message.offset() or 0, message.key(), message.value()))
            return found
        finally:
            reader.close()

    def committed(self, group: str, topic: str, partition: int) -> int:
        """How far a consumer group has come."""
        from confluent_kafka import Consumer, TopicPartition

        reader = Consumer({**self._settings, "group.id": group})
        try:
            (found,) = reader.committed([TopicPartition(topic, partition)], timeout=ASK_SECONDS)
            return max(0, int(found.offset))
        finally:
            reader.close()

    @cached_property
    def catalog(self) -> Any:
        """The lab's Iceberg catalog."""
        from pyiceberg.catalog import load_catalog

        # The server deletes old metadata after a commit, too, and PyIceberg warns where it comes second.
        logging.getLogger("pyiceberg.catalog").setLevel(logging.ERROR)
        keys = self.lab.home.settings
        return load_catalog(
            keys.catalog,
            **{
                "type": "rest",
                "uri": self.lab.url("catalog"),
                "s3.endpoint": self.lab.url("s3"),
                "s3.access-key-id": keys.s3_access_key,
                "s3.secret-access-key": keys.s3_secret_key,
                "s3.region": REGION,
                "s3.path-style-access": "true",
            },
        )

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.lab.port('kafka')}"

    @property
    def _settings(self) -> dict[str, Any]:
        address = {"bootstrap.servers": self.bootstrap, "group.id": "headwater-demo"}
        return {**address, "log_level": 0, **kafka_client(self.lab)}

    @cached_property
    def _consumer(self) -> Any:
        from confluent_kafka import Consumer

        return Consumer(self._settings)

    def _ends(self, topic: str) -> list[tuple[int, int]]:
        """Each partition and its end."""
        from confluent_kafka import KafkaException, TopicPartition

        with self._asking:
            try:
                known = self._consumer.list_topics(timeout=ASK_SECONDS).topics.get(topic)
                partitions = sorted(known.partitions) if known else []
                return [
                    (
                        number,
                        int(
                            self._consumer.get_watermark_offsets(
                                TopicPartition(topic, number), timeout=ASK_SECONDS
                            )[1]
                        ),
                    )
                    for number in partitions
                ]
            except KafkaException:  # the topic comes with its first record
                return []
