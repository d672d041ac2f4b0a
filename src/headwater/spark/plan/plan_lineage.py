"""Plans to lineage: what the listeners call, each bounded in size and time and never raising."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from headwater.lineage.naming import redact
from headwater.spark.error_text import without_plan
from headwater.spark.jvm import JvmSession, attempt
from headwater.spark.model import PlanLineage
from headwater.spark.plan import multi_insert, rdds
from headwater.spark.plan.compose import Composer
from headwater.spark.plan.ddl import read_change
from headwater.spark.plan.refused import parsed, read_refused
from headwater.spark.plan.sinks import read_sink
from headwater.spark.plan.writes import Write, read_writes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from headwater.lineage.model import Dataset
    from headwater.spark.plan.operators import KnownColumn

__all__ = ["join_batch_to_stream", "read_batch", "read_rdd", "read_statement", "read_streaming"]

SECONDS = 10.0
_REMEMBERED = 5000
_HEAD = ("logical.origin.sqlText", "logical.nodeName", "analyzed.getClass.getName")

log = logging.getLogger("headwater.spark")
_memory: WeakKeyDictionary[SparkContext, dict[int, KnownColumn]] = WeakKeyDictionary()


def read_batch(spark: SparkSession, execution: Any, *, seconds: float = SECONDS) -> PlanLineage:
    """The lineage of a JVM `QueryExecution`, without running anything in Spark."""
    return _guarded(lambda: _batch(spark, execution, {}, seconds))


def read_statement(spark: SparkSession, sql: str, method: str = "") -> PlanLineage:
    """What a statement that failed before it was analyzed would have written, from its text."""
    session = JvmSession(spark)
    return _guarded(lambda: read_refused(session, parsed(session, sql), method))


def read_rdd(spark: SparkSession, rdd: Any, path: str, operation: str) -> PlanLineage:
    """The lineage of an RDD of Python's that is written to a path."""
    return _guarded(lambda: rdds.saved(JvmSession(spark), rdd, path, operation))


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
    spark: SparkSession, execution: Any, known: Mapping[int, KnownColumn], seconds: float
) -> PlanLineage:
    session = JvmSession(spark)
    session.execution = execution
    sql, top, name = session.texts(execution, *_HEAD)
    if name is None:
        found = read_refused(session, execution.logical())
        if not found.operation:
            execution.analyzed()  # raises what is wrong
    else:
        composer = Composer(session, seconds, {**_remembered(spark), **known})
        node = name[name.rfind(".") + 1 :]
        found = _analyzed(composer, execution.analyzed(), node, sql or "")
    if not found.operation:
        _remember(spark, found)
    return msgspec.structs.replace(found, sql=sql or "", node=top or "")


def _analyzed(composer: Composer, plan: Any, node: str, sql: str) -> PlanLineage:
    session = composer.session
    if (change := read_change(session, plan, node)) is not None:
        operation, dataset = change
        outputs: tuple[Dataset, ...] = (dataset,) if dataset is not None else ()
        return PlanLineage(outputs=outputs, operation=operation, problems=tuple(session.problems))
    writes = read_writes(session, plan, node)
    if not writes:
        return composer.compose(composer.query(plan, Write("")), Write(""))
    if writes[0].operation == "append" and sql.lstrip()[:5].lower() == "merge":
        writes[0] = writes[0]._replace(operation="merge_into_table")
    return multi_insert.together(
        [composer.compose(composer.query(write.query, write), write) for write in writes]
    )


def _streaming(spark: SparkSession, query: Any, seconds: float) -> PlanLineage:
    session = JvmSession(spark)
    running = attempt(query, "streamingQuery") or query
    sink = read_sink(session, running)
    composer = Composer(session, seconds, {})
    operation = "foreach_batch" if sink.foreach_batch else "write_stream"
    write = Write(operation, outputs=sink.outputs, options=sink.options)
    return composer.compose(composer.query(running.analyzedPlan(), write), write)


def _guarded(read: Callable[[], PlanLineage]) -> PlanLineage:
    start = time.monotonic()
    try:
        found = read()
    except Exception as error:  # noqa: BLE001
        text = redact(without_plan(str(error)))
        log.debug("a plan could not be read: %s", text)
        problem = f"the plan could not be read: {type(error).__name__}: {text[:200]}"
        found = PlanLineage(problems=(problem,))
    return msgspec.structs.replace(found, seconds=time.monotonic() - start)


def _remembered(spark: SparkSession) -> dict[int, KnownColumn]:
    return _memory.get(spark.sparkContext, {})


def _remember(spark: SparkSession, found: PlanLineage) -> None:
    """Keep what a query's columns are: a checkpoint goes on under the same numbers."""
    kept = _memory.setdefault(spark.sparkContext, {})
    kept.update(found.frontier or {})
    while len(kept) > _REMEMBERED:
        kept.pop(next(iter(kept)))
