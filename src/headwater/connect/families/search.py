"""Search and log stores: Elasticsearch, OpenSearch, Splunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.plan import templated
from headwater.connect.values import pairs

from .base import Place, Plugin

if TYPE_CHECKING:
    from headwater.connect.plan import Plan


def index_name(topic: str) -> str:
    """A topic as an index: lower case, at most 255 characters, one leading - or _ less."""
    name = topic.lower()[:255]
    name = name[1:] if name.startswith(("-", "_")) else name
    return name.replace(".", "dot") if name in (".", "..") else name


def elasticsearch_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped resource, a data stream, or an index named like the topic."""
    kind = plan.get("data.stream.type").lower()
    dataset = plan.get("data.stream.dataset")
    index = pairs(plan.get("topic.index.map"), ":").get(topic) or index_name(topic)
    if kind not in ("", "none") and dataset:
        space = templated(plan.get("data.stream.namespace", default="${topic}"), topic.lower())
        index = f"{kind}-{dataset}-{space[:100]}"
    mapped = pairs(plan.get("topic.to.external.resource.mapping"), ":")
    if mapped and plan.get("external.resource.usage").lower() != "disabled":
        index = mapped.get(topic, "")
    if not index:
        plan.problem(f"topic.to.external.resource.mapping has none for the topic {topic}")
        return []
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
    if len(indexes) > 1 and (len(indexes) != len(topics) or topic not in topics):
        plan.problem("splunk.indexes: not one for all topics, nor one for each")
        return []
    index = indexes[topics.index(topic)] if len(indexes) > 1 else indexes[0]
    place = plan.place("splunk", "", host=plan.get("splunk.hec.uri"), index=index)
    return [place] if place else []


PLUGINS = (
    Plugin(
        "elasticsearch",
        ("io.confluent.connect.elasticsearch.ElasticsearchSinkConnector", "ElasticsearchSink"),
        "sink",
        ("connection.url", "data.stream.type", "data.stream.dataset", "data.stream.namespace",
         "external.resource.usage", "topic.to.external.resource.mapping", "topic.index.map"),
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
