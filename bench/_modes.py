"""The kinds of lineage that the Spark benchmarks compare, each put on a session and taken off again."""

# ruff: noqa: SLF001  (the JVM behind PySpark is what is measured)

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

MODES = ("off", "headwater", "jar")


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
            settle(spark)
            context._jsc.sc().removeSparkListener(listener)
    else:
        yield


def settle(spark: SparkSession) -> None:
    """Wait until everything that has happened is in the file of events, whoever tells it."""
    import headwater.spark

    context: Any = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty(15000)
    if not headwater.spark.flush(15):
        raise TimeoutError("events do not arrive")
