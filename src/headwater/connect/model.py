"""A connector as Connect shows it, and the lineage derived from it: plain values, no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

import msgspec

from headwater.lineage.model import ColumnSource, Edge, Job, Lineage

Role = Literal["source", "sink"]
UNKNOWN_FAMILY = "unknown"
# Java's own limit is far above what anybody writes.
MAX_CLASS = 500
DEBEZIUM, TRANSFORM = "debezium", "transform"


class Connector(msgspec.Struct, frozen=True):
    """A connector's configuration; `active_topics` is what `/topics` answered."""

    name: str
    type: Role | None
    config: Mapping[str, str]
    active_topics: tuple[str, ...] = ()
    topics_given: str = ""
    """The option by which a person gave `active_topics`, where Connect was not asked."""

    @property
    def connector_class(self) -> str:
        """The plug-in: a Java class, or the name of one of Confluent Cloud's managed plug-ins."""
        return self.config.get("connector.class", "").strip()[:MAX_CLASS]


class Task(msgspec.Struct, frozen=True):
    """One task as `/status` shows it."""

    id: int
    state: str
    worker_id: str = ""
    version: str = ""
    trace: str = ""


class ConnectorStatus(msgspec.Struct, frozen=True):
    """A connector as `/status` shows it."""

    state: str
    worker_id: str = ""
    version: str = ""
    trace: str = ""
    tasks: tuple[Task, ...] = ()
    planned: tuple[int, ...] = ()
    """The tasks that are configured; one that is just starting has no status yet."""

    @property
    def starting(self) -> bool:
        """Whether a configured task has no status yet."""
        return not {task.id for task in self.tasks}.issuperset(self.planned)

    def has_task(self, number: int) -> bool:
        """Whether there is such a task, or will be."""
        return number in self.planned or any(task.id == number for task in self.tasks)

    @property
    def workers(self) -> tuple[str, ...]:
        """The workers that run the connector and its tasks."""
        return (self.worker_id, *(task.worker_id for task in self.tasks))


class Derived(msgspec.Struct, frozen=True):
    """The lineage derived for one connector, and the job that it is reported as."""

    job: Job
    lineage: Lineage = Lineage(edges=())
    family: str = UNKNOWN_FAMILY
    role: Role | None = None
    internal: bool = False
    """Whether it only keeps the books of another connector, as MirrorMaker's heartbeats do."""
    joined: str = ""
    """Which other producer reports under the same job: Debezium itself, or a lineage transform."""

    @property
    def version(self) -> str:
        """A hash of all of it: another value means that there is something to report."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:32]

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Which input feeds which output; a connector's pairs are always known."""
        return self.lineage.edges or ()

    def columns_of(self, edge: Edge) -> list[tuple[ColumnSource, str]] | None:
        """Each input column of an edge with the output column it enters; None when not known."""
        if not edge.columns_known:
            return None
        columns = self.lineage.columns.get(edge.output)
        return [
            (source, name)
            for name, sources in (columns.fields if columns else {}).items()
            for source in sources
            if source.dataset == edge.input
        ]


def job_of(namespace: str, name: str, family: str = UNKNOWN_FAMILY) -> Job:
    """The streaming job that a connector is reported as."""
    kind = family.upper().replace(" ", "_")
    return Job(namespace, name, "STREAMING", "KAFKA_CONNECT", kind)
