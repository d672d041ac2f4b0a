"""A streaming query: one start of it is one run, from its sources to its sink."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.emit import event
from headwater.spark import facets, names, progress

if TYPE_CHECKING:
    from headwater.emit.ends import Ending
    from headwater.emit.life import Life
    from headwater.spark.application import Application
    from headwater.spark.model import PlanLineage

BOUNDED = ("AvailableNow", "OneTime", "Once")
BATCHES_READ = 3


class Query:
    """One run of a streaming query."""

    def __init__(self, application: Application, query: Any, function: str) -> None:
        self._app = application
        self.renames = application.settings.renames
        self.java = query
        self.spark_run = str(query.runId().toString())
        execution = query.streamingQuery() if _has_wrapper(query) else query
        self.batches = "ForeachBatch" in str(execution.sink().getClass().getName())
        self.session = str(execution.sparkSessionForStream().sessionUUID())
        self.bounded = str(execution.trigger().toString()).startswith(BOUNDED)
        self.lineage = application.reader.streaming(query)
        self.progress: progress.Progress | None = None
        self.stopped = False
        self._batches: dict[str, int] = {}
        self._sources: PlanLineage = self.lineage
        self._topics: frozenset[str] = frozenset()
        self._function = function
        name = query.name() or self._unnamed()
        self.life: Life | None = application.child(str(name), "STREAMING", "STREAMING_QUERY")
        if self.life is not None:
            self._tell()
            self.life.start()

    @property
    def ref(self) -> Any:
        """The run as others name it."""
        assert self.life is not None
        return self.life.ref

    def look(self) -> None:
        """Take in the latest progress; new topics are told at once."""
        latest = self.java.lastProgress()
        if latest is None:
            return
        self.progress = progress.read(str(latest.json()))
        topics = self.progress.topics
        if self._topics and topics - self._topics:
            self._reread()
        self._topics = self._topics | topics

    def wrote(self, execution: Any) -> None:
        """A batch inside `foreachBatch` has run a command: what it wrote is the query's output."""
        node = str(execution.logical().nodeName())
        count = self._batches[node] = self._batches.get(node, 0) + 1
        # Every batch runs the same code: later ones are read now and then, to see a change.
        if count > BATCHES_READ and count & (count - 1):
            return
        found = self._app.reader.join(execution, self._sources)
        if not found.outputs:
            return
        before = {one.id: one for one in (*self.lineage.inputs, *self.lineage.outputs)}
        if all(one.id in before for one in (*found.inputs, *found.outputs)) and all(
            self.lineage.columns.get(key) == value for key, value in found.columns.items()
        ):
            return
        self.lineage = merged(self.lineage, found)
        self._tell()
        if self.life is not None:
            self.life.running(self._facets())

    def beat(self, age: float) -> None:
        """Say that the query still runs, with where it has got to."""
        if self.life is not None and event.now() - self.life.told >= age:
            self.life.running(self._facets())

    def end(self, ending: Ending) -> None:
        """Say how the query ended."""
        if self.life is not None:
            self.life.end(ending, self._facets())

    def _reread(self) -> None:
        found = self._app.reader.streaming(self.java)
        if not found.inputs:
            return
        self._sources = found
        kept = [one for one in self.lineage.outputs if one not in found.outputs]
        self.lineage = merged(found, replace(self.lineage, inputs=(), outputs=tuple(kept)))
        self._tell()
        if self.life is not None:
            self.life.running(self._facets())

    def _facets(self) -> dict[str, Any]:
        return {"headwater_streaming": self.progress.facet} if self.progress else {}

    def _tell(self) -> None:
        if self.life is not None:
            self.life.inputs = facets.inputs(self.lineage, self._app.settings)
            self.life.outputs = facets.outputs(self.lineage, self._app.settings)
            self.life.run_facets.update(facets.problems(self.lineage))

    def _unnamed(self) -> str:
        sink = next(iter(self.lineage.outputs), None)
        if sink is not None:
            return names.plain(self._app.settings, "streaming", names.short(sink))
        if self._function:
            return names.plain(self._app.settings, "foreach_batch", names.snake(self._function))
        source = next(iter(self.lineage.inputs), None)
        return names.plain(
            self._app.settings, "streaming", "from_" + names.short(source) if source else ""
        )


def _has_wrapper(query: Any) -> bool:
    return "Wrapper" in str(query.getClass().getSimpleName())


def merged(first: PlanLineage, second: PlanLineage) -> PlanLineage:
    """Two readings of one job as one: what the second says of a dataset stands."""

    def union(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple({one.id: one for one in (*a, *b)}.values())

    return replace(
        first,
        inputs=union(first.inputs, second.inputs),
        outputs=union(first.outputs, second.outputs),
        columns={**first.columns, **second.columns},
        problems=tuple(dict.fromkeys((*first.problems, *second.problems))),
    )
