"""What lineage costs a streaming job: off, Headwater, and the OpenLineage jar, side by side.

`python bench/spark.py [--rounds 12] [--batches 10] [--write] [--json]`

One session, one topic. Each round runs the same query (Kafka, window aggregate, Kafka) under each of
the three in turn, in a different order each time, and counts the batches after the first two, and the events
emitted meanwhile. The lab's broker runs in a temporary home. In the same session, one by one: how long
the thread of a job waits for us, how long the worker reads a plan of 200 nodes, and how many events a
query has for each heartbeat. Before that, batch statements in processes of their own (`_statements.py`);
`--statements` measures these alone, `--paired` the same statements in one session (`_paired.py`). `--write` keeps the result for the docs, which `make docs` puts there.
"""

# ruff: noqa: SLF001  (the JVM behind PySpark is what is measured)

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench._costs import costs  # noqa: E402
from bench._modes import MODES, lineage, settle  # noqa: E402
from bench._paired import compare  # noqa: E402
from bench._results import keep  # noqa: E402
from bench._sample import Block, cpu, others, rows  # noqa: E402
from bench._statements import measure  # noqa: E402

from headwater.lab.clients import KafkaClient  # noqa: E402
from headwater.lab.files.jars import peer_jar, pipeline_jars  # noqa: E402
from headwater.lab.lab import Lab  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LOG = "events.ndjson"
WARM = 2
RECORDS = 60_000
A_BATCH = 500
HEARTBEAT = 3
BEATS = 6


