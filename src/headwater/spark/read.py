"""Plans to lineage: what the listeners call, each bounded in size and time and never raising."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.naming import redact
from headwater.spark.ddl import read_change
from headwater.spark.faults import without_plan
from headwater.spark.jvm import World, attempt, option
from headwater.spark.lineage import Composer
from headwater.spark.model import Dataset, PlanLineage
from headwater.spark.sinks import read_sink
from headwater.spark.writes import Write, read_write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from headwater.spark.plan import Known

__all__ = ["join_batch_to_stream", "read_batch", "read_streaming"]

SECONDS = 10.0
_REMEMBERED = 5000

log = logging.getLogger("headwater.spark")
_memory: dict[str, dict[int, Known]] = {}


def read_batch(spark: SparkSession, execution: Any, *, seconds: float = SECONDS) -> PlanLineage:
    """The lineage of a JVM `QueryExecution`, without running anything in Spark."""
    return _guarded(lambda: _batch(spark, execution, {}, seconds))


def join_batch_to_stream(
    spark: SparkSession, execution: Any, stream: PlanLineage, *, seconds: float = SECONDS
) -> PlanLineage:
    """The lineage of a batch inside `foreachBatch`, from the stream's sources to its outputs."""
    known = stream.frontier if isinstance(stream.frontier, dict) else {}
    return _guarded(lambda: _batch(spark, execution, known, seconds))


def read_streaming(spark: SparkSession, query: Any, *, seconds: float = SECONDS) -> PlanLineage:
    """The lineage of a JVM `StreamingQuery`, readable as soon as it has started."""
    return _guarded(lambda: _streaming(spark, query, seconds))


def _batch(
    spark: SparkSession, execution: Any, known: Mapping[int, Known], seconds: float
) -> PlanLineage:
    world = World(spark)
    plan = execution.analyzed()
    sql = _sql(execution)
    if (change := read_change(world, plan)) is not None:
        operation, dataset = change
        outputs: tuple[Dataset, ...] = (dataset,) if dataset is not None else ()
        problems = tuple(world.problems)
        return PlanLineage(outputs=outputs, operation=operation, sql=sql, problems=problems)
    composer = Composer(world, seconds, {**_remembered(spark), **known})
    write = read_write(world, plan)
    if write is None:
        found = composer.compose(composer.query(plan, Write("")), Write(""))
        _remember(spark, found)
        return msgspec.structs.replace(found, sql=sql)
    if write.operation == "append" and sql.lstrip()[:5].lower() == "merge":
        write = write._replace(operation="merge_into_table")
    query = composer.query(write.query, write)
    return msgspec.structs.replace(composer.compose(query, write), sql=sql)


def _streaming(spark: SparkSession, query: Any, seconds: float) -> PlanLineage:
    world = World(spark)
    running = attempt(query, "streamingQuery") or query
    sink = read_sink(world, running)
    composer = Composer(world, seconds, {})
    operation = "foreach_batch" if sink.foreach_batch else "write_stream"
    write = Write(operation, outputs=sink.outputs, options=sink.options)
    return composer.compose(composer.query(running.analyzedPlan(), write), write)


def _guarded(read: Callable[[], PlanLineage]) -> PlanLineage:
    start = time.monotonic()
    try:
        found = read()
    except Exception as error:  # noqa: BLE001
        said = redact(without_plan(str(error)))
        log.debug("a plan could not be read: %s", said)
        told = f"the plan could not be read: {type(error).__name__}: {said[:200]}"
        found = PlanLineage(problems=(told,))
    return msgspec.structs.replace(found, seconds=time.monotonic() - start)


def _sql(execution: Any) -> str:
    try:
        found = option(execution.logical().origin().sqlText())
    except Exception:  # noqa: BLE001
        return ""
    return str(found) if found else ""


def _remembered(spark: SparkSession) -> dict[int, Known]:
    return _memory.get(str(spark.sparkContext.applicationId), {})


def _remember(spark: SparkSession, found: PlanLineage) -> None:
    """Keep what a query's columns are: a checkpoint goes on under the same numbers."""
    application = str(spark.sparkContext.applicationId)
    if application not in _memory:
        _memory.clear()
    kept = _memory.setdefault(application, {})
    kept.update(found.frontier or {})
    while len(kept) > _REMEMBERED:
        kept.pop(next(iter(kept)))
