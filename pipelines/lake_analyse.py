"""Batch job `lineage-lake-analyse`: what lies behind every dataset and column, what nobody uses, and components.

It reads the derived tables of the lineage lake as they are now and replaces `analysis_datasets`,
`analysis_columns` and `analysis_components`, each as a whole in one commit. Names are resolved as the server
resolves them: first the datasets and jobs of the whole estate are joined into components in one task,
then components are counted beside each other, however many workers there are.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import lake_derive
import options
from lake_store import Lake
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from headwater.lake import arrow, tables
from headwater.lake.records import job_node

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from headwater.lake.tables import LakeTable

N = TypeVar("N")
JOB = "lineage-lake-analyse"
NOW = "valid_to IS NULL"
TOLD = ("kind", "first", "second", "third", "fourth", "number")
PART = ("component", "kind", "first", "second", "third", "text", "other")
DATASET = ("dataset_namespace", "dataset_name")
SOURCE = ("source_namespace", "source_name")


class Estate(NamedTuple):
    """The derived tables without what was deleted, and the aliases that people declared."""

    lake: Lake
    since: datetime
    hidden_jobs: list[str]
    hidden_datasets: list[tuple[str, str]]
    declared: list[tuple[str, str, str, str]]

    def rows(self, table: LakeTable) -> DataFrame:
        """The rows of a table, without edges and runs of jobs that were deleted.

        What such a job reported of datasets stays, as on the server.
        """
        found = self.lake.spark.table(self.lake.name(table))
        if self.hidden_jobs and table in (tables.EDGES, tables.COLUMN_EDGES, tables.RUNS):
            found = found.where(~F.col("node").isin(self.hidden_jobs))
        return found

    def shown(self, rows: DataFrame) -> DataFrame:
        """Rows without those of datasets that were deleted."""
        for namespace, name in self.hidden_datasets:
            gone = (F.col(DATASET[0]) == namespace) & (F.col(DATASET[1]) == name)
            rows = rows.where(~gone)
        return rows

    @property
    def period(self) -> Column:
        """Whether an edge held in the period."""
        return F.col("valid_to").isNull() | (F.col("valid_to") > F.lit(self.since))


def read_estate(lake: Lake, since: datetime) -> Estate:
    """What commands of the server's log change: aliases by hand, and what is deleted."""
    events = lake.spark.table(lake.name(tables.EVENTS))
    found = events.where("kind = 'command' AND type IN ('alias', 'unalias', 'hide')")
    declared: dict[tuple[str, str], tuple[str, str]] = {}
    hidden: dict[tuple[str, str, str], int] = {}
    for kind, body in found.orderBy("arrived", "seq").select("type", "body").collect():
        command = json.loads(body)
        if kind == "hide":
            named = (command["kind"], command.get("namespace", ""), command["name"])
            hidden[named] = command["at"]
        elif kind == "alias":
            declared[tuple(command["alias"])] = (command["namespace"], command["name"])
        else:
            declared.pop(tuple(command["alias"]), None)
    jobs, datasets = _hidden(lake, events, hidden) if hidden else ([], [])
    return Estate(lake, since, jobs, datasets, [(*a, *d) for a, d in declared.items()])


