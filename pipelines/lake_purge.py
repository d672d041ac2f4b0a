"""What a server purged goes from the lake too: its events, what they reported, and the files that held them.

A purge stands in the log by a digest alone, so that the log does not name what is gone. Each name that a
record holds is digested and compared. What arrived after the purge is new, and stays.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import lake_derive
from lake_derive import PLACE
from lake_store import beyond, ends, further, last_offsets
from pyspark.sql import functions as F

from headwater.lake import arrow, tables

if TYPE_CHECKING:
    from lake_store import Lake
    from pyspark.sql import DataFrame

    from headwater.lake.tables import LakeTable

PURGED = "headwater.purged"
"""The property of `events`: up to where in the topic every purge was carried out."""
BEGUN = "headwater.purging"
"""The property of `events` while records are taken away: set still, the last purge came to no end."""


def purge(lake: Lake) -> int:
    """Carry out the purges that the log brought since the last time; answers how many records went.

    A record that the server logged before a purge may come behind it, from another partition of the
    topic: records that are new are held to every purge there ever was.
    """
    known = lake.position(tables.EVENTS, PURGED)
    events = lake.spark.table(lake.name(tables.EVENTS))
    new = events.where(beyond(known))
    reached = further(known, ends(last_offsets(new)))
    if reached == known:
        return 0
    refused = lake.spark.table(lake.name(tables.REFUSED))
    commands = events.where("kind = 'command' AND type = 'purge'").select(
        F.get_json_object("body", "$.digest"), F.unix_micros("arrived"), beyond(known)
    )
    purges: dict[str, int] = {}
    again = False
    for digest, at, fresh in commands.collect():
        purges[digest] = max(at, purges.get(digest, 0))
        again = again or fresh
    count = 0
    if purges and again:
        count = _remove(lake, events, refused, purges)
    elif purges:
        count = _remove(lake, new, refused.where(beyond(known)), purges)
    lake.note(tables.EVENTS, PURGED, json.dumps(reached, sort_keys=True))
    return count


def _remove(lake: Lake, events: DataFrame, refused: DataFrame, purges: dict[str, int]) -> int:
    found = _naming(events, purges)
    broken = _naming(refused.withColumn("node", F.lit(None)), purges)
    count = found.count() + broken.count()
    unfinished = bool(lake.table_property(tables.EVENTS, BEGUN))
    if not count and not unfinished:
        return 0
    lake.note(tables.EVENTS, BEGUN, "1")
    for table, rows in ((tables.EVENTS, found), (tables.REFUSED, broken)):
        if not rows.isEmpty():
            lake.remove(table, rows.select(*PLACE))
    done = lake.position(tables.DATASETS, lake_derive.DERIVED)
    if done:
        # Of records that went before the last purge ended, nobody knows any more what they were about.
        lake_derive.compute(lake, _everything(lake) if unfinished else found, done)
    for table in tables.ANALYSIS:
        # It may name what is gone; the next `lake analyse` makes it anew.
        lake.attempt(f"DELETE FROM {lake.name(table)}")  # noqa: S608  (our own names)
    for table in tables.TABLES:
        forget(lake, table)
    lake.note(tables.EVENTS, BEGUN, "")
    return count


def _everything(lake: Lake) -> DataFrame:
    """The nodes of all rows."""
    first, *others = (
        lake.spark.table(lake.name(table)).select("node")
        for table in (tables.EVENTS, *tables.DERIVED)
    )
    for nodes in others:
        first = first.unionByName(nodes)
    return first


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
    # The renewed manifests replaced others a moment ago, and the stream may have appended before that.
    moment = lake.moment()
    lake.keep_offsets(table)
    lake.expire(table, moment, 1)
