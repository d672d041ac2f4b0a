"""Stream job `lineage-lake`: lineage events from Kafka into the Iceberg tables of the lineage lake.

Two streams. One appends what the topic has to `events`, and what is no event to `refused`; each table
says in its newest snapshot up to which offsets it has everything, so that a batch that is done again
after a crash adds nothing. The other follows `events` and replaces the rows of the jobs that it touches
in `runs`, `schemas`, `edges` and `column_edges`, computed from all of their events.

It needs the package headwater, with its extra `server` and PyArrow, on the executors too.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import options
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from headwater.lake import arrow, tables

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headwater.lake.tables import LakeTable

JOB = "lineage-lake"
OFFSETS = "headwater.offsets"
"""The member of a snapshot's summary that has, by topic and partition, the first offset not in the table."""
PROPERTIES = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
}
SUMMARY = f"spark.sql.iceberg.snapshot-property.{OFFSETS}"
FEW = 500
"""Nodes of a batch up to which they are named in the query, so that other files are not opened."""
Offsets = dict[str, dict[str, int]]


class Lake:
    """The lake's tables in a catalog that Spark knows."""

    def __init__(self, spark: SparkSession, catalog: str, namespace: str) -> None:
        if not re.fullmatch(r"\w+(\.\w+)+", f"{catalog}.{namespace}"):
            raise SystemExit(
                f"{catalog}.{namespace} is no namespace of a catalog: name it as lineage"
            )
        self.spark = spark
        self.space = f"{catalog}.{namespace}"
        self._offsets: dict[str, Offsets] = {}

    def name(self, table: LakeTable) -> str:
        """A table as SQL names it."""
        return f"{self.space}.{table.name}"

    def create(self) -> None:
        """Make the tables that are not there, and the view of events without repetitions."""
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.space}")
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
        for table in tables.TABLES:
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({table.ddl}) USING iceberg"
                f" PARTITIONED BY ({', '.join(table.partitions)}) TBLPROPERTIES ({properties})"
            )
        query = tables.unique_sql(self.name(tables.EVENTS))
        try:
            self.spark.sql(f"CREATE VIEW IF NOT EXISTS {self.space}.{tables.UNIQUE} AS {query}")
        except (PySparkException, Py4JError) as error:
            reason = str(error).splitlines()[0]
            sys.stderr.write(f"{JOB}: this catalog has no views, so no {tables.UNIQUE}: {reason}\n")

    def offsets(self, table: LakeTable) -> Offsets:
        """Up to where a table has everything: said by its snapshots, else by its rows."""
        if table.name not in self._offsets:
            snapshots = self.spark.table(f"{self.name(table)}.snapshots")
            summary = F.col("summary")[OFFSETS]
            noted = snapshots.where(summary.isNotNull()).orderBy(F.desc("committed_at"))
            said = noted.select(summary).first()
            found: Offsets = {}
            if said is not None:
                found = json.loads(said[0])
            elif table not in tables.DERIVED:
                found = ends(self.spark.table(self.name(table)))
            self._offsets[table.name] = found
        return self._offsets[table.name]

    def append(self, table: LakeTable, rows: DataFrame, reached: Offsets) -> None:
        """Add the rows that a table does not have, and note in the same commit up to where it has all."""
        known = self.offsets(table)
        merged = further(known, reached)
        if merged == known:
            return
        fresh = rows.where(F.col("destination") == table.name).where(beyond(known))
        if fresh.isEmpty():
            return
        writer = fresh.select(*table.names).writeTo(self.name(table))
        writer.option(f"snapshot-property.{OFFSETS}", json.dumps(merged, sort_keys=True)).append()
        self._offsets[table.name] = merged

    def replace(
        self, table: LakeTable, projected: DataFrame, touched: DataFrame, reached: Offsets
    ) -> None:
        """Let the rows of the touched nodes be those that were computed; what is the same stays."""
        session = projected.sparkSession
        new = table_rows(projected, table)
        old = session.table(self.name(table)).join(touched, "node", "left_semi")
        keys = ["node", *table.key]
        gone = old.join(new, keys, "left_anti").select(*table.names, F.lit(True).alias("gone"))
        changed = new.exceptAll(old.select(*table.names)).withColumn("gone", F.lit(False))
        # Not cached: Spark computes what is cached of a table again when the table is written.
        source = changed.unionByName(gone).localCheckpoint()
        if source.isEmpty():
            return
        merged = further(self.offsets(table), reached)
        source.createOrReplaceTempView(f"lake_{table.name}")
        session.conf.set(SUMMARY, json.dumps(merged, sort_keys=True))
        try:
            session.sql(merge_sql(self.name(table), f"lake_{table.name}", keys, table.names))
        finally:
            session.conf.unset(SUMMARY)
        self._offsets[table.name] = merged


