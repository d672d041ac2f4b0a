"""Azure Cosmos DB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import split
from headwater.connect.derive.family import ExternalDataset, Plugin, SourceLineage, SourceTopic

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_COSMOS = (
    "connect.cosmos.connection.endpoint", "connect.cosmos.databasename",
    "connect.cosmos.containers.topicmap",
)  # fmt: skip
_AZURE = "azure.cosmos.account.endpoint"


def _containers(context: Context) -> dict[str, str]:
    """`topic#container` pairs by topic."""
    text = context.get("connect.cosmos.containers.topicmap", "azure.cosmos.sink.containers.topicMap",
                    "azure.cosmos.source.containers.topicMap")  # fmt: skip
    return {
        topic.strip(): name.strip()
        for topic, mark, name in (item.partition("#") for item in split(text))
        if mark
    }


def cosmos_place(context: Context, container: str) -> ExternalDataset | None:
    """A container of a database."""
    host = context.get("connect.cosmos.connection.endpoint", "azure.cosmos.account.endpoint")
    database = context.get("connect.cosmos.databasename", "azure.cosmos.sink.database.name",
                        "azure.cosmos.source.database.name")  # fmt: skip
    return context.place("cosmos", host=host, database=database, table=container)


def cosmos_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The container that the map gives the topic."""
    container = _containers(context).get(topic)
    if not container:
        context.problem(f"no container is mapped to the topic {topic}")
        return []
    place = cosmos_place(context, container)
    return [place] if place else []


def cosmos_source(context: Context) -> SourceLineage:
    """Containers to the topics that the map gives them; with the newer keys, else to their own."""
    mapped = {name: topic for topic, name in _containers(context).items()}
    every = context.flag("azure.cosmos.source.containers.includeAll")
    listed = [] if every else context.names("azure.cosmos.source.containers.includedList")
    names = listed or list(mapped)
    if every and not context.connector.active_topics:
        context.problem("azure.cosmos.source.containers.includeAll: no topic was seen yet")

    def reverse(topic: str) -> ExternalDataset | None:
        return cosmos_place(context, topic) if every and topic not in mapped.values() else None

    origins = (SourceTopic(mapped.get(name, name), cosmos_place(context, name)) for name in names)
    return SourceLineage(tuple(origins), reverse if every else None)


PLUGINS = (
    Plugin(
        "cosmos",
        ("com.azure.cosmos.kafka.connect.sink.CosmosDBSinkConnector",
         "com.azure.cosmos.kafka.connect.CosmosSinkConnector", "CosmosDbSink", "CosmosDbSinkV2"),
        "sink",
        (*_COSMOS, _AZURE, "azure.cosmos.sink.database.name",
         "azure.cosmos.sink.containers.topicMap"),
        sink=cosmos_sink, stores="Azure Cosmos DB",
    ),
    Plugin(
        "cosmos",
        ("com.azure.cosmos.kafka.connect.source.CosmosDBSourceConnector",
         "com.azure.cosmos.kafka.connect.CosmosSourceConnector", "CosmosDbSource",
         "CosmosDbSourceV2"),
        "source",
        (*_COSMOS, _AZURE, "azure.cosmos.source.database.name",
         "azure.cosmos.source.containers.topicMap",
         "azure.cosmos.source.containers.includedList",
         "azure.cosmos.source.containers.includeAll"),
        source=cosmos_source, stores="Azure Cosmos DB",
    ),
)  # fmt: skip
