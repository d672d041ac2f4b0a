"""Search and log stores: Elasticsearch, OpenSearch, Splunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import pairs
from headwater.connect.derive.context import templated
from headwater.connect.derive.family import ExternalDataset, Plugin

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context


def index_name(topic: str) -> str:
    """A topic as an index: lower case, at most 255 characters, one leading - or _ less."""
    name = topic.lower()[:255]
    name = name[1:] if name.startswith(("-", "_")) else name
    return name.replace(".", "dot") if name in (".", "..") else name


def elasticsearch_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The mapped resource, a data stream, or an index named like the topic."""
    kind = context.get("data.stream.type").lower()
    dataset = context.get("data.stream.dataset")
    index = pairs(context.get("topic.index.map"), ":").get(topic) or index_name(topic)
    if kind not in ("", "none") and dataset:
        space = templated(context.get("data.stream.namespace", default="${topic}"), topic.lower())
        index = f"{kind}-{dataset}-{space[:100]}"
    mapped = pairs(context.get("topic.to.external.resource.mapping"), ":")
    if mapped and context.get("external.resource.usage").lower() != "disabled":
        index = mapped.get(topic, "")
    if not index:
        context.problem(f"topic.to.external.resource.mapping has none for the topic {topic}")
        return []
    place = context.place("elasticsearch", host=context.get("connection.url"), index=index)
    return [place] if place else []


def opensearch_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The mapped resource, a data stream with its prefix, or an index named like the topic."""
    mapped = pairs(context.get("topic.to.existing.resource.mapping"), ":")
    index = mapped.get(topic) or index_name(topic).replace(":", "_")
    if topic not in mapped and context.flag("data.stream.enabled"):
        prefix = context.get("data.stream.prefix")
        index = f"{prefix}-{index}" if prefix else index
    place = context.place("opensearch", host=context.get("connection.url"), index=index)
    return [place] if place else []


def splunk_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """Indexes stand in the order of the topics; one alone is for all."""
    indexes, topics = context.names("splunk.indexes"), context.names("topics")
    if not indexes:
        context.problem("splunk.indexes: the collector's own default index is not known here")
        return []
    if len(indexes) > 1 and (len(indexes) != len(topics) or topic not in topics):
        context.problem("splunk.indexes: not one for all topics, nor one for each")
        return []
    index = indexes[topics.index(topic)] if len(indexes) > 1 else indexes[0]
    place = context.place("splunk", "", host=context.get("splunk.hec.uri"), index=index)
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
