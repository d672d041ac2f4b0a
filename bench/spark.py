"""What lineage costs a streaming job: off, Headwater, and the OpenLineage jar, side by side.

`python bench/spark.py [--rounds 12] [--batches 10] [--json]`

One session, one topic. Each round runs the same query (Kafka, window aggregate, Kafka) under each of
the three in turn, in a different order each time, and counts the batches after the first two. The
lab's broker runs in a temporary home; the jar comes through the resolver inside PySpark.
"""

# ruff: noqa: SLF001  (the JVM behind PySpark is what is measured)

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table

from headwater.lab import ivy
from headwater.lab.cache import Cache
from headwater.lab.jars import pipeline_jars
from headwater.lab.java import find_java
from headwater.lab.lab import Lab
from headwater.lab.used import UsedKafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

JAR = "io.openlineage:openlineage-spark_2.13:1.53.0"
LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
MODES = ("off", "headwater", "jar")
WARM = 2
RECORDS = 60_000
A_BATCH = 500


class Sample(msgspec.Struct):
    """What one mode showed over all its blocks."""

    batches: list[list[float]] = []
    python: float = 0.0
    jvm: float = 0.0
    counted: int = 0
    events: int = 0
    size: int = 0


def jar() -> Path:
    """The peer, from the registry."""
    work = Cache().root / "bench"
    found = work / "cache"
    hits = list(found.rglob("openlineage-spark*.jar")) if found.exists() else []
    if not hits:
        java = find_java()
        argv = ivy.command(java.executable, work, [ivy.Dependency(JAR)])
        ivy.run(argv, work / "ivy.log").wait()
        hits = list(found.rglob("openlineage-spark*.jar"))
    # A colon in a name cannot stand on a class path.
    plain = work / "openlineage-spark.jar"
    if not plain.exists():
        plain.write_bytes(hits[0].read_bytes())
    return plain


def make_session(work: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    paths = [*pipeline_jars(), jar()]
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


def cpu(process: int) -> float:
    """The CPU seconds a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def others() -> float:
    """The CPU seconds of every thread but this one, which only waits for batches."""
    return time.process_time() - time.thread_time()


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


def interval(base: Sample, other: Sample, draws: int = 2000) -> tuple[float, float, float]:
    """The ratio of medians with its 95 % interval, by drawing whole blocks anew."""
    chance = random.Random(7)

    def median(blocks: list[list[float]]) -> float:
        return statistics.median(x for one in blocks for x in one)

    pairs = list(zip(base.batches, other.batches, strict=False))
    found = []
    for _ in range(draws):
        drawn = [chance.choice(pairs) for _ in pairs]
        found.append(median([b for _, b in drawn]) / median([a for a, _ in drawn]))
    found.sort()
    low, high = found[int(draws * 0.025)], found[int(draws * 0.975)]
    return median(other.batches) / median(base.batches), low, high


def run(work: Path, kafka: UsedKafka, rounds: int, batches: int) -> dict[str, Sample]:
    source, sink = kafka.topic("orders", 2), kafka.topic("totals")
    kafka.produce(source, [
        json.dumps({"supplier": f"s{i % 50}", "price": i % 100,
                    "at": f"2026-01-01T00:{i // 100 % 60:02d}:{i % 60:02d}.000Z"})
        for i in range(RECORDS)
    ])  # fmt: skip
    spark = make_session(work)
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
    spark.stop()
    return samples


def rows(samples: dict[str, Sample]) -> list[dict[str, Any]]:
    found = []
    for mode, sample in samples.items():
        flat = [x for one in sample.batches for x in one]
        ratio, low, high = interval(samples["off"], sample)
        found.append(
            {
                "mode": mode,
                "batches": len(flat),
                "median ms": round(statistics.median(flat), 1),
                "ratio": round(ratio, 3),
                "95 %": [round(low, 3), round(high, 3)],
                "Python CPU ms a batch": round(sample.python / sample.counted * 1000, 2),
                "JVM CPU ms a batch": round(sample.jvm / sample.counted * 1000, 1),
                "events a batch": round(sample.events / sample.counted, 2),
                "KB a batch": round(sample.size / sample.counted / 1000, 1),
            }
        )
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--batches", type=int, default=10)
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        work = Path(folder)
        os.environ["HEADWATER_STATE_DIR"] = str(work / "state")
        lab = Lab(work / "lab")
        lab.up(["kafka"])
        try:
            found = rows(run(work, UsedKafka(lab, "kafka"), given.rounds, given.batches))
        finally:
            lab.down()
    if given.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    table = Table("mode", *list(found[0])[1:])
    for row in found:
        low, high = row["95 %"]
        table.add_row(*(f"{low} to {high}" if key == "95 %" else str(v) for key, v in row.items()))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