def merge_sql(table: str, source: str, keys: list[str], names: tuple[str, ...]) -> str:
    """The statement that brings a table to what the source says; rows that are `gone` go."""
    same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    values = ", ".join(f"t.{name} = s.{name}" for name in names)
    given = ", ".join(f"s.{name}" for name in names)
    return (
        f"MERGE INTO {table} t USING {source} s ON {same}"  # noqa: S608  (our own names)
        f" WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET {values}"
        f" WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({', '.join(names)}) VALUES ({given})"
    )


def ends(rows: DataFrame) -> Offsets:
    """Behind the last offset of each partition that some rows have."""
    found: Offsets = {}
    last = rows.groupBy("topic", "kafka_partition").agg(F.max("kafka_offset").alias("last"))
    for topic, partition, offset in last.collect():
        found.setdefault(topic, {})[str(partition)] = offset + 1
    return found


def further(known: Offsets, reached: Offsets) -> Offsets:
    """The later of two positions, partition by partition."""
    return {
        topic: {
            part: max(known.get(topic, {}).get(part, 0), reached.get(topic, {}).get(part, 0))
            for part in {**known.get(topic, {}), **reached.get(topic, {})}
        }
        for topic in {**known, **reached}
    }


def beyond(known: Offsets) -> Column:
    """Whether a row lies behind a position."""
    found = F.lit(True)
    for topic, parts in known.items():
        for part, offset in parts.items():
            here = (F.col("topic") == topic) & (F.col("kafka_partition") == int(part))
            found = found & (~here | (F.col("kafka_offset") >= offset))
    return found


def table_rows(projected: DataFrame, table: LakeTable) -> DataFrame:
    """The rows of one derived table among those that were computed."""
    given = ", ".join(
        f"{c.name} {'bigint' if c.type == 'timestamp' else c.type}" for c in table.columns
    )
    read = projected.where(F.col("destination") == table.name).select(
        F.from_json("content", given).alias("row")
    )
    return read.select(
        *(
            F.timestamp_micros(F.col(f"row.{c.name}")).alias(c.name)
            if c.type == "timestamp"
            else F.col(f"row.{c.name}").alias(c.name)
            for c in table.columns
        )
    )


def ingest(lake: Lake, batch: DataFrame) -> None:
    """Append one micro-batch: events to `events`, the rest to `refused` with its reason."""
    rows = batch.mapInArrow(arrow.read_batches, arrow.READ).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        reached = ends(rows)
        for table in (tables.EVENTS, tables.REFUSED):
            lake.append(table, rows, reached)
    finally:
        rows.unpersist()


