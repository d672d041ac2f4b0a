"""Couchbase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.values import pairs

from .base import Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_COUCHBASE = ("couchbase.seed.nodes", "couchbase.bucket", "couchbase.scope")


def couchbase_place(plan: Plan, name: str) -> Place | None:
    """A collection, written `scope.collection`."""
    scope, _, last = name.partition(".")
    if not last:
        scope, last = plan.get("couchbase.scope", default="_default"), name or "_default"
    host = plan.get("couchbase.seed.nodes")
    return plan.place("couchbase", host=host, bucket=plan.get("couchbase.bucket"), scope=scope,
                      collection=last)  # fmt: skip


def couchbase_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped collection, or the default one."""
    mapped = pairs(plan.get("couchbase.topic.to.collection"), "=:")
    name = mapped.get(topic) or plan.get("couchbase.default.collection")
    place = couchbase_place(plan, name.removeprefix(f"{plan.get('couchbase.bucket')}."))
    return [place] if place else []


def couchbase_source(plan: Plan) -> Reading:
    """Collections, or the whole bucket, to a topic that may be named after them."""
    names = plan.names("couchbase.collections") or [plan.get("couchbase.scope")]
    shape = plan.get("couchbase.topic", default="${bucket}.${scope}.${collection}")
    origins = []
    for name in names:
        place = couchbase_place(plan, name)
        scope, _, last = name.partition(".")
        topic = shape.replace("${bucket}", plan.get("couchbase.bucket"))
        topic = topic.replace("${scope}", scope or "_default")
        topic = topic.replace("${collection}", last or "_default")
        origins.append(Origin(topic, place))
    return Reading(tuple(origins))


PLUGINS = (
    Plugin(
        "couchbase", ("com.couchbase.connect.kafka.CouchbaseSinkConnector", "CouchbaseSink"),
        "sink",
        (*_COUCHBASE, "couchbase.topic.to.collection", "couchbase.default.collection"),
        sink=couchbase_sink, stores="Couchbase",
    ),
    Plugin(
        "couchbase", ("com.couchbase.connect.kafka.CouchbaseSourceConnector", "CouchbaseSource"),
        "source", (*_COUCHBASE, "couchbase.collections", "couchbase.topic"),
        source=couchbase_source, stores="Couchbase",
    ),
)  # fmt: skip
