"""What goes into a connector's lineage and what comes out of it: plain values, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, Protocol, runtime_checkable

import msgspec

from headwater.lineage.facets import Transformation
from headwater.lineage.naming import DatasetName
from headwater.lineage.schema import Schema

Role = Literal["source", "sink"]
Source = Literal[
    "runtime topics", "config key", "broker topics", "schema registry", "catalog",
    "user mapping", "rule",
]  # fmt: skip


class Table(msgspec.Struct, frozen=True):
    """A table as its catalog shows it now."""

    location: str
    schema: Schema | None = None


class Connector(msgspec.Struct, frozen=True):
    """A connector as Connect shows it; `active_topics` is what `/topics` answered."""

    name: str
    type: Role | None
    config: Mapping[str, str]
    active_topics: tuple[str, ...] = ()

    @property
    def connector_class(self) -> str:
        """The plug-in: a Java class, or the name of one of Confluent Cloud's managed plug-ins."""
        return self.config.get("connector.class", "").strip()


class TopicSchema(msgspec.Struct, frozen=True):
    """What a registry, or a sampled record, says of a topic's value and key."""

    value: Schema | None = None
    key: Schema | None = None
    value_version: str = ""
    key_version: str = ""
    value_subject: str = ""
    key_subject: str = ""
    sampled: bool = False


@runtime_checkable
class World(Protocol):
    """What can be asked of the outside; None always means that nobody knows."""

    @property
    def bootstrap(self) -> str | None:
        """The bootstrap servers of the Kafka cluster that this Connect cluster works on."""

    @property
    def cluster_id(self) -> str | None:
        """The id of that Kafka cluster."""

    @property
    def bootstraps(self) -> tuple[str, ...]:
        """Every address that cluster is known by."""

    def topics(self) -> Collection[str] | None:
        """The names of the cluster's topics."""

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        """The schemas of a topic as this connector's converters would find them."""

    def table(self, catalog: Mapping[str, str], name: str) -> Table | None:
        """A table as an Iceberg catalog shows it; `catalog` holds the properties of the client."""


class Unknown:
    """A world of which nothing is known; also the base of worlds that know only something."""

    bootstrap: str | None = None
    cluster_id: str | None = None
    bootstraps: tuple[str, ...] = ()

    def topics(self) -> Collection[str] | None:
        """Nobody can list the topics."""
        return None

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        """Nobody knows the schema."""
        return None

    def table(self, catalog: Mapping[str, str], name: str) -> Table | None:
        """Nobody can reach the catalog."""
        return None


class Rule(msgspec.Struct, frozen=True):
    """One entry of a user's mapping file: which classes, and the templates of their datasets."""

    classes: str
    inputs: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    topics: str = ""
    family: str = ""


class Settings(msgspec.Struct, frozen=True):
    """How one Connect cluster's connectors are to be read."""

    namespace: str = "default"
    rules: tuple[Rule, ...] = ()
    internal: bool = False
    """Whether bookkeeping connectors (MirrorMaker's heartbeats and checkpoints) show datasets."""


class Evidence(msgspec.Struct, frozen=True):
    """Where a fact came from, and whether it was seen or worked out."""

    source: Source
    detail: str
    observed: bool = False


class Symlink(msgspec.Struct, frozen=True):
    """Another name of the same dataset."""

    namespace: str
    name: str
    type: str = "TABLE"


class Catalog(msgspec.Struct, frozen=True):
    """The catalog that keeps a table, as OpenLineage's catalog facet has it."""

    framework: str
    type: str
    name: str
    metadata_uri: str = ""
    warehouse_uri: str = ""


class Dataset(msgspec.Struct, frozen=True):
    """A dataset that a connector reads or writes."""

    namespace: str
    name: str
    kind: str = ""
    sub_kind: str = ""
    schema: Schema | None = None
    version: str = ""
    symlinks: tuple[Symlink, ...] = ()
    catalog: Catalog | None = None
    cluster_id: str = ""
    bootstraps: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def id(self) -> DatasetName:
        """Namespace and name, by which edges point at it."""
        return DatasetName(self.namespace, self.name)


class ColumnEdge(msgspec.Struct, frozen=True):
    """One column of the input that one column of the output comes from."""

    input: str
    output: str
    transformation: Transformation


class Edge(msgspec.Struct, frozen=True):
    """One input that feeds one output; `columns` is None when nobody knows them."""

    input: DatasetName
    output: DatasetName
    columns: tuple[ColumnEdge, ...] | None = None
    evidence: tuple[Evidence, ...] = ()


class Derived(msgspec.Struct, frozen=True):
    """The lineage of one connector: whole as far as it goes, and honest about where it ends."""

    family: str
    namespace: str
    job_name: str
    role: Role | None = None
    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    edges: tuple[Edge, ...] = ()
    documentation: str = ""
    owners: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    sql: str = ""
    problems: tuple[str, ...] = ()
    internal: bool = False
    joined: str = ""
    """Which other producer of OpenLineage reports under the same job, such as Debezium itself."""

    @property
    def version(self) -> str:
        """A hash of all of it: another value means that there is something to report."""
        import hashlib

        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:32]


class Task(msgspec.Struct, frozen=True):
    """One task as `/status` shows it."""

    id: int
    state: str
    worker_id: str = ""
    version: str = ""
    trace: str = ""


class Status(msgspec.Struct, frozen=True):
    """A connector as `/status` shows it."""

    state: str
    worker_id: str = ""
    version: str = ""
    trace: str = ""
    tasks: tuple[Task, ...] = ()

    @property
    def workers(self) -> tuple[str, ...]:
        """Where its parts run."""
        return (self.worker_id, *(task.worker_id for task in self.tasks))


class Failure(msgspec.Struct, frozen=True):
    """Why a run failed: one line, and the trace below it."""

    message: str
    stack_trace: str = ""
