"""What Headwater takes of a job's own thread, and of the worker's, for one call and one plan."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import headwater.spark
from headwater.spark.driver.calls import EntryPointCalls
from headwater.spark.plan.plan_lineage import read_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

CALLS = 100
PLANS = 21


def delays(spark: SparkSession) -> list[float]:
    """Milliseconds that each of many small writes waits for us, on the thread that makes it."""
    found: list[float] = []
    plain = EntryPointCalls.around

    def timed(self: EntryPointCalls, entry: Any, owner: Any, call: Callable[[], Any]) -> Any:
        inside = 0.0

        def clocked() -> Any:
            nonlocal inside
            began = time.perf_counter()
            try:
                return call()
            finally:
                inside = time.perf_counter() - began

        began = time.perf_counter()
        try:
            return plain(self, entry, owner, clocked)
        finally:
            found.append((time.perf_counter() - began - inside) * 1000)

    EntryPointCalls.around = timed  # type: ignore[method-assign]
    headwater.spark.attach(spark)
    try:
        for _ in range(CALLS):
            spark.range(10).write.format("noop").mode("overwrite").save()
    finally:
        headwater.spark.detach(spark)
        EntryPointCalls.around = plain  # type: ignore[method-assign]
    return found


def plans(spark: SparkSession, work: str) -> tuple[int, list[float]]:
    """How many nodes a long plan has, and milliseconds that the worker reads it for."""
    from pyspark.sql import functions as F  # noqa: N812

    spark.range(1).selectExpr("id", "id price").write.parquet(f"{work}/plan")
    frame = spark.read.parquet(f"{work}/plan")
    for number in range(100):
        frame = frame.withColumn("price", F.col("price") + number).where(F.col("id") > number)
    execution = frame._jdf.queryExecution()  # noqa: SLF001
    read = [read_batch(spark, execution) for _ in range(PLANS)]
    return read[0].nodes, [one.seconds * 1000 for one in read]


def costs(spark: SparkSession, work: str) -> list[dict[str, Any]]:
    """Both, as rows of a table."""
    waited = sorted(delays(spark))
    nodes, took = plans(spark, work)
    return [
        {
            "what": "wait of the job's thread for one call, ms",
            "times": len(waited),
            "median": round(statistics.median(waited), 2),
            "95th of 100": round(waited[int(len(waited) * 0.95)], 2),
            "bound": 10,
        },
        {
            "what": f"reading a plan of {nodes} nodes, on the worker's thread, ms",
            "times": len(took),
            "median": round(statistics.median(took), 1),
            "95th of 100": round(sorted(took)[int(len(took) * 0.95)], 1),
            "bound": 240,
        },
    ]
