"""What lineage costs a streaming job: off, Headwater, and the OpenLineage jar, side by side.

`python bench/spark.py [--rounds 12] [--batches 10] [--write] [--json]`

One session, one topic. Each round runs the same query (Kafka, window aggregate, Kafka) under each of
the three in turn, in a different order each time, and counts the batches after the first two. The
lab's broker runs in a temporary home. In the same session, without a query: how long the thread of a
job waits for us, and how long the worker reads a plan of 200 nodes.
"""

# ruff: noqa: SLF001  (the JVM behind PySpark is what is measured)

from __future__ import annotations

import argparse
import contextlib
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
from bench._sample import Sample, cpu, others, rows  # noqa: E402

from headwater.lab.jars import peer_jar, pipeline_jars  # noqa: E402
from headwater.lab.lab import Lab  # noqa: E402
from headwater.lab.used import UsedKafka  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "spark.json"
MODES = ("off", "headwater", "jar")
WARM = 2
RECORDS = 60_000
A_BATCH = 500


def make_session(work: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    paths = [*pipeline_jars(), peer_jar()]
    builder: Any = (
        SparkSession.builder.master("local[2]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.extraClassPath", os.pathsep.join(map(str, paths)))
        .config("spark.openlineage.transport.type", "file")
        .config("spark.openlineage.transport.location", str(work / "events.ndjson"))
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


@contextlib.contextmanager
def lineage(spark: SparkSession, mode: str) -> Iterator[None]:
    """The session with one kind of lineage, and without it again."""
    import headwater.spark

    context: Any = spark.sparkContext
    if mode == "headwater":
        headwater.spark.attach(spark)
        try:
            yield
        finally:
            headwater.spark.detach(spark)
    elif mode == "jar":
        listener = context._jvm.io.openlineage.spark.agent.OpenLineageSparkListener(
            context._jsc.sc().conf()
        )
        context._jsc.sc().addSparkListener(listener)
        try:
            yield
        finally:
            context._jsc.sc().listenerBus().waitUntilEmpty(15000)
            context._jsc.sc().removeSparkListener(listener)
    else:
        yield


def block(
    spark: SparkSession,
    begin: Callable[[], Any],
    mode: str,
    batches: int,
    sample: Sample,
    log: Path,
) -> None:
    """One query under one mode, until it has done its batches."""
    process = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    before = log.stat().st_size if log.exists() else 0
    with lineage(spark, mode):
        query = begin()

        def done() -> int:
            last = query._jsq.lastProgress()
            return int(last.batchId()) + 1 if last is not None else 0

        wait(lambda: done() >= WARM)
        python, jvm, first = others(), cpu(process), done()
        wait(lambda: done() >= WARM + batches)
        counted = done() - first
        sample.python += others() - python
        sample.jvm += cpu(process) - jvm
        sample.counted += counted
        times = [p["durationMs"]["triggerExecution"] for p in query.recentProgress
                 if p["numInputRows"] and p["batchId"] >= WARM]  # fmt: skip
        sample.batches.append([float(t) for t in times[:batches]])
        query.stop()
    if log.exists():
        with log.open("rb") as told:
            told.seek(before)
            lines = told.read().splitlines()
        sample.events += len(lines)
        sample.size += sum(map(len, lines))


def wait(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError("the query does not advance")
        time.sleep(0.25)


def run(
    spark: SparkSession, work: Path, kafka: UsedKafka, rounds: int, batches: int
) -> list[dict[str, Any]]:
    source, sink = kafka.topic("orders", 2), kafka.topic("totals")
    kafka.produce(source, [
        json.dumps({"supplier": f"s{i % 50}", "price": i % 100,
                    "at": f"2026-01-01T00:{i // 100 % 60:02d}:{i % 60:02d}.000Z"})
        for i in range(RECORDS)
    ])  # fmt: skip
    samples = {mode: Sample() for mode in MODES}
    log = work / "events.ndjson"
    number = 0
    for turn in range(-1, rounds):
        order = MODES[turn % 3 :] + MODES[: turn % 3]
        for mode in order:
            number += 1
            checkpoint = work / f"checkpoint-{number}"
            begin = lambda at=checkpoint: start(spark, kafka.bootstrap, source, sink, at)  # noqa: E731
            # The first round warms the JVM up and is not counted.
            sample = Sample() if turn < 0 else samples[mode]
            block(spark, begin, mode, batches, sample, log)
    return rows(samples)


def show(found: list[dict[str, Any]]) -> None:
    table = Table(*found[0])
    for row in found:
        cells = (f"{v[0]} to {v[1]}" if isinstance(v, list) else str(v) for v in row.values())
        table.add_row(*cells)
    Console(width=140).print(table)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--batches", type=int, default=10)
    arguments.add_argument("--lab", type=Path, help="a lab that is up already")
    arguments.add_argument("--write", action="store_true", help="keep the result for the docs")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        work = Path(folder)
        os.environ["HEADWATER_STATE_DIR"] = str(work / "state")
        lab = Lab(given.lab or work / "lab")
        lab.up(["kafka"])
        try:
            spark = make_session(work)
            batches = run(spark, work, UsedKafka(lab, "kafka"), given.rounds, given.batches)
            found = {"batches": batches, "costs": costs(spark, str(work))}
            spark.stop()
        finally:
            if given.lab is None:
                lab.down()
    if given.write:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    if given.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    show(found["batches"])
    show(found["costs"])


if __name__ == "__main__":
    main()
