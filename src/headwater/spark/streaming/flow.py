"""Flow samples (records/s, lag) of streaming queries, posted every ten seconds and never retried."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from headwater.emit.flow import DatasetRef, Direction, FlowReporter, FlowSample
from headwater.emit.run_emitter import given_seconds
from headwater.lineage.openlineage.writer import stamp
from headwater.spark import dataset_overrides

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from headwater.emit.journal import Journal
    from headwater.lineage.model import Dataset
    from headwater.lineage.naming import DatasetName
    from headwater.spark.streaming.runs import QueryRun

SECONDS = given_seconds("HEADWATER_FLOW_SECONDS", 10.0)
TIMEOUT = 2.0


class FlowSamples:
    """Posts what the open queries of an application read and write."""

    def __init__(self, journal: Journal) -> None:
        self._reporter = FlowReporter(journal.destinations, TIMEOUT)
        self._written = WriteRates()

    def post(self, queries: Iterable[QueryRun]) -> None:
        """Send a sample of each query that has made progress."""
        running = list(queries)
        found = [sample for query in running for sample in samples_of(query, self._written)]
        self._written.forget_others({query.spark_run for query in running})
        self._reporter.post(found)


class WriteRates:
    """Rows a second that commands inside `foreachBatch` write, by how their sums grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: dict[tuple[str, DatasetName], tuple[float, int]] = {}

    def rate(self, run: str, dataset: DatasetName, rows: int) -> float | None:
        """The rate since the last call; None for the first."""
        now, before = self._clock(), self._before.get((run, dataset))
        self._before[run, dataset] = (now, rows)
        if before is None or now <= before[0] or rows < before[1]:
            return None
        return round((rows - before[1]) / (now - before[0]), 3)

    def forget_others(self, runs: Collection[str]) -> None:
        """Keep the sums of these runs only."""
        self._before = {key: seen for key, seen in self._before.items() if key[0] in runs}


def samples_of(query: QueryRun, written: WriteRates) -> list[FlowSample]:
    """What one query reads and writes, dataset by dataset."""
    progress = query.progress
    if progress is None or query.life is None or query.life.over:
        return []
    moment = stamp(datetime.now(timezone.utc))

    def sample(
        one: Dataset, direction: Direction, rate: float | None, lag: Any = None
    ) -> FlowSample:
        reported = dataset_overrides.dataset(one, query.settings.renames)
        ref = DatasetRef(reported.namespace, reported.name)
        return FlowSample(
            query.ref.run_id, ref, direction, moment, records_per_second=rate, lag=lag
        )

    found = []
    by_topic = {topic: source for source in progress.sources for topic in source.topics}
    for one in query.lineage.inputs:
        source = by_topic.get(one.name)
        if source is not None:
            rate = source.rate if len(source.topics) == 1 else None
            found.append(sample(one, "input", rate, source.topics[one.name].get("lag")))
    outputs = query.lineage.outputs
    if len(outputs) == 1 and progress.written is not None:
        if progress.write_rate is not None:
            found.append(sample(outputs[0], "output", progress.write_rate))
        return found
    counts = query.counted()[1]
    for one in outputs:
        rows = counts.get(one.id, {}).get("rowCount")
        if rows is not None:
            rate = written.rate(query.spark_run, one.id, rows)
            if rate is not None:
                found.append(sample(one, "output", rate))
    return found
