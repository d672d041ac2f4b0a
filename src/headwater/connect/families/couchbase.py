"""Couchbase."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.values import pairs
from headwater.lineage import naming

from .base import Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_COUCHBASE = ("couchbase.seed.nodes", "couchbase.bucket", "couchbase.scope")


def couchbase_place(plan: Plan, name: str) -> Place | None:
    """A collection, written `scope.collection` or `bucket.scope.collection`."""
    *bucket, scope, last = naming.split_identifier(name) if name else ("_default", "_default")
    host = plan.get("couchbase.seed.nodes")
    return plan.place(
        "couchbase", host=host, bucket=".".join(bucket) or plan.get("couchbase.bucket"),
        scope=scope, collection=last,
    )  # fmt: skip


def couchbase_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped collection, or the default one."""
    mapped = pairs(plan.get("couchbase.topic.to.collection"), "=")
    own = f"couchbase.default.collection[{topic}]"
    name = plan.get(own) or mapped.get(topic) or plan.get("couchbase.default.collection")
    if name and len(naming.split_identifier(name)) not in (2, 3):
        plan.problem("a collection is written scope.collection or bucket.scope.collection")
        return []
    place = couchbase_place(plan, name)
    return [place] if place else []


def couchbase_source(plan: Plan) -> Reading:
    """The collections listed, each to a topic that may be named after it; else those seen."""
    shape = plan.get("couchbase.topic", default="${bucket}.${scope}.${collection}")
    bucket, only = plan.get("couchbase.bucket"), plan.get("couchbase.scope")
    shape = shape.replace("${bucket}", bucket)
    listed = [n for n in plan.names("couchbase.collections") if re.fullmatch(r"[^.]+\.[^.]+", n)]
    if listed:
        return Reading(tuple(
            Origin(shape.replace("${scope}", scope).replace("${collection}", last),
                   couchbase_place(plan, f"`{scope}`.`{last}`"))
            for scope, last in (name.split(".") for name in listed)
        ))  # fmt: skip
    plan.problem("couchbase.collections: every collection is read, and none is named")
    if "${" not in shape:
        return Reading((Origin(shape),))
    parts = re.split(r"(\$\{scope\}|\$\{collection\})", shape)
    expression = ""
    for part in parts:
        name = part[2:-1] if part in ("${scope}", "${collection}") else ""
        again = f"(?P<{name}>" in expression
        group = f"(?P={name})" if again else f"(?P<{name}>[A-Za-z0-9_%-]+)"
        expression += group if name else re.escape(part)

    def reverse(topic: str) -> Place | None:
        found = re.fullmatch(expression, topic)
        scope = (found.groupdict().get("scope") or only) if found else ""
        last = found.groupdict().get("collection") if found else ""
        if not (scope and last) or (only and scope != only):
            return None
        return couchbase_place(plan, f"`{scope}`.`{last}`")

    return Reading(reverse=reverse)


PLUGINS = (
    Plugin(
        "couchbase", ("com.couchbase.connect.kafka.CouchbaseSinkConnector", "CouchbaseSink"),
        "sink",
        (*_COUCHBASE, "couchbase.topic.to.collection", "couchbase.default.collection",
         "couchbase.default.collection[*]"),
        sink=couchbase_sink, stores="Couchbase",
    ),
    Plugin(
        "couchbase", ("com.couchbase.connect.kafka.CouchbaseSourceConnector", "CouchbaseSource"),
        "source", (*_COUCHBASE, "couchbase.collections", "couchbase.topic"),
        source=couchbase_source, stores="Couchbase",
    ),
)  # fmt: skip
