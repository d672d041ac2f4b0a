"""Queues and streams of others: Pub/Sub, IBM MQ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.family import (
    UNKNOWN,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context


def pubsub(context: Context, prefix: str, kind: str) -> ExternalDataset | None:
    """A topic or a subscription of Pub/Sub."""
    name = context.get(f"{prefix}.{kind}", f"gcp.pubsub.{kind}.id")
    project = context.get(f"{prefix}.project", "gcp.pubsub.project.id")
    store, part = ("pubsub", "topic") if kind == "topic" else ("pubsub_subscription", kind)
    place = context.place(store, "STREAM", **{"project": project, part: name})
    return place.with_columns(UNKNOWN) if place else None


def pubsub_sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Every topic to one of Pub/Sub."""
    place = pubsub(context, "cps", "topic")
    return [place] if place else []


def lite_sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Every topic to one of Pub/Sub Lite."""
    place = pubsub(context, "pubsublite", "topic")
    return [place] if place else []


def pubsub_source(context: Context) -> SourceLineage:
    """A subscription to a topic."""
    return _reading(context, pubsub(context, "cps", "subscription"))


def lite_source(context: Context) -> SourceLineage:
    """A subscription of Pub/Sub Lite to a topic."""
    return _reading(context, pubsub(context, "pubsublite", "subscription"))


def mq_place(context: Context) -> ExternalDataset | None:
    """A queue of a queue manager."""
    queue = context.get("mq.queue", "jms.destination.name")
    place = context.place(
        "ibmmq", "STREAM", host=context.get("mq.connection.name.list", "mq.hostname"),
        port=context.get("mq.port"), queue_manager=context.get("mq.queue.manager"), queue=queue,
    )  # fmt: skip
    return place.with_columns(UNKNOWN) if place else None


def mq_source(context: Context) -> SourceLineage:
    """A queue to a topic."""
    return _reading(context, mq_place(context))


def mq_sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Every topic to one queue."""
    place = mq_place(context)
    return [place] if place else []


def _reading(context: Context, place: ExternalDataset | None) -> SourceLineage:
    topics = context.names("kafka.topic", "topic")
    return SourceLineage(tuple(SourceTopic(topic, place) for topic in topics), place=place)


_CPS = ("cps.project", "cps.topic", "cps.subscription", "kafka.topic")
_LITE = ("pubsublite.project", "pubsublite.topic", "pubsublite.subscription", "kafka.topic")
_MQ = ("mq.connection.name.list", "mq.hostname", "mq.port", "mq.queue.manager", "mq.queue",
       "jms.destination.name")  # fmt: skip
PLUGINS = (
    Plugin(
        "pubsub", ("com.google.pubsub.kafka.sink.CloudPubSubSinkConnector",), "sink",
        ("cps.project", "cps.topic", "gcp.pubsub.project.id", "gcp.pubsub.topic.id"),
        sink=pubsub_sink, stores="Pub/Sub",
    ),
    Plugin(
        "pubsub",
        ("com.google.pubsub.kafka.source.CloudPubSubSourceConnector", "PubSubSource",
         "io.confluent.connect.gcp.pubsub.PubSubSourceConnector"),
        "source",
        (*_CPS, "gcp.pubsub.project.id", "gcp.pubsub.subscription.id", "topic"),
        source=pubsub_source, stores="Pub/Sub",
    ),
    Plugin(
        "pubsub", ("com.google.pubsublite.kafka.sink.PubSubLiteSinkConnector",), "sink",
        ("pubsublite.project", "pubsublite.topic"), sink=lite_sink, stores="Pub/Sub Lite",
    ),
    Plugin(
        "pubsub", ("com.google.pubsublite.kafka.source.PubSubLiteSourceConnector",), "source",
        (*_LITE, "topic"), source=lite_source, stores="Pub/Sub Lite",
    ),
    Plugin(
        "ibmmq",
        ("com.ibm.eventstreams.connect.mqsource.MQSourceConnector", "IbmMQSource",
         "io.confluent.connect.ibm.mq.IbmMQSourceConnector"),
        "source", (*_MQ, "kafka.topic", "topic"), source=mq_source, stores="IBM MQ",
    ),
    Plugin(
        "ibmmq", ("com.ibm.eventstreams.connect.mqsink.MQSinkConnector",), "sink", _MQ,
        sink=mq_sink, stores="IBM MQ",
    ),
)  # fmt: skip