def _hidden(
    lake: Lake, events: DataFrame, hidden: dict[tuple[str, str, str], int]
) -> tuple[list[str], list[tuple[str, str]]]:
    """The jobs and datasets that were deleted, and that no event has named since."""
    spaces = [(name, at) for (kind, _, name), at in hidden.items() if kind == "namespace"]
    nodes = {job_node(*named): at for (kind, *named), at in hidden.items() if kind == "job"}
    gone = {(n[0], n[1]): at for (kind, *n), at in hidden.items() if kind == "dataset"}
    edges = lake.spark.table(lake.name(tables.EDGES))
    named = lake.spark.table(lake.name(tables.DATASETS)).select("node", *DATASET).distinct()
    for space, at in spaces:
        rows = edges.where(F.col("job_namespace") == space).select("node").distinct().collect()
        deleted(nodes, (row[0] for row in rows), at)
        rows = named.where(F.col(DATASET[0]) == space).select(*DATASET).distinct().collect()
        deleted(gone, ((row[0], row[1]) for row in rows), at)
    tasks = lake.spark.table(lake.name(tables.ALIASES)).where("kind = 'job'")
    for *task, space, name in tasks.select(*tables.ALIASES.names[2:]).distinct().collect():
        if (parent := job_node(space, name)) in nodes:
            deleted(nodes, [job_node(*task)], nodes[parent])
    heard = events.where("kind <> 'command'")
    last = heard.where(F.col("node").isin(list(nodes))).groupBy("node")
    later = {row[0]: row[1] for row in last.agg(F.max(F.unix_micros("arrived"))).collect()}
    back = set()
    for (namespace, name), at in gone.items():
        same = (F.col(DATASET[0]) == namespace) & (F.col(DATASET[1]) == name)
        by = named.where(same).select("node")
        newer = heard.where(F.unix_micros("arrived") > at).join(by, "node", "left_semi")
        spelled = (F.contains("body", F.lit(one)) for one in spellings(name))
        if not newer.where(reduce(lambda one, more: one | more, spelled)).isEmpty():
            back.add((namespace, name))
    return (
        [node for node, at in nodes.items() if later.get(node, 0) <= at],
        [name for name in gone if name not in back],
    )


def deleted(found: dict[N, int], names: Iterable[N], at: int) -> None:
    """Note when some were deleted: of several times the last, since they may have been back between."""
    for name in names:
        found[name] = max(found.get(name, at), at)


def spellings(name: str) -> set[str]:
    """A name as it stands in events, which are kept as sent: producers quote other than ASCII, or do not."""
    return {json.dumps(name), json.dumps(name, ensure_ascii=False)}


def known_names(estate: Estate, pairs: DataFrame) -> DataFrame:
    """All that is known of the names of datasets and jobs: the rows of `EstateRow`."""
    edges = estate.rows(tables.EDGES)
    aliases = estate.rows(tables.ALIASES).select(*tables.ALIASES.names[1:]).distinct()
    first = F.unix_micros(F.min("first"))
    named = estate.shown(estate.rows(tables.DATASETS)).groupBy(*DATASET).agg(first.alias("n"))
    node = F.concat(F.lit("job:"), "namespace", F.lit(":"), "name")
    other = F.concat(F.lit("job:"), "other_namespace", F.lit(":"), "other_name")
    tasks = aliases.where("kind = 'job'").select(node.alias("task"), other.alias("parent"))
    of_datasets = aliases.where("kind = 'dataset'")
    parents = tasks.select(F.col("parent").alias("node")).distinct()
    jobs = [
        estate.rows(table).join(F.broadcast(parents), "node", "left_semi").select("node")
        for table in (tables.RUNS, tables.EDGES)
    ]
    # Only of a symlink that several datasets declare does it count who was made of whom.
    several = F.size(F.collect_set(F.struct("other_namespace", "other_name"))) > 1
    rivals = of_datasets.join(
        of_datasets.groupBy("namespace", "name").agg(several.alias("several")).where("several"),
        ["namespace", "name"],
        "left_semi",
    ).select(F.col("other_namespace").alias(DATASET[0]), F.col("other_name").alias(DATASET[1]))
    ever = edges.join(F.broadcast(rivals.distinct()), list(DATASET), "left_semi")
    now = estate.shown(edges.where(NOW)).select("direction", "node", *DATASET).distinct()
    names = [F.col(name) for name in tables.ALIASES.names[2:]]
    by_direction = F.when(F.col("direction") == "input", "reads").otherwise("writes")
    found = [
        _told(named, F.lit("dataset"), *DATASET, number="n"),
        _told(of_datasets, F.lit("alias"), *names),
        _told(aliases.where("kind = 'namespace'"), F.lit("cluster"), "namespace", "other_namespace"),
        _told(tasks, F.lit("task"), "task", "parent"),
        *(_told(some.distinct(), F.lit("job"), "node") for some in jobs),
        _told(now, F.col("direction"), "node", *DATASET),
        _told(ever, by_direction, "node", *DATASET),
        _told(pairs.where("now").select("node", *SOURCE).distinct(), F.lit("source"), "node", *SOURCE),
    ]  # fmt: skip
    if estate.declared:
        schema = "first string, second string, third string, fourth string"
        given = estate.lake.spark.createDataFrame(estate.declared, schema)
        found.append(_told(given, F.lit("alias"), "first", "second", "third", "fourth"))
    return reduce(lambda one, more: one.unionByName(more), found)


