"""What a connector that is not deployed would report, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from openlineage.client.uuid import generate_new_uuid

from headwater.errors import UsageError
from headwater.lineage.schema import (
    Schema,
    SchemaError,
    read_avro,
    read_connect,
    read_json_schema,
    read_protobuf,
)

from .derive import derive
from .event import event
from .model import Connector, Derived, Settings, TopicSchema, Unknown
from .values import normalise

if TYPE_CHECKING:
    from .model import Role

_TYPES = {"record", "enum", "fixed", "array", "map"}


class Offline(Unknown):
    """A world made of what a person typed."""

    def __init__(self, bootstrap: str | None, schemas: Mapping[str, TopicSchema]) -> None:
        self.bootstrap = bootstrap or None
        self.bootstraps = (bootstrap,) if bootstrap else ()
        self._schemas = schemas

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        """The schema given for the topic."""
        return self._schemas.get(topic)


def preview(
    document: str | bytes | Mapping[str, Any],
    *,
    type: Role | None = None,  # noqa: A002
    topics: tuple[str, ...] = (),
    bootstrap: str | None = None,
    schemas: Mapping[str, TopicSchema | Schema] | None = None,
    settings: Settings | None = None,
    time: datetime | None = None,
    run_id: str | None = None,
    heartbeat: int = 300,
) -> dict[str, Any]:
    """The START event of a connector from the document one would POST to Connect."""
    connector = read_connector(document, type, topics)
    derived = consider(connector, bootstrap=bootstrap, schemas=schemas, settings=settings)
    return event(
        derived,
        connector,
        run_id=run_id or str(generate_new_uuid()),
        state="START",
        time=time or datetime.now(timezone.utc),
        heartbeat=heartbeat,
    )


def consider(
    connector: Connector,
    *,
    bootstrap: str | None = None,
    schemas: Mapping[str, TopicSchema | Schema] | None = None,
    settings: Settings | None = None,
) -> Derived:
    """The lineage of a connector in a world that one describes by hand."""
    known = {
        topic: schema if isinstance(schema, TopicSchema) else TopicSchema(schema)
        for topic, schema in (schemas or {}).items()
    }
    return derive(connector, Offline(bootstrap, known), settings or Settings())


def read_connector(
    document: str | bytes | Mapping[str, Any],
    type_: Role | None = None,
    topics: tuple[str, ...] = (),
) -> Connector:
    """The connector in `{"name":…, "config":{…}}`, or in a configuration alone."""
    data: Any = document
    if isinstance(document, str | bytes):
        try:
            data = json.loads(document)
        except ValueError as error:
            raise UsageError(f"the connector's file is not JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise UsageError('a connector is an object such as {"name": …, "config": {…}}')
    inner = data.get("config") if isinstance(data.get("config"), Mapping | list) else data
    config = normalise(inner if inner is not data else dict(data))
    if not config.get("connector.class"):
        raise UsageError("the configuration has no connector.class")
    kind = type_ or data.get("type")
    return Connector(
        str(data.get("name") or config.get("name") or "connector"),
        kind if kind in ("source", "sink") else None,
        config,
        topics,
    )


def read_schema(text: str) -> Schema:
    """A schema in whatever format it is: Avro, JSON Schema, Connect's own, Protobuf."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return read_protobuf(text)
    try:
        data = json.loads(text)
    except ValueError as error:
        raise SchemaError(f"the schema is not JSON that can be read: {error}") from None
    if isinstance(data, dict):
        if ("schema" in data and "payload" in data) or data.get("type") == "struct":
            return read_connect(data)
        if "$schema" in data or "properties" in data or "$ref" in data:
            return read_json_schema(data)
        if isinstance(data.get("schema"), str):
            return read_schema(data["schema"])
    return read_avro(data)


def explain(derived: Derived) -> list[dict[str, str]]:
    """One row for every dataset and edge: what it is, what said so, whether it was seen."""
    rows = []
    for side, datasets in (("input", derived.inputs), ("output", derived.outputs)):
        for dataset in datasets:
            name = f"{dataset.namespace} {dataset.name}"
            rows += [_row(side, name, e.source, e.detail, e.observed) for e in dataset.evidence]
    for edge in derived.edges:
        columns = "columns unknown" if edge.columns is None else f"{len(edge.columns)} columns"
        name = f"{edge.input.name} -> {edge.output.name} ({columns})"
        rows += [_row("edge", name, e.source, e.detail, e.observed) for e in edge.evidence]
    return [*rows, *({"what": "unknown", "name": text} for text in derived.problems)]


def _row(what: str, name: str, source: str, detail: str, observed: bool) -> dict[str, str]:
    seen = "observed" if observed else "derived"
    return {"what": what, "name": name, "source": source, "detail": detail, "seen": seen}
