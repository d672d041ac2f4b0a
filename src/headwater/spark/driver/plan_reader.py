"""Reads plans for the worker, with a circuit breaker: slow plans are read without their columns."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.spark.model import PlanLineage
from headwater.spark.plan import plan_lineage

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.driver.bridge import JvmBridge
    from headwater.spark.driver.wrapped_methods import EntryPoint

SLOW_SECONDS = 2.0
MAX_SLOW = 3

log = logging.getLogger("headwater.spark")


class PlanReader:
    """Reads the plans of one application."""

    def __init__(self, bridge: JvmBridge) -> None:
        self._spark = bridge.spark
        self._slow = 0

    def batch(self, execution: Any) -> PlanLineage:
        """The lineage of an execution."""
        return self._timed(
            lambda limit: plan_lineage.read_batch(self._spark, execution, seconds=limit)
        )

    def statement(self, sql: str, method: str = "") -> PlanLineage:
        """What a statement that could not be analyzed, or a writer's method that does it, would have written."""
        return plan_lineage.read_statement(self._spark, sql, method)

    def rdd(self, rdd: Any, entry: EntryPoint) -> PlanLineage:
        """The lineage of a call that writes an RDD."""
        return self._timed(
            lambda _: plan_lineage.read_rdd(self._spark, rdd, entry.target, entry.operation)
        )

    def streaming(self, query: Any) -> PlanLineage:
        """The lineage of a streaming query."""
        return self._timed(
            lambda limit: plan_lineage.read_streaming(self._spark, query, seconds=limit)
        )

    def foreach_batch(self, execution: Any, stream: PlanLineage) -> PlanLineage:
        """The lineage of a command inside a micro-batch, from the stream's sources on."""
        return self._timed(
            lambda limit: plan_lineage.join_batch_to_stream(
                self._spark, execution, stream, seconds=limit
            )
        )

    def _timed(self, reading: Callable[[float], PlanLineage]) -> PlanLineage:
        # With a limit of 0 a large plan stays in the JVM: only its datasets are read.
        limit = 0.0 if self._slow >= MAX_SLOW else plan_lineage.SECONDS
        began = time.monotonic()
        try:
            return reading(limit)
        except Exception as error:  # noqa: BLE001
            # The run is reported without lineage.
            internal_errors.report("reading a plan", error)
            return PlanLineage()
        finally:
            if time.monotonic() - began > SLOW_SECONDS and self._slow < MAX_SLOW:
                self._slow += 1
                if self._slow == MAX_SLOW:
                    log.warning(
                        "column lineage of large plans disabled for %s: %d plans took longer than "
                        "%g s to read; datasets are still reported",
                        self._spark.sparkContext.appName,
                        MAX_SLOW,
                        SLOW_SECONDS,
                    )