def derive(lake: Lake, batch: DataFrame) -> None:
    """Compute the jobs again that a micro-batch of `events` touches."""
    touched = batch.where("node IS NOT NULL").select("node").distinct().localCheckpoint()
    some = [row[0] for row in touched.limit(FEW + 1).collect()]
    events = batch.sparkSession.table(lake.name(tables.EVENTS))
    if len(some) <= FEW:
        events = events.where(F.col("node").isin(some))
    else:
        events = events.join(touched, "node", "left_semi")
    order = ("node", "arrived", "seq", "kafka_partition", "kafka_offset")
    projected = (
        events.select(*order, "kind", "body")
        .withColumn("arrived", F.unix_micros("arrived"))
        .repartition("node")
        .sortWithinPartitions(*order)
        .mapInArrow(arrow.project_batches, arrow.PROJECTED)
        .localCheckpoint()
    )
    reached = ends(batch)
    for table in tables.DERIVED:
        lake.replace(table, projected, touched, reached)


def read_topic(spark: SparkSession, settings: argparse.Namespace) -> DataFrame:
    """The topic as a stream, with headers and the moment of arrival in microseconds."""
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("subscribe", settings.topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "false")
        .option("maxOffsetsPerTrigger", settings.most)
        .load()
    )
    return stream.select(
        "topic", "partition", "offset", F.unix_micros("timestamp").alias("arrived"), "value", "headers"
    )  # fmt: skip


def start(
    name: str, stream: DataFrame, each: Any, settings: argparse.Namespace, every: str
) -> StreamingQuery:
    """Start a stream under its name, from its checkpoint if it has one."""
    writer = stream.writeStream.foreachBatch(each)
    if settings.checkpoint:
        writer = writer.option("checkpointLocation", f"{settings.checkpoint.rstrip('/')}/{name}")
    when = {"availableNow": True} if settings.once else {"processingTime": every}
    return writer.queryName(f"{settings.job_name or JOB}-{name}").trigger(**when).start()


def follow_events(lake: Lake) -> DataFrame:
    """The table `events` as a stream of what was appended to it."""
    reader = lake.spark.readStream.format("iceberg")
    # What takes events away, a purge or the removal of repetitions, sees to the derived tables itself.
    for kind in ("overwrite", "delete"):
        reader = reader.option(f"streaming-skip-{kind}-snapshots", "true")
    return reader.table(lake.name(tables.EVENTS)).select(
        "topic", "kafka_partition", "kafka_offset", "node"
    )


def run(spark: SparkSession, settings: argparse.Namespace) -> None:
    """Run both streams; with `--once` one after the other, up to what is there."""
    lake = Lake(spark, settings.catalog, settings.namespace)
    lake.create()
    topic = read_topic(spark, settings)
    events = start("events", topic, lambda batch, _: ingest(lake, batch), settings, settings.every)
    if settings.once:
        events.awaitTermination()
    if not settings.append_only:
        stream = follow_events(lake)
        every = settings.derive_every
        derived = start("derived", stream, lambda batch, _: derive(lake, batch), settings, every)
        if settings.once:
            derived.awaitTermination()
    if not settings.once:
        # One that fails ends the program; whoever starts it again goes on from the checkpoint.
        spark.streams.awaitAnyTermination()


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    run(options.attach(options.session(name, settings, "events"), name), settings)


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.arguments(__doc__)
    options.option(parser, "--bootstrap", "BOOTSTRAP", "Kafka's address", needed=True)
    parser.add_argument(
        "--topic", default="openlineage.events", help="topic of events  [openlineage.events]"
    )
    parser.add_argument("--namespace", default="lineage", help="where the tables are  [lineage]")
    text = "folder of the streams' checkpoints; without one they start at the beginning"
    options.option(parser, "--checkpoint", "CHECKPOINT", text)
    parser.add_argument("--every", default="30 seconds", help="how often to append  [30 seconds]")
    parser.add_argument(
        "--derive-every", default="5 minutes", help="how often to derive tables  [5 minutes]"
    )
    parser.add_argument("--most", default="100000", help="most records in a batch  [100000]")
    parser.add_argument("--append-only", action="store_true", help="keep events, derive nothing")
    parser.add_argument(
        "--once",
        action="store_true",
        default=os.environ.get("AVAILABLE_NOW") == "1",
        help="handle what is there and end, instead of going on  [$AVAILABLE_NOW=1]",
    )
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
