"""When to derive a connector's lineage again, and what to keep while a service does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.connect.services.iceberg_catalog import CatalogError
from headwater.connect.services.kafka import KafkaError
from headwater.connect.services.registry import RegistryError
from headwater.lineage.model import ColumnLineage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from headwater.connect.derive.context import DeriveSettings
    from headwater.connect.derive.metadata import CatalogTable, Metadata, TopicSchema
    from headwater.connect.model import Connector, Derived
    from headwater.lineage.model import ColumnSource, Dataset, DatasetName, Edge


class RecordedMetadata:
    """Metadata that remembers every question and its answer, to notice when an answer changes."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._asked: list[tuple[Callable[[], Any], Any]] = []
        self.gaps = False
        """Whether a schema or a table was asked for that is not there yet."""
        self.incomplete = False
        """Whether a service that should know did not answer."""
        self.retry = False
        """Whether to derive again even if that service then answers as expected.

        A catalog that does not answer leaves the planned name and columns in place; a registry or
        broker leaves a gap that any answer fills.
        """

    @property
    def bootstrap(self) -> str | None:
        found: str | None = self._record(lambda: self._metadata.bootstrap)
        return found

    @property
    def cluster_id(self) -> str | None:
        found: str | None = self._record(lambda: self._metadata.cluster_id)
        return found

    @property
    def bootstraps(self) -> tuple[str, ...]:
        found: tuple[str, ...] = self._record(lambda: self._metadata.bootstraps, ())
        return found

    def topics(self) -> Collection[str] | None:
        found: Collection[str] | None = self._record(self._metadata.topics)
        return found

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        found: TopicSchema | None = self._record(
            lambda: self._metadata.topic_schema(topic, connector)
        )
        self.gaps = self.gaps or found is None or found.value is None
        return found

    def table(self, catalog: Mapping[str, str], name: str) -> CatalogTable | None:
        kept = dict(catalog)
        found: CatalogTable | None = self._record(lambda: self._metadata.table(kept, name))
        self.gaps = self.gaps or found is None
        return found

    def changed(self) -> bool:
        """Whether an answer is another one now; a service that does not answer changed nothing."""
        for ask, before in self._asked:
            try:
                if ask() != before:
                    return True
            except (RegistryError, KafkaError, CatalogError):
                continue
        return False

    def _record(self, ask: Callable[[], Any], default: Any = None) -> Any:
        try:
            answer = ask()
        except (RegistryError, KafkaError):
            self.incomplete = self.retry = True
            answer = default
        except CatalogError:
            self.incomplete = True
            answer = default
        self._asked.append((ask, answer))
        return answer


class Derivation:
    """A connector's lineage together with the answers it was derived from."""

    def __init__(self, derived: Derived, metadata: RecordedMetadata) -> None:
        self.derived = derived
        self._metadata = metadata

    @property
    def incomplete(self) -> bool:
        """Whether a service that should know did not answer."""
        return self._metadata.incomplete

    @property
    def gaps(self) -> bool:
        """Whether a schema or a table was asked for that is not there yet."""
        return self._metadata.gaps

    def outdated(self) -> bool:
        """Whether deriving again may give another lineage."""
        return self._metadata.retry or self._metadata.changed()


def derivation(
    connector: Connector,
    metadata: Metadata,
    settings: DeriveSettings,
    derive: Callable[[Connector, Metadata, DeriveSettings], Derived],
) -> Derivation:
    """Derive a connector's lineage and keep the answers it was derived from."""
    recorded = RecordedMetadata(metadata)
    return Derivation(derive(connector, recorded, settings), recorded)


def fill_gaps(before: Derived, now: Derived) -> Derived:
    """An incomplete lineage, its gaps filled with what was known before.

    A dataset that was known and is missing now is taken for a gap too: then all is kept as it was.
    """
    old, new = before.lineage, now.lineage
    known = {dataset.id: dataset for dataset in (*old.inputs, *old.outputs)}
    if not known.keys() <= {dataset.id for dataset in (*new.inputs, *new.outputs)}:
        return before
    unanswered = {dataset.id for dataset in old.outputs if _from_catalog(dataset)}
    unanswered -= {dataset.id for dataset in new.outputs if _from_catalog(dataset)}
    edges: list[tuple[Edge, Derived]] = []
    known_edges = {(edge.input, edge.output): edge for edge in before.edges}
    for edge in now.edges:
        earlier = known_edges.get((edge.input, edge.output))
        gap = not edge.columns_known or edge.output in unanswered
        edges.append((earlier, before) if earlier and gap else (edge, now))

    def filled(dataset: Dataset) -> Dataset:
        earlier = known.get(dataset.id)
        lost_schema = earlier and dataset.schema is None and earlier.schema is not None
        return earlier if earlier and (dataset.id in unanswered or lost_schema) else dataset

    lineage = replace(
        new,
        inputs=tuple(map(filled, new.inputs)),
        outputs=tuple(
            replace(filled(output), columns=_columns(output.id, edges)) for output in new.outputs
        ),
        edges=tuple(edge for edge, _ in edges),
    )
    return replace(now, lineage=lineage)


def _columns(output: DatasetName, edges: list[tuple[Edge, Derived]]) -> ColumnLineage | None:
    """The columns of an output, those of each edge as the derivation that it was taken from has."""
    fields: dict[str, list[ColumnSource]] = {}
    for edge, derived in edges:
        if edge.output == output:
            for source, name in derived.columns_of(edge) or ():
                fields.setdefault(name, []).append(source)
    if not fields:
        return None
    return ColumnLineage({name: tuple(sources) for name, sources in fields.items()})


def _from_catalog(dataset: Dataset) -> bool:
    return any(item.source == "catalog" for item in dataset.evidence)
