"""Batch job `lineage-lake-maintain`: keeps the tables of the lineage lake small and quick, beside its stream.

It brings tables that an earlier release made up to date, carries out purges, removes repeated events of
days that are over, makes few files of many, and lets go of old snapshots and of files that no table has.
It can be run at any time, and again after any end.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import lake_purge
import msgspec
import options
from lake_derive import PLACE
from lake_store import NEWEST, Lake, sql_moment
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from headwater.lake import tables

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession

    from headwater.lake.tables import LakeTable

JOB = "lineage-lake-maintain"
FILES = 2
"""Small files of a partition that are made one."""


class Done(NamedTuple):
    """What was done to a table."""

    table: str
    version: int
    removed: int
    files_before: int
    files: int
    bytes: int
    snapshots_expired: int
    snapshots: int
    orphans: int


def repeated(lake: Lake, today: datetime) -> int:
    """Remove the events of days before today that repeat an earlier one; answers how many went.

    The first to arrive stays, as in the view `events_unique`. No derived row depends on it.
    """
    order = ("arrived", "seq", *PLACE)
    copy = F.row_number().over(Window.partitionBy("hash").orderBy(*order))
    events = lake.spark.table(lake.name(tables.EVENTS)).where(F.col("arrived") < F.lit(today))
    found = events.select("hash", *order).withColumn("copy", copy).where("copy > 1")
    places = found.select(*PLACE).localCheckpoint()
    count = places.count()
    if count:
        lake.remove(tables.EVENTS, places)
    return count


def files(lake: Lake, table: LakeTable) -> tuple[int, int]:
    """How many files a table has, and their bytes."""
    listed = lake.spark.table(f"{lake.name(table)}.files")
    row = listed.agg(F.count("*"), F.sum("file_size_in_bytes")).first()
    assert row is not None
    return row[0], row[1] or 0


def maintain_table(
    lake: Lake, table: LakeTable, removed: int, settings: argparse.Namespace
) -> Done:
    """Compact a table, expire its old snapshots and remove orphan files."""
    before, _ = files(lake, table)
    if before:
        wanted = f"map('min-input-files', '{FILES}')"
        lake.call("rewrite_data_files", table, options=wanted)
        lake.call("rewrite_manifests", table)
    now = lake.moment()
    lake.keep_offsets(table)
    oldest = now - timedelta(seconds=settings.older_than)
    expired = lake.expire(table, oldest, settings.keep_snapshots)
    moment = sql_moment(now - timedelta(seconds=settings.orphans_older_than))
    # By what the catalog lists, where the table lies: Spark itself may not know that kind of storage.
    orphans = lake.call("remove_orphan_files", table, older_than=moment, prefix_listing="true")
    count, size = files(lake, table)
    return Done(
        table.name, NEWEST, removed, before, count, size,
        expired, lake.snapshots(table), len(orphans),
    )  # fmt: skip


def maintain(spark: SparkSession, settings: argparse.Namespace) -> list[Done]:
    """Do all of it."""
    lake = Lake(spark, settings.catalog, settings.namespace)
    lake.create()
    purged = lake_purge.purge(lake)
    today = lake.moment().replace(hour=0, minute=0, second=0, microsecond=0)
    removed = {tables.EVENTS.name: purged + repeated(lake, today)}
    return [
        maintain_table(lake, table, removed.get(table.name, 0), settings) for table in tables.TABLES
    ]


def show(done: list[Done], *, as_json: bool) -> None:
    """Print what was done."""
    if as_json:
        text = msgspec.json.encode([one._asdict() for one in done])
        sys.stdout.write(msgspec.json.format(text, indent=2).decode() + "\n")
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table(box=None)
    shown.add_column("TABLE")
    for name in ("ROWS REMOVED", "FILES", "BYTES", "SNAPSHOTS", "EXPIRED", "ORPHANS"):
        shown.add_column(name, justify="right")
    for one in done:
        count = f"{one.files_before:,} → {one.files:,}"
        figures = (one.bytes, one.snapshots, one.snapshots_expired, one.orphans)
        shown.add_row(one.table, f"{one.removed:,}", count, *(f"{n:,}" for n in figures))
    Console().print(shown)


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    session = options.attach(options.session(name, settings, "events"), name)
    show(maintain(session, settings), as_json=settings.json)


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.arguments(__doc__)
    parser.add_argument("--namespace", default="lineage", help="where the tables are  [lineage]")
    text = "snapshots of each table that stay however old they are  [10]"
    parser.add_argument("--keep-snapshots", type=options.count, default=10, help=text)
    parser.add_argument(
        "--older-than", type=options.duration, default="7d", help="age of snapshots that go  [7d]"
    )
    text = "age of files that no snapshot has and that go, at least 1d  [3d]"
    parser.add_argument("--orphans-older-than", type=options.day, default="3d", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


if __name__ == "__main__":
    main(arguments().parse_args())