def make_session(work: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    paths = [*pipeline_jars(), peer_jar()]
    builder: Any = (
        SparkSession.builder.master("local[2]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraClassPath", os.pathsep.join(map(str, paths)))
        .config("spark.openlineage.transport.type", "file")
        .config("spark.openlineage.transport.location", str(work / LOG))
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
    )
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def start(spark: SparkSession, bootstrap: str, source: str, sink: str, checkpoint: Path) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", A_BATCH)
        .load()
    )
    order = F.from_json(
        F.col("value").cast("string"), "supplier string, price double, at timestamp"
    )
    totals = (
        raw.select(order.alias("o"))
        .select("o.*")
        .withWatermark("at", "10 minutes")
        .groupBy(F.window("at", "1 minute"), "supplier")
        .agg(F.sum("price").alias("total"))
    )
    value = F.to_json(F.struct("supplier", "total", F.col("window.start").alias("since")))
    return (
        totals.select(F.col("supplier").alias("key"), value.alias("value"))
        .writeStream.queryName("totals")
        .outputMode("update")
        .format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def written(log: Path) -> tuple[int, int]:
    """How many events are in the file, and their bytes."""
    if not log.exists():
        return 0, 0
    lines = log.read_bytes().splitlines()
    return len(lines), sum(map(len, lines))


def block(
    spark: SparkSession, begin: Callable[[], Any], mode: str, batches: int, log: Path
) -> Block:
    """One query under one mode, until it has done its batches."""
    process = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    before, _ = written(log)
    with lineage(spark, mode):
        query = begin()

        def done() -> int:
            last = query._jsq.lastProgress()
            return int(last.batchId()) + 1 if last is not None else 0

        wait(lambda: done() >= WARM)
        settle(spark)
        emitted, size = written(log)
        python, jvm, first = others(), cpu(process), done()
        wait(lambda: done() >= first + batches)
        counted = done() - first
        python, jvm = others() - python, cpu(process) - jvm
        settle(spark)
        now, bytes_now = written(log)
        seen = done() - first
        times = [float(p["durationMs"]["triggerExecution"]) for p in query.recentProgress
                 if p["numInputRows"] and p["batchId"] >= first]  # fmt: skip
        query.stop()
    settle(spark)
    after, _ = written(log)
    # Batches went on while the events of the counted ones were waited for.
    share = counted / max(seen, 1)
    events, grown = round((now - emitted) * share), round((bytes_now - size) * share)
    around = after - before - (now - emitted)
    return Block(times[:batches], counted, python, jvm, events, grown, around)


def wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError("the query does not advance")
        time.sleep(0.25)


def fill(kafka: KafkaClient) -> str:
    """A topic with enough records for the longest of the queries."""
    source = kafka.topic("orders", 2)
    kafka.produce(source, [
        json.dumps({"supplier": f"s{i % 50}", "price": i % 100,
                    "at": f"2026-01-01T00:{i // 100 % 60:02d}:{i % 60:02d}.000Z"})
        for i in range(RECORDS)
    ])  # fmt: skip
    return source


def run(
    spark: SparkSession, work: Path, begin: Callable[[Path], Any], rounds: int, batches: int
) -> list[dict[str, Any]]:
    """Every mode in every round, in another order each time."""
    samples: dict[str, list[Block]] = {mode: [] for mode in MODES}
    number = 0
    for turn in range(-1, rounds):
        for mode in MODES[turn % 3 :] + MODES[: turn % 3]:
            number += 1
            place = work / f"checkpoint-{number}"
            made = block(spark, lambda at=place: begin(at), mode, batches, work / LOG)  # type: ignore[misc]
            # The first round warms the JVM up and is not counted.
            if turn >= 0:
                samples[mode].append(made)
        sys.stderr.write(f"round {turn + 1} of {rounds}\n")
    return rows(samples)


def beats(spark: SparkSession, work: Path, begin: Callable[[Path], Any]) -> dict[str, Any]:
    """How many events of its own a query has for each heartbeat, whatever its batches."""
    os.environ["HEADWATER_HEARTBEAT_SECONDS"] = str(HEARTBEAT)
    try:
        with lineage(spark, "headwater"):
            query = begin(work / "checkpoint-beats")
            wait(lambda: query.lastProgress is not None)
            settle(spark)
            began, emitted = time.monotonic(), of_query(work / LOG)
            time.sleep(HEARTBEAT * BEATS)
            settle(spark)
            heartbeats = (time.monotonic() - began) / HEARTBEAT
            events = of_query(work / LOG) - emitted
            batches = int(query.lastProgress["batchId"]) + 1
            query.stop()
    finally:
        del os.environ["HEADWATER_HEARTBEAT_SECONDS"]
    what = f"events of a query a heartbeat, over {batches} batches"
    measured = round(events / heartbeats, 2)
    return {"what": what, "times": round(heartbeats), "median": measured, "bound": 1}


def of_query(log: Path) -> int:
    return sum(b'"name":"totals"' in line for line in log.read_bytes().splitlines())


def show(found: list[dict[str, Any]]) -> None:
    heads = list(dict.fromkeys(key for row in found for key in row))
    table = Table(*heads)
    for row in found:
        table.add_row(*(cell(row.get(head)) for head in heads))
    Console(width=180).print(table)


def cell(value: Any) -> str:
    if isinstance(value, list):
        return f"{value[0]} to {value[1]}" if value else ""
    return "" if value is None else str(value)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--batches", type=int, default=10)
    arguments.add_argument("--statement-rounds", type=int, default=3)
    arguments.add_argument("--every", type=int, default=1, help="one in so many statements")
    arguments.add_argument("--statements", action="store_true", help="batch statements alone")
    arguments.add_argument("--paired", action="store_true", help="those of one session alone")
    arguments.add_argument("--lab", type=Path, help="a lab that is up already")
    arguments.add_argument("--write", action="store_true", help="keep the result for the docs")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        work = Path(folder)
        found: dict[str, Any] = {}
        if not given.paired:
            found["statements"] = measure(work, given.statement_rounds, given.every)
        if not given.statements:
            found["paired"] = compare(work, given.statement_rounds, given.every)
        if given.statements or given.paired:
            finish(found, given)
            return
        os.environ["HEADWATER_STATE_DIR"] = str(work / "state")
        lab = Lab(given.lab or work / "lab")
        lab.up(["kafka"])
        try:
            spark = make_session(work)
            kafka = KafkaClient(lab, "kafka")
            source, sink = fill(kafka), kafka.topic("totals")

            def begin(checkpoint: Path) -> Any:
                return start(spark, kafka.bootstrap, source, sink, checkpoint)

            found["batches"] = run(spark, work, begin, given.rounds, given.batches)
            found["costs"] = [*costs(spark, str(work)), beats(spark, work, begin)]
            spark.stop()
        finally:
            if given.lab is None:
                lab.down()
    finish(found, given)


def finish(found: dict[str, Any], given: argparse.Namespace) -> None:
    """Keep the result and show it, as the arguments say."""
    if given.write:
        keep("spark", **found)
    if given.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    for part in ("statements", "paired", "batches", "costs"):
        show(found.get(part, []))


if __name__ == "__main__":
    main()
