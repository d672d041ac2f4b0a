"""What a server purged goes from the lake too: its events, what they told, and the files that held them.

A purge stands in the log by a digest alone, so that the log does not name what is gone. Each name that a
record holds is digested and compared. What arrived after the purge is new, and stays.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import lake_derive
from lake_derive import PLACE
from lake_store import beyond, ends, further
from pyspark.sql import functions as F

from headwater.lake import arrow, tables

if TYPE_CHECKING:
    from lake_store import Lake
    from pyspark.sql import DataFrame

    from headwater.lake.tables import LakeTable

PURGED = "headwater.purged"
"""The property of `events`: up to where in the topic every purge was carried out."""


def purge(lake: Lake) -> int:
    """Carry out the purges that the log brought since the last time; answers how many records went.

    A record that the server logged before a purge may come behind it, from another partition of the
    topic: records that are new are held to every purge there ever was.
    """
    known = lake.position(tables.EVENTS, PURGED)
    events = lake.spark.table(lake.name(tables.EVENTS))
    new = events.where(beyond(known))
    reached = further(known, ends(new))
    if reached == known:
        return 0
    commands = events.where("kind = 'command' AND type = 'purge'").select(
        F.get_json_object("body", "$.digest"), F.unix_micros("arrived"), beyond(known)
    )
    purges: dict[str, int] = {}
    again = False
    for digest, at, fresh in commands.collect():
        purges[digest] = max(at, purges.get(digest, 0))
        again = again or fresh
    count = _remove(lake, events if again else new, purges, all_tables=again) if purges else 0
    lake.note(tables.EVENTS, PURGED, json.dumps(reached, sort_keys=True))
    return count


def _remove(lake: Lake, events: DataFrame, purges: dict[str, int], *, all_tables: bool) -> int:
    found = _naming(events, purges)
    refused = None
    if all_tables:
        refused = _naming(
            lake.spark.table(lake.name(tables.REFUSED)).withColumn("node", F.lit(None)), purges
        )
    count = found.count() + (refused.count() if refused is not None else 0)
    if not count:
        return 0
    for table, rows in ((tables.EVENTS, found), (tables.REFUSED, refused)):
        if rows is not None and not rows.isEmpty():
            lake.remove(table, rows.select(*PLACE))
    done = lake.position(tables.DATASETS, lake_derive.DERIVED)
    if done:
        lake_derive.compute(lake, found, done)
    for table in tables.TABLES:
        forget(lake, table)
    return count


def _naming(rows: DataFrame, purges: dict[str, int]) -> DataFrame:
    """The places and nodes of the rows that name what was purged after they arrived."""
    before = rows.where(F.unix_micros("arrived") <= max(purges.values())).where("body IS NOT NULL")
    read = before.select(*PLACE, "node", F.unix_micros("arrived").alias("arrived"), "body")
    return read.mapInArrow(partial(arrow.purged_batches, purges), arrow.PURGED).localCheckpoint()


def forget(lake: Lake, table: LakeTable) -> None:
    """Let go of every file that a table's rows are no longer in."""
    moment = lake.moment()
    lake.keep_offsets(table)
    # A manifest tells the bounds of files that its commit took away, names among them.
    lake.renew_manifests(table)
    lake.expire(table, moment, 1)
    # The renewed manifests replaced others a moment ago.
    lake.expire(table, lake.moment(), 1)
