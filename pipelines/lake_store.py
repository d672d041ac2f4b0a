"""The lake's tables in a catalog that Spark knows: made, brought up to date, appended to and merged into.

Each table says in its newest snapshot, and in a property, since older snapshots expire, up to
which offsets of the topic it has everything.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from headwater.lake import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from headwater.lake.tables import LakeTable

OFFSETS = "headwater.offsets"
"""The member of a snapshot's summary, and the property of a table, that has by topic and partition the
first offset not in the table."""
VERSION = "headwater.version"
"""The property of a table that has the number of the last step it was brought up to."""
PROPERTIES = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
    # What is appended while repetitions or purged rows are removed stands in nobody's way.
    "write.merge.isolation-level": "snapshot",
}


class Step(NamedTuple):
    """What brings tables that an earlier release made up to date."""

    change: str
    """The end of an ALTER TABLE."""
    tables: tuple[LakeTable, ...] = tables.TABLES
    column: str = ""
    """The column that it adds: a table that is made now has it from the start."""


STEPS: dict[int, Step] = {
    2: Step("SET TBLPROPERTIES ('write.merge.isolation-level' = 'snapshot')"),
    # The events of a run are almost the same text: side by side they take a third of the space. And of a
    # file, whoever looks for a few nodes reads the groups of rows that have them.
    3: Step("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY node, arrived", (tables.EVENTS,)),
    4: Step(
        "SET TBLPROPERTIES ('write.parquet.row-group-size-bytes' = '2097152')", (tables.EVENTS,)
    ),
    5: Step("ADD COLUMN stated string", (tables.EDGES,), "stated"),
}
"""By number; a step is never changed once it was released.

