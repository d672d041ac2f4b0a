"""Web endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.context import templated
from headwater.connect.derive.family import (
    UNKNOWN,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context


def endpoint(context: Context, url: str) -> ExternalDataset | None:
    """The address without user, query and fragment."""
    if not url:
        context.problem("no key names the endpoint")
        return None
    text = url if "://" in url else f"https://{url}"
    place = context.uri(text, "")
    return place.with_columns(UNKNOWN) if place else None


def sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The endpoint, which may hold the topic's name."""
    url = context.get("http.api.url", "http.url", "connect.http.endpoint")
    place = endpoint(context, templated(url, topic))
    return [place] if place else []


def generic_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """Several endpoints below one base, each for its own topics."""
    base = context.get("http.api.base.url").rstrip("/")
    found = []
    for number in _numbers(context):
        topics = context.names(f"api{number}.topics")
        if topics and topic not in topics:
            continue
        path = templated(context.get(f"api{number}.http.api.path"), topic)
        place = endpoint(context, f"{base}/{path.lstrip('/')}") if base else None
        found += [place] if place else []
    return found


def source(context: Context) -> SourceLineage:
    """One endpoint to the topics named."""
    url = context.get("url", "http.request.url", "http.api.url")
    topics = context.names("kafka.topic", "topic", "topic.name.pattern")
    mark = "${entityName}"
    if any(mark in topic for topic in topics) and (entities := context.names("entity.names")):
        return SourceLineage(tuple(
            SourceTopic(topic.replace(mark, entity), endpoint(context, url.replace(mark, entity)))
            for topic in topics for entity in entities
        ))  # fmt: skip
    place = endpoint(context, url)
    named = [topic for topic in topics if "${" not in topic]
    return SourceLineage(tuple(SourceTopic(topic, place) for topic in named), place=place)


def generic_source(context: Context) -> SourceLineage:
    """Several endpoints below one base, each to its own topic."""
    base = context.get("http.api.base.url").rstrip("/")
    origins = []
    for number in _numbers(context):
        path = context.get(f"api{number}.http.api.path")
        place = endpoint(context, f"{base}/{path.lstrip('/')}") if base else None
        origins += [SourceTopic(topic, place) for topic in context.names(f"api{number}.topics")]
    return SourceLineage(tuple(origins))


def _numbers(context: Context) -> range:
    count = context.get("apis.num", default="1")
    return range(1, (min(int(count), 64) if count.isdigit() else 1) + 1)


_CONFLUENT = "io.confluent.connect.http."
_GENERIC = ("http.api.base.url", "apis.num", "api*.http.api.path", "api*.topics")
PLUGINS = (
    Plugin(
        "http",
        (f"{_CONFLUENT}HttpSinkConnector", "HttpSink",
         "io.aiven.kafka.connect.http.HttpSinkConnector",
         "io.lenses.streamreactor.connect.http.sink.HttpSinkConnector"),
        "sink", ("http.api.url", "http.url", "connect.http.endpoint"), sink=sink,
        stores="HTTP endpoint",
    ),
    Plugin(
        "http", (f"{_CONFLUENT}sink.GenericHttpSinkConnector", "HttpSinkV2"), "sink", _GENERIC,
        sink=generic_sink, stores="HTTP endpoint",
    ),
    Plugin(
        "http",
        (f"{_CONFLUENT}HttpSourceConnector", "HttpSource",
         "com.github.castorm.kafka.connect.http.HttpSourceConnector"),
        "source",
        ("url", "http.request.url", "http.api.url", "kafka.topic", "topic", "topic.name.pattern",
         "entity.names"),
        source=source, stores="HTTP endpoint",
    ),
    Plugin(
        "http", (f"{_CONFLUENT}source.GenericHttpSourceConnector", "HttpSourceV2"), "source",
        _GENERIC, source=generic_source, stores="HTTP endpoint",
    ),
)  # fmt: skip
