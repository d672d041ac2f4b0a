"""The lake's derived tables: the rows of jobs that new events touch, computed from all their events.

How far it got is a property of `datasets`, so nothing depends on which snapshots of `events` are still
there. Events that arrive later than a bound may wait for `lake repair`: a load of old events then costs
the stream nothing, and until the repair no derived row knows them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lake_store import beyond, ends, further, last_offsets
from pyspark.sql import functions as F

from headwater.lake import arrow, tables

if TYPE_CHECKING:
    from lake_store import Lake, Offsets
    from pyspark.sql import Column, DataFrame

DERIVED = "headwater.derived"
"""The property of `datasets`: up to where in the topic the derived tables have everything."""
LATE = "headwater.late"
"""The property of `datasets`: how many seconds behind its own time an event may arrive."""
REPAIRED = "headwater.repaired"
"""The property of `datasets`: up to where in the topic late events count too."""
SETTLED = "headwater.settled"
"""The property of `datasets`: up to where the jobs of late events were computed again."""
FEW = 500
"""Nodes up to which they are named in the query, so that other files are not opened."""
PLACE = ("topic", "kafka_partition", "kafka_offset")
ORDER = ("node", "arrived", "seq", "kafka_partition", "kafka_offset")


def derive(lake: Lake) -> int:
    """Compute the jobs again that events since the last time touch; answers how many they are."""
    known = lake.position(tables.DATASETS, DERIVED)
    new = lake.spark.table(lake.name(tables.EVENTS)).where(beyond(known))
    # Before the nodes are read: what is appended in between is touched now and read again next time.
    reached = further(known, ends(last_offsets(new)))
    if reached == known:
        return 0
    found = compute(lake, new.where(_counts(lake)), reached)
    lake.note(tables.DATASETS, DERIVED, json.dumps(reached, sort_keys=True))
    return found


def bound(lake: Lake, seconds: float | None) -> None:
    """Let events that arrive later than this wait for a repair; None lets them count at once."""
    given = "" if seconds is None else f"{seconds:g}"
    if given != (lake.table_property(tables.DATASETS, LATE) or ""):
        # By another bound nobody could tell what waited, nor what counts already.
        repair(lake)
        lake.note(tables.DATASETS, LATE, given)


def repair(lake: Lake) -> tuple[int, int]:
    """Let late events count from now on; answers how many waited, and how many jobs they touched."""
    settled = lake.position(tables.DATASETS, SETTLED)
    waiting = lake.spark.table(lake.name(tables.EVENTS)).where(beyond(settled))
    reached = further(settled, ends(last_offsets(waiting)))
    if reached == settled:
        return 0, 0
    late = _late(lake)
    waiting = waiting.where(F.lit(False) if late is None else late)
    count = waiting.count()
    # They count before they are computed: a job that the stream computes meanwhile has them as well.
    lake.note(tables.DATASETS, REPAIRED, json.dumps(reached, sort_keys=True))
    found = compute(lake, waiting, lake.position(tables.DATASETS, DERIVED)) if count else 0
    lake.note(tables.DATASETS, SETTLED, json.dumps(reached, sort_keys=True))
    return count, found


def compute(lake: Lake, touching: DataFrame, reached: Offsets) -> int:
    """Replace the derived rows of the nodes of some events; answers how many nodes they are."""
    touched = touching.where("node IS NOT NULL").select("node").distinct().localCheckpoint()
    some = [row[0] for row in touched.limit(FEW + 1).collect()]
    if not some:
        return 0

    def chosen(rows: DataFrame) -> DataFrame:
        if len(some) <= FEW:
            return rows.where(F.col("node").isin(some))
        return rows.join(F.broadcast(touched), "node", "left_semi")

    events = chosen(lake.spark.table(lake.name(tables.EVENTS)).where(_counts(lake)))
    projected = (
        events.select(*ORDER, "topic", "kind", "body")
        .withColumn("arrived", F.unix_micros("arrived"))
        .repartition("node")
        .sortWithinPartitions(*ORDER)
        .mapInArrow(arrow.project_batches, arrow.PROJECTED)
    )
    lake.replace(projected, chosen, reached)
    return len(some) if len(some) <= FEW else touched.count()


def _late(lake: Lake) -> Column | None:
    """Whether an event arrived later than the bound; None where there is none."""
    given = lake.table_property(tables.DATASETS, LATE)
    if not given:
        return None
    behind = F.unix_micros("arrived") - F.unix_micros("time")
    return behind > int(float(given) * 1_000_000)


def _counts(lake: Lake) -> Column:
    """Whether an event counts in the derived tables."""
    late = _late(lake)
    if late is None:
        return F.lit(True)
    return ~late | ~beyond(lake.position(tables.DATASETS, REPAIRED))
