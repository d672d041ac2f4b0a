"""One query of each end and of a few shapes, and a table of a plug-in's format, in one driver.

It does not attach itself: `headwater spark run` does. The last that happens is the death of its JVM.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.integration.spark.programs import shapes

import headwater.spark

SECONDS = 60.0
place, bounded = shapes.Place(sys.argv[1]), sys.argv[2].split(",")
told = Path(os.environ["OPENLINEAGE__TRANSPORT__LOG_FILE_PATH"])
spark = shapes.session("one of each")


def beats(job: str) -> int:
    lines = told.read_text().splitlines() if told.exists() else []
    events = [json.loads(line) for line in lines if '"RUNNING"' in line]
    return sum(event["job"]["name"] == job for event in events)


def ledger() -> None:
    """A table of a format that Headwater knows from an installed package alone."""
    from headwater_ledger.source import LedgerSource

    spark.dataSource.register(LedgerSource)
    made = spark.sql("SELECT id, 'Oslo' AS city, 0L AS _ledger_version FROM range(3)")
    made.coalesce(1).write.format("ledger").mode("append").save(str(place.work / "ledger"))
    read = (
        spark.read.format("ledger").option("ledger.version", "0").load(str(place.work / "ledger"))
    )
    read.write.parquet(str(place.work / "cities"))


def begun(name: str) -> Any:
    query = shapes.start(spark, place, "kafka_to_kafka", name)
    while not query.lastProgress and query.exception() is None:
        time.sleep(0.05)
    return query


def beating(name: str) -> Any:
    """A query that has gone on for several heartbeats; Spark reports to it no more than at its start."""
    query = begun(name)
    deadline = time.monotonic() + SECONDS
    before = beats(name)
    while beats(name) < before + 3:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{name} has {beats(name)} events after its start")
        time.sleep(0.1)
    return query


if hasattr(spark, "dataSource"):  # from Spark 4.0 on
    ledger()
beating("stopped").stop()
for shape in bounded:
    shapes.start(spark, place, shape, shape, bounded=True).awaitTermination()
with contextlib.suppress(Exception):
    shapes.start(spark, place, "failing", "broken").awaitTermination()
last = begun("cut")
headwater.spark.flush(20)
gateway: Any = spark.sparkContext._gateway
os.kill(gateway.proc.pid, signal.SIGKILL)
last.awaitTermination()
