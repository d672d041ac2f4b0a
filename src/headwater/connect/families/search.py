"""Search and log stores: Elasticsearch, OpenSearch, Splunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.plan import templated
from headwater.connect.values import pairs

from .base import Place, Plugin

if TYPE_CHECKING:
    from headwater.connect.plan import Plan


def index_name(topic: str) -> str:
    """A topic as an index: lower case, no leading - or _, at most 255 characters."""
    return topic.lower().lstrip("-_")[:255]


def elasticsearch_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped resource, a data stream, or an index named like the topic."""
    mapped = pairs(plan.get("topic.to.external.resource.mapping", "topic.index.map"), ":")
    kind = plan.get("data.stream.type").lower()
    dataset = plan.get("data.stream.dataset")
    index = mapped.get(topic) or index_name(topic)
    if not mapped.get(topic) and kind not in ("", "none") and dataset:
        space = templated(plan.get("data.stream.namespace", default="${topic}"), topic)
        index = f"{kind}-{dataset}-{space}".lower()
    place = plan.place("elasticsearch", host=plan.get("connection.url"), index=index)
    return [place] if place else []


def opensearch_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped resource, a data stream with its prefix, or an index named like the topic."""
    mapped = pairs(plan.get("topic.to.existing.resource.mapping"), ":")
    index = mapped.get(topic) or index_name(topic).replace(":", "_")
    if topic not in mapped and plan.flag("data.stream.enabled"):
        prefix = plan.get("data.stream.prefix")
        index = f"{prefix}-{index}" if prefix else index
    place = plan.place("opensearch", host=plan.get("connection.url"), index=index)
    return [place] if place else []


def splunk_sink(plan: Plan, topic: str) -> list[Place]:
    """Indexes stand in the order of the topics; one alone is for all."""
    indexes, topics = plan.names("splunk.indexes"), plan.names("topics")
    if not indexes:
        plan.problem("splunk.indexes: the collector's own default index is not known here")
        return []
    position = topics.index(topic) if topic in topics else 0
    index = indexes[position] if position < len(indexes) and len(indexes) > 1 else indexes[0]
    place = plan.place("splunk", "", host=plan.get("splunk.hec.uri"), index=index)
    return [place] if place else []


PLUGINS = (
    Plugin(
        "elasticsearch",
        ("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector", "ElasticsearchSink"),
        "sink",
        ("connection.url", "data.stream.type", "data.stream.dataset", "data.stream.namespace",
         "topic.to.external.resource.mapping", "topic.index.map"),
        sink=elasticsearch_sink, stores="Elasticsearch",
    ),
    Plugin(
        "opensearch", ("io.aiven.kafka.connect.opensearch.OpenSearchSinkConnector",), "sink",
        ("connection.url", "data.stream.enabled", "data.stream.prefix",
         "topic.to.existing.resource.mapping"),
        sink=opensearch_sink, stores="OpenSearch",
    ),
    Plugin(
        "splunk", ("com.splunk.kafka.connect.SplunkSinkConnector", "SplunkSink"), "sink",
        ("splunk.hec.uri", "splunk.indexes", "topics"), sink=splunk_sink, stores="Splunk",
    ),
)  # fmt: skip