New columns are added here, for the table that has them, and to `headwater.lake.tables`."""
NEWEST = max(STEPS)
MADE = 2
"""The last step that a table has when it is made, by `PROPERTIES`."""
SUMMARY = f"spark.sql.iceberg.snapshot-property.{OFFSETS}"
ENOUGH = 250
"""Records of a file from which on every task writes files of its own: moving the bodies to one task for each
part costs more than they are worth. Of smaller batches there would be too many small files."""
EMPTY = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
TRIES = 5
CONFLICT = re.compile(r"ValidationException|CommitFailedException")
"""What Iceberg raises where files of a commit were changed meanwhile."""
LOST = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found")
"""What Spark raises where the executor is gone that held a part of a local checkpoint."""
Offsets = dict[str, dict[str, int]]


class Lake:
    """The lake's tables in a catalog that Spark knows."""

    def __init__(self, spark: SparkSession, catalog: str, namespace: str) -> None:
        if not re.fullmatch(r"\w+(\.\w+)+", f"{catalog}.{namespace}"):
            raise SystemExit(
                f"{catalog}.{namespace} is no namespace of a catalog: name it as lineage"
            )
        self.spark = spark
        self.catalog = catalog
        self.space = f"{catalog}.{namespace}"
        # Streams have sessions and so catalogs of their own: one would not see what another commits.
        spark.conf.set(f"spark.sql.catalog.{catalog}.cache-enabled", "false")
        # Of a batch that turns out empty Spark would drop what counts its refused records.
        spark.conf.set("spark.sql.adaptive.optimizer.excludedRules", EMPTY)
        self._offsets: dict[str, Offsets] = {}

    def name(self, table: LakeTable) -> str:
        """A table as SQL names it."""
        return f"{self.space}.{table.name}"

    def create(self) -> None:
        """Make the tables that are not there, bring the others up to date, and make the view."""
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.space}")
        for table in tables.TABLES:
            lacks = any(table in step.tables for number, step in STEPS.items() if number > MADE)
            given = {**PROPERTIES, VERSION: str(MADE if lacks else NEWEST)}
            properties = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({table.ddl}) USING iceberg"
                f"{table.partitioned} TBLPROPERTIES ({properties})"
            )
            self.evolve(table)
        query = tables.unique_sql(self.name(tables.EVENTS))
        try:
            self.spark.sql(f"CREATE VIEW IF NOT EXISTS {self.space}.{tables.UNIQUE} AS {query}")
        except (PySparkException, Py4JError) as error:
            reason = str(error).splitlines()[0]
            sys.stderr.write(f"lake: this catalog has no views, so no {tables.UNIQUE}: {reason}\n")

    def evolve(self, table: LakeTable) -> None:
        """Take the steps that a table lacks; each is noted before the next one."""
        now = int(self.table_property(table, VERSION) or 1)
        if now > NEWEST:
            raise SystemExit(
                f"{self.name(table)} is of version {now}, made by a newer release of headwater;"
                f" this one knows {NEWEST}"
            )
        for number in range(now + 1, NEWEST + 1):
            step = STEPS[number]
            if table in step.tables and not self._has(table, step.column):
                self.spark.sql(f"ALTER TABLE {self.name(table)} {step.change}")
            self.note(table, VERSION, str(number))

    def _has(self, table: LakeTable, column: str) -> bool:
        return bool(column) and column in self.spark.table(self.name(table)).columns

    def table_property(self, table: LakeTable, key: str) -> str | None:
        """A property of a table."""
        found = self.spark.sql(f"SHOW TBLPROPERTIES {self.name(table)}").where(F.col("key") == key)
        row = found.first()
        return None if row is None else str(row["value"])

    def note(self, table: LakeTable, key: str, value: str) -> None:
        """Set a property of a table."""
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        self.spark.sql(f"ALTER TABLE {self.name(table)} SET TBLPROPERTIES ('{key}' = '{text}')")

    def position(self, table: LakeTable, key: str) -> Offsets:
        """A position in the topic that a property has."""
        found: Offsets = json.loads(self.table_property(table, key) or "{}")
        return found

    def offsets(self, table: LakeTable) -> Offsets:
        """Up to where a table has everything: by its snapshots and its property, else by its rows."""
        if table.name not in self._offsets:
            self._offsets[table.name] = self._read_offsets(table)
        return self._offsets[table.name]

    def _read_offsets(self, table: LakeTable) -> Offsets:
        snapshots = self.spark.table(f"{self.name(table)}.snapshots")
        summary = F.col("summary")[OFFSETS]
        noted = snapshots.where(summary.isNotNull()).orderBy(F.desc("committed_at"))
        newest = noted.select(summary).first()
        found = self.position(table, OFFSETS)
        if newest is not None:
            found = further(found, json.loads(newest[0]))
        if not found and table in (tables.EVENTS, tables.REFUSED):
            found = ends(last_offsets(self.spark.table(self.name(table))))
        return found

    def keep_offsets(self, table: LakeTable) -> None:
        """Note the position in a property, before the snapshots that have it expire."""
        self.note(table, OFFSETS, json.dumps(self._read_offsets(table), sort_keys=True))

    def moment(self) -> datetime:
        """Now, by the clock that snapshots are dated with."""
        return datetime.now(timezone.utc)

    def call(self, procedure: str, table: LakeTable, **given: str) -> list[Row]:
        """Run one of Iceberg's procedures on a table; its arguments are SQL."""
        words = "".join(f", {name} => {value}" for name, value in given.items())
        named = f"table => '{self.name(table)}'"
        return self.attempt(f"CALL {self.catalog}.system.{procedure}({named}{words})").collect()

    def snapshots(self, table: LakeTable) -> int:
        """How many snapshots a table has."""
        return self.spark.table(f"{self.name(table)}.snapshots").count()

    def expire(self, table: LakeTable, before: datetime, keep: int) -> int:
        """Let go of snapshots before a moment, and of files that only they had; answers how many went."""
        count = self.snapshots(table)
        self.call(
            "expire_snapshots", table, older_than=sql_moment(before), retain_last=str(max(1, keep))
        )
        return max(0, count - self.snapshots(table))

    def renew_manifests(self, table: LakeTable) -> None:
        """Write the list of a table's files anew, of those that it has and no others."""
        jvm: Any = self.spark.sparkContext._jvm  # noqa: SLF001
        session: Any = self.spark
        loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            session._jsparkSession, self.name(table)  # noqa: SLF001
        )  # fmt: skip
        if loaded.currentSnapshot() is not None:
            one = jvm.com.google.common.base.Functions.constant("")
            loaded.rewriteManifests().clusterBy(one).commit()

    def append(self, table: LakeTable, rows: DataFrame, offsets: Sequence[Row]) -> bool:
        """Add the rows that a table does not have, and note in the same commit up to where it has all.

        `offsets` are those of `last_offsets`, of the batch; answers whether the table was behind them.
        """
        known = self.offsets(table)
        # Up to the end of the batch: what of it is not here belongs to the other table.
        merged = further(known, ends(offsets))
        if merged == known:
            return False
        fresh = rows.where(F.col("destination") == table.name).where(beyond(known))
        each = sum(one["records"] for one in offsets) // (len(offsets) * tables.BUCKETS)
        self._add(table, fresh, merged, shuffled=each < ENOUGH)
        return True

    def _add(
        self, table: LakeTable, rows: DataFrame, reached: Offsets, *, shuffled: bool = True
    ) -> None:
        writer = rows.select(*table.names).writeTo(self.name(table))
        if not shuffled:
            writer = writer.option("distribution-mode", "none")
        writer.option(f"snapshot-property.{OFFSETS}", json.dumps(reached, sort_keys=True)).append()
        self._offsets[table.name] = reached

    def replace(
        self, projected: DataFrame, chosen: Callable[[DataFrame], DataFrame], reached: Offsets
    ) -> None:
        """Let the derived rows of the chosen nodes be those that were computed; what is the same stays.

        All tables are compared at once: most batches change few of them, and the others cost nothing.
        Events that the projection fails on are added to `refused`, once.
        """
        changed, goes = self._changed(projected, chosen)
        touched = [table for table in tables.DERIVED if goes.get(table.name)]
        if [table for table in touched if self._remove_doubled(table, changed, chosen)]:
            changed, goes = self._changed(projected, chosen)
        for table in tables.DERIVED:
            if table.name in goes:
                rows = changed.where(F.col("destination") == table.name)
                merged = further(self.offsets(table), reached)
                if goes[table.name]:
                    self._change(table, rows, merged)
                else:
                    self._add(table, rows, merged)
        if tables.REFUSED.name in goes:
            place = ["topic", "kafka_partition", "kafka_offset"]
            known = self.spark.table(self.name(tables.REFUSED)).select(*place)
            bad = changed.where(F.col("destination") == tables.REFUSED.name)
            new = bad.select(*tables.REFUSED.names).join(known, place, "left_anti")
            # Up to where the stream has refused records is not for this commit to say.
            new.writeTo(self.name(tables.REFUSED)).append()

    def _changed(
        self, projected: DataFrame, chosen: Callable[[DataFrame], DataFrame]
    ) -> tuple[DataFrame, dict[str, bool]]:
        """The rows that differ, and by table whether others than new ones do.

        `side` is above 0 for a new row and below 0 for one that goes; `copies` of it are there.
        """
        columns = [name for name in projected.columns if name != "destination"]
        both = projected.withColumn("side", F.lit(1))
        for table in tables.DERIVED:
            old = chosen(self.spark.table(self.name(table)))
            named = old.withColumns({"destination": F.lit(table.name), "side": F.lit(-1)})
            both = both.unionByName(named, allowMissingColumns=True)
        side = (F.max("side") + F.min("side")).alias("side")
        copies = F.count(F.when(F.col("side") < 0, 1)).alias("copies")
        compared = both.groupBy("destination", *columns).agg(side, copies)
        # Not cached: Spark computes what is cached of a table again when the table is written.
        changed = compared.where("side <> 0 OR copies > 1").localCheckpoint()
        found = changed.groupBy("destination").agg(F.min("side")).collect()
        return changed, {table: lowest <= 0 for table, lowest in found}

    def _remove_doubled(
        self, table: LakeTable, changed: DataFrame, chosen: Callable[[DataFrame], DataFrame]
    ) -> bool:
        """Take away rows that stand twice under one key, all of them; answers whether there were any.

        A purge or a repair beside the stream may have appended what the stream appended too.
        """
        keys = ["node", *table.key]
        rows = changed.where(F.col("destination") == table.name).groupBy(*keys)
        counted = rows.agg(F.sum("copies").alias("copies"), F.max("side").alias("side"))
        # One that goes for no new one may stand beside one that stays, and so is not among these.
        suspects = counted.where("copies > 1 OR side < 0").select(*keys).localCheckpoint()
        if suspects.isEmpty():
            return False
        old = chosen(self.spark.table(self.name(table))).join(suspects, keys, "left_semi")
        doubled = old.groupBy(*keys).count().where("count > 1").select(*keys).localCheckpoint()
        if doubled.isEmpty():
            return False
        self.merge(table, doubled, keys, ())
        return True

    def _change(self, table: LakeTable, rows: DataFrame, reached: Offsets) -> None:
        """Bring a table to new rows; of the old ones (`side` below 0), those without a new one go."""
        keys = ["node", *table.key]
        new = rows.where("side > 0").select(*table.names, F.lit(False).alias("gone"))
        gone = rows.where("side < 0").select(*table.names, F.lit(True).alias("gone"))
        source = new.unionByName(gone.join(new.select(*keys), keys, "left_anti"))
        self.spark.conf.set(SUMMARY, json.dumps(reached, sort_keys=True))
        try:
            self.merge(table, source, keys, table.names)
        finally:
            self.spark.conf.unset(SUMMARY)
        self._offsets[table.name] = reached

    def overwrite(self, table: LakeTable, rows: DataFrame, reached: Offsets) -> None:
        """Let a table have these rows and no others, in one commit that says what they include."""
        writer = rows.select(*table.names).writeTo(self.name(table))
        writer = writer.option(f"snapshot-property.{OFFSETS}", json.dumps(reached, sort_keys=True))
        writer.overwrite(F.lit(True))
        self._offsets[table.name] = reached

    def remove(self, table: LakeTable, places: DataFrame) -> None:
        """Take away the rows that came from some places of the topic."""
        self.merge(table, places, ["topic", "kafka_partition", "kafka_offset"], ())

    def merge(
        self, table: LakeTable, source: DataFrame, keys: Sequence[str], names: Sequence[str]
    ) -> None:
        """Bring a table to what a source says; see `merge_sql`."""
        source.createOrReplaceTempView(f"lake_{table.name}")
        self.attempt(merge_sql(self.name(table), f"lake_{table.name}", keys, names))

    def despite_losses(self, work: Callable[[Lake], Any]) -> None:
        """Do what may be done twice, and again if an executor is lost that held interim results.

        Spark computes most of what is lost again by itself, but not what `localCheckpoint` has cut off.
        """
        for left in reversed(range(TRIES)):
            try:
                work(self)
            except (PySparkException, Py4JError) as error:
                if not left or not LOST.search(str(error)):
                    raise
                sys.stderr.write("lake: an executor was lost, what it held is computed again\n")
            else:
                return

    def attempt(self, sql: str) -> DataFrame:
        """Run a statement, and again if another one changed the same files: `lake maintain`, or the stream."""
        for left in reversed(range(TRIES)):
            try:
                return self.spark.sql(sql)
            except (PySparkException, Py4JError) as error:
                if not left or not CONFLICT.search(str(error)):
                    raise
        raise AssertionError("the last try returns or raises")


