"""What a connector that is not deployed would report, from what a person gives on the command line."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from openlineage.client.uuid import generate_new_uuid

from headwater.connect.commands.connector_file import connector_in, read_connector, variables_in
from headwater.connect.config import read_text
from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.metadata import NoMetadata, TopicSchema
from headwater.connect.run_event import run_event
from headwater.errors import UsageError
from headwater.lineage.model import Evidence
from headwater.lineage.openlineage.events import EventType
from headwater.lineage.schema import (
    Schema,
    SchemaError,
    read_avro,
    read_connect,
    read_json_schema,
    read_protobuf,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from headwater.connect.model import Connector, Derived, Role
    from headwater.lineage.naming import DatasetName

HEARTBEAT = 300
MOST_DATASETS = 200
MOST_COLUMNS = 500
MOST_VARIABLES = 50


class GivenMetadata(NoMetadata):
    """A Kafka address and schemas that a person typed, or that `known_from` says where they are from."""

    def __init__(
        self,
        bootstrap: str | None,
        schema_of: Callable[[str], Schema | None],
        known_from: Evidence = Evidence("option", "--schema"),  # noqa: B008  (frozen)
    ) -> None:
        self.bootstrap = bootstrap or None
        self.bootstraps = (bootstrap,) if bootstrap else ()
        self._schema_of = schema_of
        self._known_from = known_from

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        """The schema given for the topic."""
        schema = self._schema_of(topic)
        return TopicSchema(schema, evidence=self._known_from) if schema else None


def preview_file(
    path: Path,
    *,
    role: Role | None,
    topics: tuple[str, ...],
    bootstrap: str | None,
    schemas: Mapping[str, Path],
    namespace: str,
) -> tuple[Derived, dict[str, Any]]:
    """The lineage of the connector in a file, and the START event that it would send."""
    connector = read_connector(path)
    connector = replace(
        connector,
        type=role or connector.type,
        active_topics=topics,
        topics_given="--topics" if topics else "",
    )
    known = {topic: _schema_file(file) for topic, file in schemas.items()}
    return preview(connector, GivenMetadata(bootstrap, known.get), DeriveSettings(namespace))


def preview(
    connector: Connector, metadata: GivenMetadata, settings: DeriveSettings | None = None
) -> tuple[Derived, dict[str, Any]]:
    """The lineage of a connector, and the START event that it would send."""
    derived = derive(connector, metadata, settings or DeriveSettings())
    return derived, run_event(
        derived,
        connector,
        run_id=str(generate_new_uuid()),
        state=EventType.START,
        time=datetime.now(timezone.utc),
        heartbeat=HEARTBEAT,
    )


def preview_text(
    text: str, bootstrap: str, schema_of: Callable[[str], Schema | None]
) -> dict[str, Any]:
    """The lineage of a connector that somebody pasted, as the page of connectors shows it."""
    connector = connector_in(text)
    known_from = Evidence("server", "the topic's schema as it is known")
    derived, _ = preview(connector, GivenMetadata(bootstrap, schema_of, known_from))
    # The variables of who deploys it are not the server's.
    unfilled = [
        f"${{{name}}} is not filled in here; headwater connect apply does, from its environment"
        for name in variables_in(connector)[:MOST_VARIABLES]
    ]
    edges = []
    for edge in derived.edges[:MOST_DATASETS]:
        columns = derived.columns_of(edge)
        pairs = None if columns is None else [[source.field, column] for source, column in columns]
        edges.append(
            {
                "input": _named(edge.input),
                "output": _named(edge.output),
                "columns": pairs if pairs is None else pairs[:MOST_COLUMNS],
                "evidence": [f"{one.source}: {one.detail}" for one in edge.evidence],
            }
        )
    return {
        "name": derived.job.name,
        "family": derived.family,
        "type": derived.role,
        "inputs": [_named(one.id) for one in derived.lineage.inputs[:MOST_DATASETS]],
        "outputs": [_named(one.id) for one in derived.lineage.outputs[:MOST_DATASETS]],
        "edges": edges,
        "problems": [*derived.lineage.problems, *unfilled],
    }


def _named(dataset: DatasetName) -> dict[str, str]:
    return {"namespace": dataset.namespace, "name": dataset.name}


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


def _schema_file(path: Path) -> Schema:
    try:
        return read_schema(read_text(path, "--schema "))
    except SchemaError as error:
        raise UsageError(f"--schema {path}: {error}") from None
