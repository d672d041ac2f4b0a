"""Where table formats play: one session, steps one after the other, and the true name of each place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import headwater.spark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Job = Callable[["Stage"], None]

NOTHING = "nothing"
"""The truth of a step that is no lineage at all."""


class Step(NamedTuple):
    """A piece of work and its truth; `end` is how its run ends, `stream` what it is a run of."""

    name: str
    truth: str
    job: Job
    end: str = "COMPLETE"
    stream: bool = False


class Steps:
    """The steps of one table format."""

    def __init__(self) -> None:
        self.all: list[Step] = []

    def __call__(
        self, truth: str, *, end: str = "COMPLETE", stream: bool = False
    ) -> Callable[[Job], Job]:
        """Make a function a step."""

        def register(job: Job) -> Job:
            assert all(known.name != job.__name__ for known in self.all), job.__name__
            self.all.append(Step(job.__name__, truth, job, end, stream))
            return job

        return register


class Stage:
    """What a step gets: a session, and names for what it reads and writes."""

    def __init__(self, spark: SparkSession, folder: Path, events: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.names: dict[str, str] = {}
        self.words: dict[str, str] = {}
        self.step = ""
        self.first = 0
        self._events = events

    def path(self, name: str) -> str:
        """A folder of this step, and its true name."""
        path = f"{self.folder}/lake/{self.step}/{name}"
        self.names[path] = name
        return path

    def table(self, name: str) -> str:
        """A table of this step in the session's catalog, and its true name."""
        self.names[f"{self.folder}/warehouse/{self.step}_{name}"] = name
        return f"{self.step}_{name}"

    def sql(self, text: str, **names: str) -> DataFrame:
        """SQL with `{out}` as the table of this step."""
        return self.spark.sql(text.format(out=self.table("out"), **names))

    def begin(self) -> None:
        """What comes from here on is judged; what was before only prepared it."""
        self.first = self.lines()

    def lines(self) -> int:
        """How many events there are once all is told."""
        assert headwater.spark.flush(60)
        return len(self._events.read_text().splitlines()) if self._events.exists() else 0

    def bounded(self, writer: Any) -> Any:
        """A writer of a stream that ends when it has read what is there."""
        state = f"{self.folder}/state/{self.step}"
        return writer.option("checkpointLocation", state).trigger(availableNow=True)

    def play(self, step: Step) -> dict[str, Any]:
        """Play one step: which of the events are its own, and what went wrong in it."""
        self.step, self.names, self.words, self.first = step.name, {}, {}, self.lines()
        error = ""
        try:
            step.job(self)
        except Exception as raised:  # noqa: BLE001
            error = f"{type(raised).__name__}: {raised}"[:3000]
        return {
            "first": self.first,
            "last": self.lines(),
            "error": error,
            "names": self.names,
            "words": self.words,
        }


def play(stage: Stage, steps: list[Step], told: Path) -> None:
    """Play all steps, and leave word of each."""
    played = {step.name: stage.play(step) for step in steps}
    told.write_text(json.dumps(played))
