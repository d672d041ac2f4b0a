"""Metadata from the services that are there: Kafka, schema registries, Iceberg catalogs."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from headwater.connect.derive.metadata import TopicSchema
from headwater.connect.model import Connector
from headwater.connect.services.kafka import KafkaError
from headwater.connect.services.registry import RegisteredSchema, SchemaRegistry
from headwater.connect.services.subjects import candidates, registry_of
from headwater.lineage.schema import (
    Field,
    Schema,
    SchemaError,
    SchemaOrigin,
    read_connect,
    topic_schema,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from headwater.connect.derive.metadata import CatalogTable
    from headwater.connect.services.endpoint import Endpoint
    from headwater.connect.services.iceberg_catalog import Catalogs
    from headwater.connect.services.kafka import KafkaAdmin, KafkaCluster

SAMPLE_FRESH = 300.0


class LiveMetadata:
    """Kafka, the schema registry and Iceberg catalogs, as far as they are known and answer."""

    def __init__(
        self,
        *,
        kafka: KafkaAdmin | None = None,
        registry: SchemaRegistry | None = None,
        catalogs: Catalogs | None = None,
        bootstrap: str | None = None,
        sample: bool = False,
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.kafka = kafka
        self.registry = registry
        self.catalogs = catalogs
        self.sample = sample
        self.defaults = dict(defaults or {})
        self.connect_cluster_id: str | None = None
        self._bootstrap = bootstrap
        self._registries: dict[Endpoint, SchemaRegistry] = {}
        self._sampled: dict[str, tuple[Schema | None, Schema | None, float]] = {}
        self._lock = threading.Lock()

    @property
    def bootstrap(self) -> str | None:
        """The bootstrap servers of the Kafka cluster that this Connect cluster works on."""
        return self._bootstrap or (self.kafka.bootstrap if self.kafka else None)

    @property
    def cluster_id(self) -> str | None:
        """The id of that Kafka cluster, from Connect's root resource, else from the broker."""
        if self.connect_cluster_id:
            return self.connect_cluster_id
        return self._cluster().id if self.kafka else None

    @property
    def bootstraps(self) -> tuple[str, ...]:
        """Every address that cluster is known by; raises KafkaError when the broker does not answer."""
        if self.kafka:
            self._cluster()
            return self.kafka.bootstraps
        return tuple(self._bootstrap.split(",")) if self._bootstrap else ()

    def topics(self) -> Collection[str] | None:
        """The names of the cluster's topics."""
        return self._cluster().topics if self.kafka else None

    def _cluster(self) -> KafkaCluster:
        assert self.kafka is not None
        found = self.kafka.cluster
        if found is None:
            raise KafkaError(self.kafka.problem or "Kafka was not asked yet")
        return found

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        """The schemas of a topic by the registry, else by a record if that was allowed.

        Raises RegistryError when the registry should know and cannot be asked.
        """
        connector = self._with_defaults(connector)
        value = self._registered(topic, connector, "value")
        key = self._registered(topic, connector, "key")
        if value or key:
            return TopicSchema(
                value=_union(value),
                key=_union(key),
                value_version=_versions(value),
                key_version=_versions(key),
                value_subject=",".join(r.subject for r in value),
                key_subject=",".join(r.subject for r in key),
                origins=(*_origins(value, "value"), *_origins(key, "key")),
            )
        return self._from_record(topic, connector) if self.sample and self.kafka else None

    def table(self, catalog: Mapping[str, str], name: str) -> CatalogTable | None:
        """A table as an Iceberg catalog shows it."""
        return self.catalogs.table(catalog, name) if self.catalogs else None

    @property
    def problems(self) -> dict[str, str]:
        """What cannot be asked now, by kind."""
        with self._lock:
            registries = [*([self.registry] if self.registry else []), *self._registries.values()]
        found = {
            "kafka": self.kafka.problem if self.kafka else "",
            "consumer groups": self.kafka.groups_problem if self.kafka else "",
            "transactional producers": self.kafka.producers_problem if self.kafka else "",
            "registry": "; ".join(r.problem for r in registries if r.problem),
            "catalog": self.catalogs.problem if self.catalogs else "",
        }
        return {kind: problem for kind, problem in found.items() if problem}

    def close(self) -> None:
        """Let go of connections."""
        for registry in [self.registry, *self._registries.values()]:
            if registry:
                registry.close()
        if self.catalogs:
            self.catalogs.close()

    def _with_defaults(self, connector: Connector) -> Connector:
        if not self.defaults:
            return connector
        merged = {**self.defaults, **connector.config}
        return Connector(connector.name, connector.type, merged, connector.active_topics)

    def _registry_for(self, connector: Connector, side: str) -> SchemaRegistry | None:
        endpoint = registry_of(connector, side)
        if self.registry:
            login = self._login(self.registry.endpoint, connector)
            if login is None:
                return self.registry
            endpoint = login
        if endpoint is None:
            return None
        with self._lock:
            if endpoint not in self._registries:
                self._registries[endpoint] = SchemaRegistry(endpoint)
            return self._registries[endpoint]

    def _login(self, given: Endpoint, connector: Connector) -> Endpoint | None:
        """The given registry with the login that a connector has for it; None if none is needed."""
        if given.has_login:
            return None
        # A connector may have it for one side only, such as beside keys that are plain strings.
        for side in ("value", "key"):
            own = registry_of(connector, side)
            if own and own.has_login and given.is_at(own):
                return replace(given, username=own.username, password=own.password, token=own.token)
        return None

    def _registered(self, topic: str, connector: Connector, side: str) -> list[RegisteredSchema]:
        registry = self._registry_for(connector, side)
        if registry is None:
            return []
        names = candidates(connector, topic, side, registry.subjects)
        found = [registry.latest(name) for name in names]
        return [one for one in found if one is not None]

    def _from_record(self, topic: str, connector: Connector) -> TopicSchema | None:
        value_schema, key_schema, at = self._sampled.get(topic, (None, None, float("-inf")))
        if time.monotonic() - at > SAMPLE_FRESH:
            assert self.kafka is not None
            record = self.kafka.newest_record(topic)
            if record is None:
                return None
            value_schema, key_schema = read_record(record[1]), read_record(record[0])
            self._sampled[topic] = (value_schema, key_schema, time.monotonic())
        if value_schema is None and key_schema is None:
            return None
        return TopicSchema(value=value_schema, key=key_schema, sampled=True)


