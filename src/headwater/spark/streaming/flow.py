"""Flow samples (records/s, lag) of streaming queries, posted every ten seconds and never retried."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from headwater.emit.flow import DatasetRef, Direction, FlowReporter, FlowSample
from headwater.emit.run_emitter import given_seconds
from headwater.lineage.writer import stamp
from headwater.spark import dataset_overrides

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.emit.journal import Journal
    from headwater.lineage.model import Dataset
    from headwater.spark.streaming.runs import QueryRun

SECONDS = given_seconds("HEADWATER_FLOW_SECONDS", 10.0)
TIMEOUT = 2.0


class FlowSamples:
    """Posts what the open queries of an application read and write."""

    def __init__(self, journal: Journal) -> None:
        self._reporter = FlowReporter(journal.destinations, TIMEOUT)

    def post(self, queries: Iterable[QueryRun]) -> None:
        """Send a sample of each query that has made progress."""
        self._reporter.post([sample for query in queries for sample in samples_of(query)])


def samples_of(query: QueryRun) -> list[FlowSample]:
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
        seconds = (progress.duration or 0) / 1000
        rate = round(progress.written / seconds, 3) if seconds else 0.0
        found.append(sample(outputs[0], "output", rate))
    return found
