"""A lake in a folder: the program's own functions on a small Spark session, without Kafka or a catalog's server."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from headwater.lab.files.jars import pipeline_jars
from headwater.lab.services.pipeline_streams import programs
from headwater.lake import tables
from headwater.lake.iceberg import IcebergLake
from headwater.server.ingest.kafka import PREFIX

sys.path.insert(0, str(programs()))
import lake as program
import lake_derive
import lake_purge
from lake_store import Lake

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from headwater.lake.projection import LogRecord
    from headwater.lake.tables import LakeTable
    from headwater.server.store import Store

TOPIC = "lineage"
LOG = "0123456789abcdef"
SCHEMA = (
    "topic string, partition int, offset bigint, arrived bigint, value binary,"
    " headers array<struct<key: string, value: binary>>"
)


def session(warehouse: Path) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[1]").appName("lake")
    for key, value in {
        "spark.jars": ",".join(map(str, pipeline_jars())),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.folder": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.folder.type": "hadoop",
        "spark.sql.catalog.folder.warehouse": str(warehouse),
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Forwarded(NamedTuple):
    """A record of a server's log, with the job that a command is about."""

    kind: int
    at: int
    body: bytes
    job: tuple[str, str] | None


def forwarded(store: Store) -> list[Forwarded]:
    """The whole log of a server's store."""
    rows = store.connection.all(
        "SELECT l.kind, l.at, l.dictionary, l.body, n.name, j.name FROM log l"
        " LEFT JOIN job j ON j.id = l.job LEFT JOIN namespace n ON n.id = j.namespace ORDER BY l.seq"
    )
    return [
        Forwarded(kind, at, store.packer.unpack(dictionary, bytes(body)),
                  None if name is None else (namespace, name))
        for kind, at, dictionary, body, namespace, name in rows
    ]  # fmt: skip


class LocalLake:
    """A namespace of its own, filled from records as the topic would have them."""

    def __init__(self, spark: SparkSession, warehouse: Path, namespace: str) -> None:
        self.spark, self.namespace = spark, namespace
        self.folder = warehouse / namespace
        self.lake = Lake(spark, "folder", namespace)
        self.lake.create()
        self._offset = 0

    def take(self, records: Iterable[LogRecord | Forwarded]) -> None:
        """Append records of a server's log, in one batch."""
        rows = []
        for record in records:
            kind, at, body = record[:3]
            told = {"log": LOG, "seq": str(self._offset + 1), "at": str(at)}
            told["kind"] = ("event", "command")[kind]
            if kind and isinstance(record, Forwarded) and record.job:
                told["job"] = msgspec.json.encode(record.job).decode()
            headers = [(PREFIX + name, value.encode()) for name, value in told.items()]
            rows.append((TOPIC, 0, self._offset, at, bytearray(body), headers))
            self._offset += 1
        program.ingest(self.lake, self.spark.createDataFrame(rows, SCHEMA))

    def settle(self) -> None:
        """What the program does from time to time."""
        lake_purge.purge(self.lake)
        lake_derive.derive(self.lake)

    def again(self) -> LocalLake:
        """The same lake as a program sees it that starts anew."""
        found = LocalLake(self.spark, self.folder.parent, self.namespace)
        found._offset = self._offset
        return found

    def rows(self, table: LakeTable) -> list[dict[str, Any]]:
        found = self.spark.table(self.lake.name(table)).collect()
        return [row.asDict() for row in found]

    def opened(self) -> IcebergLake:
        """The same tables as whoever asks reads them, without Spark."""
        return IcebergLake({table.name: self._newest(table) for table in tables.TABLES})

    def _newest(self, table: LakeTable) -> StaticTable:
        metadata = self.folder / table.name / "metadata"
        number = (metadata / "version-hint.text").read_text()
        return StaticTable.from_metadata(str(metadata / f"v{number}.metadata.json"))

    def edges(self) -> list[Any]:
        """Edges in the order and shape in which a store has them."""
        moments = ("valid_from", "valid_to")
        table = self.spark.table(self.lake.name(tables.EDGES))
        for name in moments:
            table = table.withColumn(name, table[name].cast("double") * 1_000_000)
        found = [
            (row["job_name"], row["dataset_name"], ("input", "output").index(row["direction"]),
             *(None if row[name] is None else round(row[name]) for name in moments))
            for row in table.collect()
        ]  # fmt: skip
        return sorted(found, key=repr)
