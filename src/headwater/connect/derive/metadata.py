"""What deriving may ask about a connector's surroundings: the port that `services` implements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from headwater.lineage.model import Evidence
from headwater.lineage.schema import Schema, SchemaOrigin

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headwater.connect.model import Connector


class TopicSchema(msgspec.Struct, frozen=True):
    """The schemas of a topic's value and key, from a registry or from a sampled record."""

    value: Schema | None = None
    key: Schema | None = None
    value_version: str = ""
    key_version: str = ""
    value_subject: str = ""
    key_subject: str = ""
    sampled: bool = False
    origins: tuple[SchemaOrigin, ...] = ()
    """The subjects that a registry answered them from."""
    evidence: Evidence | None = None
    """Where they are from, if from no registry and no record."""


class CatalogTable(msgspec.Struct, frozen=True):
    """A table as its catalog shows it now."""

    location: str
    schema: Schema | None = None
    origin: SchemaOrigin | None = None


class Metadata(Protocol):
    """Kafka, schema registry and Iceberg catalog; None always means that the answer is not known."""

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

    def table(self, catalog: Mapping[str, str], name: str) -> CatalogTable | None:
        """A table of an Iceberg catalog; `catalog` holds the properties of its client."""


class NoMetadata:
    """Nothing is known; also the base of metadata that knows a part."""

    bootstrap: str | None = None
    cluster_id: str | None = None
    bootstraps: tuple[str, ...] = ()

    def topics(self) -> Collection[str] | None:
        """The broker cannot be asked."""
        return None

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        """No registry can be asked."""
        return None

    def table(self, catalog: Mapping[str, str], name: str) -> CatalogTable | None:
        """No catalog can be asked."""
        return None
