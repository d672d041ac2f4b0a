"""Camel's connectors: a kamelet's properties, or an endpoint's address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from headwater.connect.derive.family import ExternalDataset, Plugin, SourceLineage, SourceTopic

from .camel_stores import PATHS, SCHEMES, STORES, Options

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

FAMILY = "camel"
_BASE = "org.apache.camel.kafkaconnector."
_KAMELET = re.compile(r"^camel\.kamelet\.([a-z0-9\-]+)\.(.+)$")


def kamelet(context: Context) -> tuple[str, Options]:
    """The kamelet that the configuration's keys name, with its properties."""
    found: dict[str, dict[str, str]] = {}
    for key, value in context.config.items():
        if match := _KAMELET.match(key):
            found.setdefault(match[1], {})[match[2]] = value
    if found:
        name = max(found, key=lambda item: len(found[item]))
        return name, Options(context, found[name], f"camel.kamelet.{name}.")
    return "", Options(context, {})


def outside(context: Context, role: str) -> ExternalDataset | None:
    """The dataset at the other end of the connector."""
    name, get = kamelet(context)
    store = STORES.get(re.sub(rf"-{role}$", "", name))
    if store is None and (older := _component(context, role)):
        return older
    if store is None:
        key = f"camel.{role}.url"
        scheme, _, rest = context.get(key).partition(":")
        store = SCHEMES.get(scheme)
        if store is None:
            context.problem(
                f"the {name or scheme or 'connector'} of Camel names no dataset we know"
            )
            return None
        path, _, query = rest.lstrip("/").partition("?")
        values = {**dict(parse_qsl(query)), PATHS.get(scheme, "path"): path}
        if scheme == "file":
            values["path"] = f"/{path}" if rest.startswith("/") else path
        get = Options(context, values)
        context.used(key)
        found = store(context, get)
        for value in values:
            context.read.pop(value, None)
        return found
    return store(context, get)


def _component(context: Context, role: str) -> ExternalDataset | None:
    """A component of the time before kamelets, with its options in keys of their own."""
    package = context.connector.connector_class.removeprefix(_BASE).partition(".")[0]
    store = next((v for k, v in SCHEMES.items() if k.replace("-", "") == package), None)
    found: dict[str, tuple[str, str]] = {}
    for key, value in context.config.items():
        if match := re.match(rf"^camel\.{role}\.(?:path|endpoint)\.(\w+)$", key):
            found[match[1]] = (key, value)
    if store is None or not found:
        return None
    place = store(context, Options(context, {name: value for name, (_, value) in found.items()}))
    for name, (key, _) in found.items():
        if name in context.read:
            context.read.pop(name)
            context.used(key)
    return place


def sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Every topic to the one endpoint."""
    place = outside(context, "sink")
    return [place] if place else []


def source(context: Context) -> SourceLineage:
    """The endpoint to the topics named."""
    place = outside(context, "source")
    return SourceLineage(
        tuple(SourceTopic(topic, place) for topic in context.names("topics")), place=place
    )


PLUGINS = (
    Plugin(
        FAMILY,
        (f"{_BASE}CamelSinkConnector", f"{_BASE}awss3sink.CamelAwss3sinkSinkConnector",
         f"{_BASE}*SinkConnector"),
        "sink", ("camel.kamelet.*", "camel.sink.url", "camel.sink.path.*", "camel.sink.endpoint.*"),
        sink=sink,
        stores="S3, Google Cloud Storage, Azure Blob Storage, MongoDB, SQL, Cassandra, "
               "Elasticsearch, BigQuery, DynamoDB, SQS, SNS, Kinesis, Cosmos DB, SFTP, HTTP, MQTT, NATS",
    ),
    Plugin(
        FAMILY,
        (f"{_BASE}CamelSourceConnector", f"{_BASE}awss3source.CamelAwss3sourceSourceConnector",
         f"{_BASE}*SourceConnector"),
        "source",
        ("camel.kamelet.*", "camel.source.url", "camel.source.path.*", "camel.source.endpoint.*",
         "topics"), source=source,
        stores="as the sinks",
    ),
)  # fmt: skip
