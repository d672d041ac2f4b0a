"""How much a streaming query has read and written since it started, by dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headwater.lineage.model import Dataset
    from headwater.lineage.naming import DatasetName
    from headwater.spark.model import PlanLineage
    from headwater.spark.streaming.progress import Offsets, Progress, SourceProgress

    Initial = Callable[[str], Offsets]


class QueryStatistics:
    """Counts of one run of a query: records by Kafka's offsets, other rows by adding batches.

    `initial` gives the offsets that a source of a new checkpoint starts from, by its description:
    Spark's report of the first micro-batch does not have them. A count that is not exact is left out.
    """

    def __init__(self, initial: Initial) -> None:
        self._initial = initial
        self.batch = -1
        """The last micro-batch that was counted."""
        self._started: dict[str, Offsets] = {}
        self._ended: dict[str, Offsets] = {}
        self._rows: dict[str, int] = {}
        self._written: int | None = None
        self._missed = False
        self.outputs: dict[DatasetName, dict[str, int]] = {}
        """What commands inside `foreachBatch` wrote."""

    def add(self, reports: Iterable[Progress]) -> None:
        """Count the micro-batches of these reports that were not counted yet, in their order."""
        for report in reports:
            if report.batch <= self.batch:
                continue
            # A run that goes on from a checkpoint begins with any number.
            self._missed |= self.batch >= 0 and report.batch > self.batch + 1
            self.batch = report.batch
            for source in report.sources:
                self._add_source(source)
            if report.written is not None:
                self._written = (self._written or 0) + report.written

    def _add_source(self, source: SourceProgress) -> None:
        name = source.description
        self._rows[name] = self._rows.get(name, 0) + source.rows
        if not source.end:
            return
        if name not in self._started:
            self._started[name] = source.start or self._initial(name)
        self._ended[name] = source.end

    def add_written(self, counts: Mapping[DatasetName, Mapping[str, int]]) -> None:
        """Add what one command of a micro-batch wrote."""
        for dataset, count in counts.items():
            known = self.outputs.setdefault(dataset, {})
            for key, value in count.items():
                known[key] = known.get(key, 0) + value

    def read(self, lineage: PlanLineage) -> dict[DatasetName, dict[str, int]]:
        """Rows read so far, by input."""
        found: dict[DatasetName, dict[str, int]] = {}
        topics = self._records()
        for one in lineage.inputs:
            if one.type == "TOPIC":
                rows = topics.get(one.name)
            else:
                rows = None if self._missed else self._of_source(one, lineage)
            if rows is not None:
                found[one.id] = {"rowCount": rows}
        return found

    def written(self, lineage: PlanLineage) -> dict[DatasetName, dict[str, int]]:
        """Rows written so far, by output; a sink of Spark's first API does not count them."""
        if self.outputs:
            return self.outputs
        if self._written is None or self._missed or len(lineage.outputs) != 1:
            return {}
        return {lineage.outputs[0].id: {"rowCount": self._written}}

    def _records(self) -> dict[str, int]:
        """Records by topic: how far each partition has come."""
        found: dict[str, int] = {}
        for name, ended in self._ended.items():
            started = self._started[name]
            for topic, ends in ended.items():
                if topic in started or started:
                    # A partition that was added later is read from its beginning.
                    starts = started.get(topic, {})
                    rows = sum(end - starts.get(part, 0) for part, end in ends.items())
                elif len(ended) == 1 and not self._missed:
                    rows = self._rows[name]
                else:
                    continue
                found[topic] = found.get(topic, 0) + rows
        return found

    def _of_source(self, dataset: Dataset, lineage: PlanLineage) -> int | None:
        """The rows of the source that a dataset is: the only one, or the one that names it."""
        others = [name for name in self._rows if name not in self._ended]
        named = [name for name in others if dataset.name in name]
        if not named and len(self._rows) == len(lineage.inputs) == 1:
            named = others
        return self._rows[named[0]] if len(named) == 1 else None
