"""Batch job `lineage-lake-ask`: answers a question about the past from a lake that is too large for one machine.

The question is the path of a server's route, such as `/api/v2/trace?node=dataset:s3://lake:orders&at=2025-03-01`.
Spark reads the tables; to the driver come the edges around what is asked for, step by step, and the
events of what the answer depends on. The server's own routes answer from these.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import options
from lake_store import Lake
from pyspark.sql import functions as F

from headwater.errors import HeadwaterError
from headwater.lake import tables
from headwater.lake.answers import answer
from headwater.lake.projection import LogRecord
from headwater.lake.selection import LakeAlias, Use, declared_aliases

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator

    from pyspark.sql import Column, DataFrame

    from headwater.lake.selection import Name
    from headwater.lake.tables import LakeTable

JOB = "lineage-lake-ask"
FEW = 500
"""Values up to which they are named in the query, so that files without them are not opened."""


class SparkLake:
    """What an answer depends on, as Spark finds it in the lake's tables."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        edges = self._table(tables.EDGES)
        # What columns lead into, the job writes then, so it is among the edges.
        columns = self._table(tables.COLUMN_EDGES)
        self._uses = _uses(edges, "dataset", F.col("direction") == "output").unionByName(
            _uses(columns, "source", F.lit(False))
        )
        self._named = self._table(tables.DATASETS)

    def _table(self, table: LakeTable) -> DataFrame:
        return self._lake.spark.table(self._lake.name(table))

    def _among(self, rows: DataFrame, column: str, values: Collection[str]) -> DataFrame:
        if len(values) <= FEW:
            return rows.where(F.col(column).isin(sorted(values)))
        wanted = self._lake.spark.createDataFrame([(one,) for one in values], f"{column} string")
        return rows.join(F.broadcast(wanted), column, "left_semi")

    def names(self) -> Iterator[Name]:
        """Every dataset that was ever named."""
        found = self._named.select("dataset_namespace", "dataset_name").distinct()
        yield from ((row[0], row[1]) for row in found.toLocalIterator())

    def uses_of(self, datasets: Collection[Name]) -> Iterator[Use]:
        """Who touched some datasets, and when."""
        for use in self._found("name", {name for _, name in datasets}):
            if use.dataset in datasets:
                yield use

    def uses_by(self, nodes: Collection[str]) -> Iterator[Use]:
        """What some nodes touched, and when."""
        return self._found("node", nodes)

    def _found(self, column: str, values: Collection[str]) -> Iterator[Use]:
        if values:
            for row in self._among(self._uses, column, values).distinct().toLocalIterator():
                yield Use(row.node, (row.space, row.name), row.writes, row.since, row.until)

    def naming(self, datasets: Collection[Name]) -> Iterator[str]:
        """The nodes that ever named some datasets."""
        if datasets:
            rows = self._among(self._named, "dataset_name", {name for _, name in datasets})
            for row in rows.toLocalIterator():
                if (row.dataset_namespace, row.dataset_name) in datasets:
                    yield row.node

    def aliases(self) -> Iterator[LakeAlias]:
        """Which names stand for one thing."""
        names = ("kind", "namespace", "name", "other_namespace", "other_name")
        for row in self._table(tables.ALIASES).select(*names).distinct().toLocalIterator():
            yield LakeAlias(row[0], (row[1], row[2]), (row[3], row[4]))
        declared = "node IS NULL AND kind = 'command' AND type = 'alias'"
        rows = self._table(tables.EVENTS).where(declared).select("body")
        yield from declared_aliases(row.body for row in rows.toLocalIterator())

    def parents(self) -> Iterator[tuple[str, str]]:
        """The nodes whose runs name a run of another as their parent, each with that other."""
        runs = self._table(tables.RUNS)
        children = runs.select(F.lower("parent").alias("run"), F.col("node").alias("child"))
        found = children.join(runs.select("run", "node"), "run").where("child <> node")
        for row in found.select("child", "node").distinct().toLocalIterator():
            yield row.child, row.node

    def reporting(self, since: int, until: int) -> set[str]:
        """The nodes with events or commands of a period."""
        rows = self._table(tables.EVENTS).where("node IS NOT NULL")
        first, last = (F.timestamp_micros(F.lit(moment)) for moment in (since, until))
        rows = rows.where((F.col("time") > first) & (F.col("time") <= last))
        return {row.node for row in rows.select("node").distinct().toLocalIterator()}

    def records(self, nodes: Collection[str], most: int | None = None) -> Iterator[LogRecord]:
        """The records of some nodes and the commands of no node, each once, as they arrived."""
        events = self._table(tables.EVENTS)
        found = events.where("node IS NULL")
        if nodes:
            found = found.unionByName(self._among(events, "node", nodes))
        order = ("arrived", "seq", "topic", "kafka_partition", "kafka_offset")
        met: set[bytes] = set()
        for row in (
            found.sort(*order)
            .select(F.unix_micros("arrived").alias("at"), "kind", "hash", "body")
            .toLocalIterator()
        ):
            digest = bytes(row.hash)
            if digest not in met:
                met.add(digest)
                yield LogRecord(int(row.kind == "command"), row.at, row.body.encode())


def _uses(rows: DataFrame, side: str, writes: Column) -> DataFrame:
    return rows.select(
        "node",
        F.col(f"{side}_namespace").alias("space"),
        F.col(f"{side}_name").alias("name"),
        writes.alias("writes"),
        F.unix_micros("valid_from").alias("since"),
        F.unix_micros("valid_to").alias("until"),
    )


def main(settings: argparse.Namespace) -> int:
    """Print the answer; the exit code is 1 where it is none."""
    spark = options.session(settings.job_name or JOB, settings, "events")
    try:
        found = answer(
            SparkLake(Lake(spark, settings.catalog, settings.namespace)), settings.question
        )
    except HeadwaterError as error:
        sys.stderr.write(f"{error}\n" + (f"{error.hint}\n" if error.hint else ""))
        return 2
    sys.stdout.write(f"{found.text}\n")
    return 0 if found.is_success else 1


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.arguments(__doc__)
    parser.add_argument(
        "question", help="PATH?QUERY of a server's question, with at=, or from= and to="
    )
    parser.add_argument("--namespace", default="lineage", help="where the tables are  [lineage]")
    return parser


if __name__ == "__main__":
    sys.exit(main(arguments().parse_args()))