def _told(
    rows: DataFrame, kind: Column, *columns: Column | str, number: str | None = None
) -> DataFrame:
    texts: list[Column | str] = [*columns, *[F.lit("")] * (4 - len(columns))]
    last = F.col(number) if number else F.lit(0)
    values = [kind, *(F.col(c) if isinstance(c, str) else c for c in texts), last.cast("bigint")]
    return rows.select(*(v.alias(name) for v, name in zip(values, TOLD, strict=True)))


def column_pairs(estate: Estate) -> DataFrame:
    """Which job made columns of which dataset of which, in the period, and whether it does now."""
    rows = estate.rows(tables.COLUMN_EDGES).where(estate.period)
    now = F.max(F.col("valid_to").isNull()).alias("now")
    return rows.groupBy("node", *SOURCE, *DATASET).agg(now)


def parts(estate: Estate, pairs: DataFrame, members: DataFrame) -> DataFrame:
    """What is known of each component: the rows of `Part`."""
    named = members.where("kind = 'dataset'")
    jobs = members.where("kind = 'job'").select(
        F.col("namespace").alias("node"), F.col("number").alias("job")
    )

    def dataset(rows: DataFrame, columns: tuple[str, str] = DATASET, into: str = "dataset") -> DataFrame:  # fmt: skip
        keys = [F.col(k).alias(c) for k, c in zip(("namespace", "name"), columns, strict=True)]
        known = named.select(*keys, F.col("number").alias(into), F.col("component"))
        known = known if into == "dataset" else known.drop("component")
        return rows.join(F.broadcast(known), list(columns))

    def of_job(rows: DataFrame) -> DataFrame:
        return rows.join(F.broadcast(jobs), "node")

    edges = dataset(estate.rows(tables.EDGES).where(estate.period))
    blind = blind_jobs(estate, pairs).withColumn("blind", F.lit(1))
    reads = edges.where("direction = 'input'").join(F.broadcast(blind), "node", "left")
    columns = estate.rows(tables.COLUMN_EDGES)
    maps = dataset(columns.where(NOW), into="target")
    ended = columns.where(estate.period & F.col("valid_to").isNotNull())
    owners = estate.rows(tables.OWNERS).withColumnRenamed("node", "by")
    of_datasets = owners.where("kind = 'dataset'").select(
        F.col("namespace").alias(DATASET[0]), F.col("name").alias(DATASET[1]), "owner", "edited", "since"
    )  # fmt: skip
    node = F.concat(F.lit("job:"), "namespace", F.lit(":"), "name")
    of_jobs = of_job(owners.where("kind = 'job'").withColumn("node", node))
    # An owner counts wherever the job has an edge: its component is that of the dataset.
    owned = of_job(edges.where(NOW)).select("component", "job").distinct().join(of_jobs, "job")
    written = edges.where(NOW).where("stated IS NOT NULL")
    names = F.explode(F.from_json("stated", "array<array<string>>")).alias("name")
    stated = of_job(written.withColumnRenamed("dataset", "target")).select("job", "target", names)
    stated = stated.select(
        "job", "target", *(F.col("name")[i].alias(c) for i, c in enumerate(SOURCE))
    )
    told = F.col("stated").isNotNull().cast("int")
    edited, since = F.col("edited").cast("string"), F.unix_micros("since")
    found = [
        _part(named.where("leads"), "dataset", first="number", text="namespace", other="name"),
        _part(of_job(edges.where(NOW)), F.col("direction"), first="dataset", second="job", third=told),
        _part(dataset(stated, SOURCE), "stated", first="dataset", second="target", third="job"),
        _part(of_job(dataset(maps, SOURCE)), "map", first="dataset", second="target", third="job",
              text="source_field", other="field"),
        _part(reads, "read", first="dataset", third=F.coalesce("blind", F.lit(0))),
        _part(edges.where("direction = 'output'"), "written", first="dataset"),
        _part(dataset(ended, SOURCE), "used", first="dataset", text="source_field"),
        _part(dataset(estate.rows(tables.SCHEMAS).where(NOW)), "schema", first="dataset",
              third=F.unix_micros("valid_from"), text="fields"),
        _part(dataset(of_datasets), "owner", first="dataset", third=since, text="owner", other=edited),
        _part(owned, "owner", second="job", third=since, text="owner", other=edited),
    ]  # fmt: skip
    return reduce(lambda one, more: one.unionByName(more), found)


