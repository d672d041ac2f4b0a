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
    return dict(item.split("#", 1) for item in split(text) if "#" in item)


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
    """Containers to the topics that the map gives them."""
    return Reading(
        tuple(Origin(topic, cosmos_place(plan, name)) for topic, name in _containers(plan).items())
    )


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
         "azure.cosmos.source.containers.topicMap"),
        source=cosmos_source, stores="Azure Cosmos DB",
    ),
)  # fmt: skip
