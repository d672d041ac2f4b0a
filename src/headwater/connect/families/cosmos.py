"""Azure Cosmos DB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.values import split

from .base import Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_COSMOS = (
    "connect.cosmos.connection.endpoint", "connect.cosmos.databasename",
    "connect.cosmos.containers.topicmap",
)  # fmt: skip
_AZURE = "azure.cosmos.account.endpoint"


def _containers(plan: Plan) -> dict[str, str]:
    """`topic#container` pairs by topic."""
    text = plan.get("connect.cosmos.containers.topicmap", "azure.cosmos.sink.containers.topicMap",
                    "azure.cosmos.source.containers.topicMap")  # fmt: skip
    return {
        topic.strip(): name.strip()
        for topic, mark, name in (item.partition("#") for item in split(text))
        if mark
    }


def cosmos_place(plan: Plan, container: str) -> Place | None:
    """A container of a database."""
    host = plan.get("connect.cosmos.connection.endpoint", "azure.cosmos.account.endpoint")
    database = plan.get("connect.cosmos.databasename", "azure.cosmos.sink.database.name",
                        "azure.cosmos.source.database.name")  # fmt: skip
    return plan.place("cosmos", host=host, database=database, table=container)


def cosmos_sink(plan: Plan, topic: str) -> list[Place]:
    """The container that the map gives the topic."""
    container = _containers(plan).get(topic)
    if not container:
        plan.problem(f"no container is mapped to the topic {topic}")
        return []
    place = cosmos_place(plan, container)
    return [place] if place else []


def cosmos_source(plan: Plan) -> Reading:
    """Containers to the topics that the map gives them; with the newer keys, else to their own."""
    mapped = {name: topic for topic, name in _containers(plan).items()}
    every = plan.flag("azure.cosmos.source.containers.includeAll")
    listed = [] if every else plan.names("azure.cosmos.source.containers.includedList")
    names = listed or list(mapped)
    if every and not plan.connector.active_topics:
        plan.problem("azure.cosmos.source.containers.includeAll: no topic was seen yet")

    def reverse(topic: str) -> Place | None:
        return cosmos_place(plan, topic) if every and topic not in mapped.values() else None

    origins = (Origin(mapped.get(name, name), cosmos_place(plan, name)) for name in names)
    return Reading(tuple(origins), reverse if every else None)


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
