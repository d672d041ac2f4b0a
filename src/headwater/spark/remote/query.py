"""One run of a streaming query of a Spark Connect client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.emit import event
from headwater.spark import facets, progress
from headwater.spark.remote.leaves import PATTERN

if TYPE_CHECKING:
    from headwater.emit.ends import Ending
    from headwater.emit.life import Life
    from headwater.spark.model import PlanLineage
    from headwater.spark.remote.application import RemoteApplication


class Query:
    """One run of a streaming query."""

    def __init__(
        self, application: RemoteApplication, run: str, name: str, lineage: PlanLineage
    ) -> None:
        self._app = application
        self.run = run
        self.lineage = lineage
        self.bounded = False
        self.handle: Any = None
        self.start: Any = None
        self.topics: frozenset[str] = frozenset()
        self.patterned = any(text.startswith(PATTERN) for text in lineage.problems)
        self.settled = False
        self.asked = False
        self.silent = 0
        self.progress: progress.Progress | None = None
        self.life: Life | None = application.child(name, "STREAMING", "STREAMING_QUERY")
        self.tell(lineage)

    @property
    def ref(self) -> Any:
        """The run as others name it."""
        assert self.life is not None
        return self.life.ref

    def tell(self, lineage: PlanLineage) -> None:
        """Take a reading as what the query does."""
        self.lineage = lineage
        if self.life is not None:
            settings = self._app.settings
            self.life.inputs = facets.inputs(lineage, settings)
            self.life.outputs = facets.outputs(lineage, settings)
            self.life.run_facets.pop("headwater_problems", None)
            self.life.run_facets.update(facets.problems(lineage))

    def beat(self, age: float) -> None:
        """Say that the query still runs, with where it has got to."""
        if self.life is not None and event.now() - self.life.told >= age:
            self.life.running(self.facets())

    def end(self, ending: Ending) -> None:
        """Say how the query ended."""
        if self.life is not None:
            self.life.end(ending, self.facets())

    def facets(self) -> dict[str, Any]:
        """Where the query has got to."""
        return {"headwater_streaming": self.progress.facet} if self.progress else {}
