"""Stream job `lineage-lake`: lineage events from Kafka into the Iceberg tables of the lineage lake.

A stream appends what the topic has to `events`, and what is no event to `refused`; each table says in its
newest snapshot up to which offsets it has everything, so that a batch that is done again after a crash
adds nothing. Beside it, from time to time, the rows of the jobs that were touched since are replaced in
`runs`, `schemas`, `edges` and the other derived tables, computed from all of their events.

It needs the package headwater, with its extra `server` and PyArrow, on the executors too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import lake_derive
import lake_purge
import options
from lake_store import Lake, beyond, last_offsets
from pyspark.sql import Observation
from pyspark.sql import functions as F

from headwater.lake import arrow, tables

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

JOB = "lineage-lake"


def ingest(lake: Lake, batch: DataFrame) -> None:
    """Append one micro-batch: events to `events`, the rest to `refused` with its reason.

    Records are parsed while `events` is written, and kept nowhere in between: their bodies are most of
    what a batch costs. They are parsed again only where some were refused, which then is known, or
    where `events` had all of them already.
    """
    place = {"partition": "kafka_partition", "offset": "kafka_offset"}
    offsets = last_offsets(batch.select("topic", *place).withColumnsRenamed(place))
    rows = batch.mapInArrow(arrow.read_batches, arrow.READ)
    seen = Observation()
    refused = F.count_if(F.col("destination") == tables.REFUSED.name).alias("refused")
    if lake.append(tables.EVENTS, rows.observe(seen, refused), offsets) and not seen.get["refused"]:
        return
    bad = rows.where(F.col("destination") == tables.REFUSED.name)
    bad = bad.where(beyond(lake.offsets(tables.REFUSED))).persist()
    try:
        if not bad.isEmpty():
            lake.append(tables.REFUSED, bad, offsets)
    finally:
        bad.unpersist()


def read_topic(spark: SparkSession, settings: argparse.Namespace) -> DataFrame:
    """The topic as a stream, with headers and the moment of arrival in microseconds."""
    stream = (
        spark.readStream.format("kafka")
        .options(**options.kafka(settings))
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


def start(lake: Lake, stream: DataFrame, settings: argparse.Namespace) -> StreamingQuery:
    """Start to append, from the checkpoint if there is one."""
    writer = stream.writeStream.foreachBatch(lambda batch, _: ingest(lake, batch))
    if settings.checkpoint:
        writer = writer.option("checkpointLocation", f"{settings.checkpoint.rstrip('/')}/events")
    when = {"availableNow": True} if settings.once else {"processingTime": settings.every}
    return writer.queryName(f"{settings.job_name or JOB}-events").trigger(**when).start()


def settle(lake: Lake, settings: argparse.Namespace) -> None:
    """Carry out purges, and derive what follows from the events since the last time."""
    lake.despite_losses(lake_purge.purge)
    if not settings.append_only:
        lake.despite_losses(lake_derive.derive)


def run(spark: SparkSession, settings: argparse.Namespace) -> None:
    """Append and derive side by side; with `--once` one after the other, up to what is there."""
    lake = Lake(spark, settings.catalog, settings.namespace)
    lake.create()
    lake_derive.bound(lake, settings.late)
    events = start(lake, read_topic(spark, settings), settings)
    if settings.once:
        events.awaitTermination()
        settle(lake, settings)
        return
    # What fails ends the program; whoever starts it again goes on where it stopped.
    while not events.awaitTermination(settings.derive_every):
        settle(lake, settings)


def main(settings: argparse.Namespace) -> None:
    name = settings.job_name or JOB
    run(options.attach(options.session(name, settings, "events"), name), settings)


def arguments() -> argparse.ArgumentParser:
    """The options of this job."""
    parser = options.arguments(__doc__)
    options.option(parser, "--bootstrap", "BOOTSTRAP", "Kafka's address", needed=True)
    text = "file of Kafka's own settings, as security.protocol and sasl.jaas.config"
    options.option(parser, "--kafka-properties", "KAFKA_PROPERTIES", text)
    parser.add_argument(
        "--topic", default="openlineage.events", help="topic of events  [openlineage.events]"
    )
    parser.add_argument("--namespace", default="lineage", help="where the tables are  [lineage]")
    text = "folder of the streams' checkpoints; without one they start at the beginning"
    options.option(parser, "--checkpoint", "CHECKPOINT", text)
    parser.add_argument("--every", default="30 seconds", help="how often to append  [30 seconds]")
    parser.add_argument(
        "--derive-every",
        type=options.duration,
        default="5 minutes",
        help="how often to derive tables and to carry out purges  [5 minutes]",
    )
    parser.add_argument(
        "--late",
        type=options.duration,
        help="let events that arrive later than this, as 7d, wait for `lake repair`  [no bound]",
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