def _union(found: list[RegisteredSchema]) -> Schema | None:
    schemas = [one.schema for one in found if one.schema is not None]
    if len(schemas) <= 1:
        return schemas[0] if schemas else None
    fields: dict[str, Field] = {}
    for schema in schemas:
        for field in schema.fields:
            fields.setdefault(field.name, field)
    return Schema(tuple(fields.values()))


def _origins(found: list[RegisteredSchema], part: str) -> list[SchemaOrigin]:
    """The subjects of a topic's key or value; of several, the fields that each of them has."""
    known = [(one, one.schema) for one in found if one.schema is not None]
    origins = [SchemaOrigin("registry", one.subject, str(one.version), part) for one, _ in known]
    if part == "key" or len(known) < 2:
        return origins
    names = [tuple(f.name for f in topic_schema(schema).fields) for _, schema in known]
    return [replace(one, fields=has) for one, has in zip(origins, names, strict=True)]


def _versions(found: list[RegisteredSchema]) -> str:
    return ",".join(str(one.version) for one in found)


def read_record(raw: bytes | None) -> Schema | None:
    """The shape of one JSON record: its own schema when it carries one, else its members' types."""
    if not raw:
        return None
    try:
        data = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    if set(data) == {"schema", "payload"} and isinstance(data["schema"], dict):
        try:
            return read_connect(data)
        except SchemaError:
            return None
    return Schema(tuple(_sampled_field(name, value) for name, value in data.items()))


def _sampled_field(name: str, value: object, depth: int = 0) -> Field:
    if isinstance(value, dict) and depth < 8:
        inner = tuple(_sampled_field(k, v, depth + 1) for k, v in value.items())
        return Field(name, "struct", fields=inner)
    kinds = {bool: "boolean", int: "long", float: "double", str: "string", list: "array"}
    return Field(name, kinds.get(type(value), ""))