def _part(rows: DataFrame, kind: Column | str, **given: Column | str) -> DataFrame:
    values = {
        "component": F.col("component"),
        "kind": F.lit(kind) if isinstance(kind, str) else kind,
        **dict.fromkeys(("first", "second"), F.lit(-1)),
        "third": F.lit(0),
        **dict.fromkeys(("text", "other"), F.lit("")),
        **{k: F.col(v) if isinstance(v, str) else v for k, v in given.items()},
    }
    types = dict.fromkeys(("component", "first", "second", "third"), "bigint")
    return rows.select(*(values[n].cast(types.get(n, "string")).alias(n) for n in PART))


def blind_jobs(estate: Estate, pairs: DataFrame) -> DataFrame:
    """The jobs that wrote something in the period without saying of which columns, or wrote nothing."""
    edges = estate.rows(tables.EDGES).where(estate.period)
    written = edges.where("direction = 'output'").select("node", *DATASET).distinct()
    undescribed = written.join(pairs, ["node", *DATASET], "left_anti").select("node")
    readers = edges.where("direction = 'input'").select("node").distinct()
    return undescribed.unionByName(readers.join(written, "node", "left_anti")).distinct()


def analyse(lake: Lake, period: float) -> dict[str, int]:
    """Replace the tables of the analysis; answers how many rows each has."""
    now = lake.moment()
    since = now - timedelta(seconds=period)
    reached = lake.position(tables.DATASETS, lake_derive.DERIVED)
    estate = read_estate(lake, since)
    pairs = column_pairs(estate).persist(StorageLevel.MEMORY_AND_DISK)
    members = known_names(estate, pairs).repartition(1).mapInArrow(arrow.join_batches, arrow.JOINED)
    members = members.persist(StorageLevel.MEMORY_AND_DISK)
    found = (
        parts(estate, pairs, members)
        .repartition("component")
        .sortWithinPartitions("component")
        .mapInArrow(arrow.analyse_batches, arrow.ANALYSED)
        .withColumns({"analysed": F.lit(now), "since": F.lit(since)})
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    try:
        for table in (tables.ANALYSED_COLUMNS, tables.ANALYSED_DATASETS):
            lake.overwrite(table, found.where(F.col("destination") == table.name), reached)
        lake.overwrite(tables.ANALYSED_COMPONENTS, components(found, members), reached)
    finally:
        for kept in (found, members, pairs):
            kept.unpersist()
    return {t.name: lake.spark.table(lake.name(t)).count() for t in tables.ANALYSIS}


def components(found: DataFrame, members: DataFrame) -> DataFrame:
    """The rows of `analysis_components`."""
    datasets = found.where(F.col("destination") == tables.ANALYSED_DATASETS.name)
    figures = datasets.groupBy("component", "analysed", "since").agg(
        F.count("*").alias("datasets"), F.sum("columns").alias("columns")
    )
    jobs = members.where("kind = 'job' AND leads").groupBy("component")
    counted = figures.join(jobs.agg(F.count("*").alias("jobs")), "component", "left")
    return counted.withColumn("jobs", F.coalesce("jobs", F.lit(0)))


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    spark = options.attach(options.session(name, settings, "analysis_datasets"), name)
    lake = Lake(spark, settings.catalog, settings.namespace)
    lake.create()
    done = analyse(lake, settings.period)
    if settings.json:
        sys.stdout.write(json.dumps(done) + "\n")
    else:
        datasets, columns, parts = (done[table.name] for table in tables.ANALYSIS)
        sys.stdout.write(
            f"{datasets:,} datasets and {columns:,} columns in {parts:,} components analysed\n"
        )


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.arguments(__doc__)
    parser.add_argument("--namespace", default="lineage", help="where the tables are  [lineage]")
    parser.add_argument(
        "--period",
        type=options.duration,
        default="30d",
        help="how long back a use of a table or column counts  [30d]",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
