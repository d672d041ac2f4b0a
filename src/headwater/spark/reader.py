"""Plans read for the worker, with a breaker: what keeps costing too much is read less deeply."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.spark import read
from headwater.spark.model import PlanLineage

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.bridge import Bridge

COSTLY_SECONDS = 2.0
MOST_COSTLY = 3


class Reader:
    """Reads the plans of one application."""

    def __init__(self, bridge: Bridge) -> None:
        self._spark = bridge.spark
        self._costly = 0

    def batch(self, execution: Any) -> PlanLineage:
        """The lineage of an execution."""
        return self._timed(lambda most: read.read_batch(self._spark, execution, seconds=most))

    def streaming(self, query: Any) -> PlanLineage:
        """The lineage of a streaming query."""
        return self._timed(lambda most: read.read_streaming(self._spark, query, seconds=most))

    def join(self, execution: Any, stream: PlanLineage) -> PlanLineage:
        """The lineage of a command inside a batch of a streaming query."""
        return self._timed(
            lambda most: read.join_batch_to_stream(self._spark, execution, stream, seconds=most)
        )

    def _timed(self, reading: Callable[[float], PlanLineage]) -> PlanLineage:
        # Without time a large plan is not even taken out of the JVM: only its datasets are read.
        most = 0.0 if self._costly >= MOST_COSTLY else read.SECONDS
        began = time.monotonic()
        try:
            return reading(most)
        except Exception as error:  # noqa: BLE001
            # Life goes on without lineage.
            once.report("reading a plan", error)
            return PlanLineage()
        finally:
            if time.monotonic() - began > COSTLY_SECONDS and self._costly < MOST_COSTLY:
                self._costly += 1
                if self._costly == MOST_COSTLY:
                    once.report(
                        "reading columns costs too much here and is off; this", TimeoutError()
                    )
