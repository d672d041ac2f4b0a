"""How fast the pipeline is with lineage off and on, and as the data grows.

`python bench/pipeline.py [--orders 1000000] [--rounds 12] [--minutes 10] [--scale 1,2,4] [--write] [--json]`

Orders lie ready in Kafka as Connect writes them (Avro, the schema in the registry). The pipeline's own
streams take them to the table `default.orders` and to the topic `supplier-stats`, in one session, with
lineage off and on in turn, the order changed each round; each starts with nothing. Lineage goes to a real
server. The first rounds warm up and are not counted. The lab runs in a temporary home.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.table import Table

from headwater.lab.files.jars import pipeline_jars
from headwater.lab.lab import Lab
from headwater.lab.services.pipeline_streams import programs

sys.path[:0] = [str(Path(__file__).parents[1]), str(programs())]

from bench._orders import fill  # noqa: E402
from bench._results import keep  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

SERVICES = ("kafka", "registry", "s3", "catalog", "server")
MODES = ("off", "on")
JOBS = ("iceberg-ingestion", "supplier-stats")
TARGETS = {"iceberg-ingestion": "default.orders", "supplier-stats": "topic supplier-stats"}
# Rounds until the JVM has compiled what it runs: the first take three times as long as the fifth.
WARM = 3
# Student's, two-sided, 95 %, for one degree of freedom and more.
QUANTILES = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18)


class Sample(msgspec.Struct):
    """Seconds that a job took under each mode, round by round."""

    seconds: dict[str, list[float]]


def make_session(work: Path) -> SparkSession:
    import iceberg_ingestion
    import options
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[2]").appName("bench")
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": ",".join(map(str, pipeline_jars())),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.local.dir": str(work / "tmp"),
    }
    settings = iceberg_ingestion.arguments().parse_args([])
    for key, value in {**conf, **options.catalog(settings)}.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class Bench:
    """One session, and the jobs in it."""

    def __init__(self, lab: Lab, work: Path) -> None:
        self.lab, self.work = lab, work
        self.spark = make_session(work)
        self.number = 0

    def run(self, job: str, mode: str, topic: str, count: int) -> float:
        """Seconds from the start of a stream until it has handled the whole topic."""
        import headwater.spark

        self.number += 1
        checkpoint = self.work / f"checkpoint-{self.number}"
        table, totals = f"bench.orders_{self.number}", f"totals-{self.number}"
        # JSON, which the check below reads without the registry.
        stats = ["--output-topic", totals, "--format", "json"]
        own = ["--table", table] if job == "iceberg-ingestion" else stats
        own += ["--input-topic", topic, "--checkpoint", checkpoint.as_uri(), "--once"]
        program = self._program(job)
        settings = program.arguments().parse_args(own)
        gc.collect()
        if mode == "on":
            headwater.spark.attach(self.spark, namespace="bench", app_name=f"bench-{job}")
        try:
            began = time.perf_counter()
            query = program.start(self.spark, settings)
            query.awaitTermination()
            seconds = time.perf_counter() - began
            done = sum(p["numInputRows"] for p in query.recentProgress)
        finally:
            if mode == "on":
                headwater.spark.flush(10)
                headwater.spark.detach(self.spark)
        self._check(job, settings, count, done)
        shutil.rmtree(checkpoint, ignore_errors=True)
        sys.stderr.write(f"{job}, lineage {mode}: {count:,} orders in {seconds:.1f} s\n")
        return seconds

    def _program(self, job: str) -> Any:
        import iceberg_ingestion
        import supplier_stats_stream

        return iceberg_ingestion if job == "iceberg-ingestion" else supplier_stats_stream

    def _check(self, job: str, settings: argparse.Namespace, count: int, done: int) -> None:
        """A figure counts only if the work was done."""
        from pyspark.sql import functions as F  # noqa: N812

        assert done >= count, (job, done)
        if job == "iceberg-ingestion":
            table = f"{settings.catalog}.{settings.table}"
            # The stream wrote in a session of its own: this one may remember the empty table.
            self.spark.catalog.refreshTable(table)
            assert self.spark.table(table).count() == count
            self.spark.sql(f"drop table {table}")
            return
        topic = self.spark.read.format("kafka").option("subscribe", settings.output_topic)
        records = topic.option("kafka.bootstrap.servers", settings.bootstrap).load()
        # The last record of a key is the one that counts.
        last = records.groupBy("key").agg(F.max_by("value", "offset").cast("string").alias("last"))
        total = last.agg(F.sum(F.get_json_object("last", "$.count").cast("long"))).first()
        assert total is not None
        assert total[0] == count, total


def interval(off: Sequence[float], on: Sequence[float]) -> tuple[float, float, float]:
    """The ratio of speeds, on to off, round by round, with Student's 95 % interval of its logarithm."""
    logs = [math.log(a / b) for a, b in zip(off, on, strict=True)]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    quantile = QUANTILES[min(len(logs) - 1, len(QUANTILES)) - 1]
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def compare(bench: Bench, topic: str, count: int, rounds: int, seconds: float) -> dict[str, Sample]:
    """Every job, lineage off and on in turn, until the rounds are done or the time is over."""
    samples = {job: Sample({mode: [] for mode in MODES}) for job in JOBS}
    began = time.monotonic()
    for turn in range(rounds):
        passed = time.monotonic() - began
        if turn > 1 and passed + passed / turn > seconds:
            break
        for job in JOBS:
            for mode in MODES if turn % 2 else MODES[::-1]:
                samples[job].seconds[mode].append(bench.run(job, mode, topic, count))
    return samples