def sql_moment(moment: datetime) -> str:
    """A moment as Spark's SQL has it."""
    return f"TIMESTAMP '{moment.isoformat(timespec='milliseconds')}'"


def merge_sql(table: str, source: str, keys: Sequence[str], names: Sequence[str]) -> str:
    """The statement that brings a table to what the source says; rows that are `gone` go.

    Without names of columns, every row of the source says that a row goes.
    """
    same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    head = f"MERGE INTO {table} t USING {source} s ON {same}"
    if not names:
        return f"{head} WHEN MATCHED THEN DELETE"
    values = ", ".join(f"t.{name} = s.{name}" for name in names)
    given = ", ".join(f"s.{name}" for name in names)
    return (
        f"{head} WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET {values}"  # noqa: S608  (our own names)
        f" WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({', '.join(names)}) VALUES ({given})"
    )


def last_offsets(rows: DataFrame) -> list[Row]:
    """The last offset of each partition that some rows have, and how many records of it they are."""
    found = rows.groupBy("topic", "kafka_partition")
    counted = F.count("*").alias("records")
    return found.agg(F.max("kafka_offset").alias("last"), counted).collect()


def ends(offsets: Iterable[Row]) -> Offsets:
    """Behind the last offset of each partition."""
    found: Offsets = {}
    for one in offsets:
        parts = found.setdefault(one["topic"], {})
        part = str(one["kafka_partition"])
        parts[part] = max(parts.get(part, 0), one["last"] + 1)
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
