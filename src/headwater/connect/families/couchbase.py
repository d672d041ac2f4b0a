"""Couchbase."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import pairs
from headwater.connect.derive.family import ExternalDataset, Plugin, SourceLineage, SourceTopic
from headwater.lineage import naming

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_COUCHBASE = ("couchbase.seed.nodes", "couchbase.bucket", "couchbase.scope")


def couchbase_place(context: Context, name: str) -> ExternalDataset | None:
    """A collection, written `scope.collection` or `bucket.scope.collection`."""
    *bucket, scope, last = naming.split_identifier(name) if name else ("_default", "_default")
    host = context.get("couchbase.seed.nodes")
    return context.place(
        "couchbase", host=host, bucket=".".join(bucket) or context.get("couchbase.bucket"),
        scope=scope, collection=last,
    )  # fmt: skip


def couchbase_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The mapped collection, or the default one."""
    mapped = pairs(context.get("couchbase.topic.to.collection"), "=")
    own = f"couchbase.default.collection[{topic}]"
    name = context.get(own) or mapped.get(topic) or context.get("couchbase.default.collection")
    if name and len(naming.split_identifier(name)) not in (2, 3):
        context.problem("a collection is written scope.collection or bucket.scope.collection")
        return []
    place = couchbase_place(context, name)
    return [place] if place else []


def couchbase_source(context: Context) -> SourceLineage:
    """The collections listed, each to a topic that may be named after it; else those seen."""
    shape = context.get("couchbase.topic", default="${bucket}.${scope}.${collection}")
    bucket, only = context.get("couchbase.bucket"), context.get("couchbase.scope")
    shape = shape.replace("${bucket}", bucket)
    listed = [n for n in context.names("couchbase.collections") if re.fullmatch(r"[^.]+\.[^.]+", n)]
    if listed:
        return SourceLineage(tuple(
            SourceTopic(shape.replace("${scope}", scope).replace("${collection}", last),
                   couchbase_place(context, f"`{scope}`.`{last}`"))
            for scope, last in (name.split(".") for name in listed)
        ))  # fmt: skip
    context.problem("couchbase.collections: every collection is read, and none is named")
    if "${" not in shape:
        return SourceLineage((SourceTopic(shape),))
    parts = re.split(r"(\$\{scope\}|\$\{collection\})", shape)
    expression = ""
    for part in parts:
        name = part[2:-1] if part in ("${scope}", "${collection}") else ""
        again = f"(?P<{name}>" in expression
        group = f"(?P={name})" if again else f"(?P<{name}>[A-Za-z0-9_%-]+)"
        expression += group if name else re.escape(part)

    def reverse(topic: str) -> ExternalDataset | None:
        found = re.fullmatch(expression, topic)
        scope = (found.groupdict().get("scope") or only) if found else ""
        last = found.groupdict().get("collection") if found else ""
        if not (scope and last) or (only and scope != only):
            return None
        return couchbase_place(context, f"`{scope}`.`{last}`")

    return SourceLineage(reverse=reverse)


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