def rows(samples: dict[str, Sample], count: int) -> list[dict[str, Any]]:
    found = []
    for job, sample in samples.items():
        off, on = (statistics.median(sample.seconds[mode]) for mode in MODES)
        ratio, low, high = interval(sample.seconds["off"], sample.seconds["on"])
        found.append(
            {
                "to": TARGETS[job],
                "orders": count,
                "rounds": len(sample.seconds["off"]),
                "rows/s off": round(count / off),
                "rows/s on": round(count / on),
                "on / off": round(ratio, 3),
                "95 %": [round(low, 3), round(high, 3)],
            }
        )
    return found


def scale(bench: Bench, lab: Lab, topics: dict[int, str], sizes: list[int]) -> list[dict[str, Any]]:
    """Lineage on, more and more data."""
    found = []
    for size in sizes:
        topic = topics.get(size) or topics.setdefault(size, fill(lab, size))
        for job in JOBS:
            seconds = bench.run(job, "on", topic, size)
            figures = {"seconds": round(seconds, 1), "rows/s on": round(size / seconds)}
            found.append({"to": TARGETS[job], "orders": size, **figures})
    return found


def show(title: str, found: list[dict[str, Any]]) -> None:
    table = Table(*found[0], title=title)
    for row in found:
        table.add_row(
            *("{} to {}".format(*v) if isinstance(v, list) else
              f"{v:,}" if isinstance(v, int) else str(v) for v in row.values())
        )  # fmt: skip
    Console(width=110).print(table)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--orders", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument(
        "--minutes", type=float, default=10.0, help="fewer rounds if they take longer"
    )
    arguments.add_argument("--scale", default="1,2,4", help="times the orders; empty for none")
    arguments.add_argument("--write", action="store_true", help="keep the result for the docs")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the lab is stopped all the same
    sizes = [int(given.orders * float(part)) for part in given.scale.split(",") if part]
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        work = Path(folder)
        lab = Lab(work / "lab")
        lab.up(SERVICES)
        try:
            os.environ |= {**lab.env(), "HEADWATER_STATE_DIR": str(work / "state")}
            topics = {given.orders: fill(lab, given.orders)}
            bench = Bench(lab, work)
            seconds = given.minutes * 60
            topic = topics[given.orders]
            compare(bench, topic, given.orders, WARM, seconds)
            compared = compare(bench, topic, given.orders, given.rounds, seconds)
            grown = scale(bench, lab, topics, sizes)
            bench.spark.stop()
        finally:
            lab.down()
    found = {"lineage": rows(compared, given.orders) if given.rounds else [], "scale": grown}
    if given.write:
        keep("pipeline", **found)
    if given.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    for title, part in found.items():
        if part:
            show(title, part)


if __name__ == "__main__":
    main()
