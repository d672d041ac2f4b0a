"""From Kafka to Kafka: MirrorMaker 2 and Replicator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import PLACEHOLDER
from headwater.connect.derive.context import templated
from headwater.connect.derive.family import ExternalDataset, Plugin, SourceLineage, SourceTopic
from headwater.connect.derive.java_regex import literals
from headwater.lineage import naming

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_INTERNAL = re.compile(r"^mm2-|\.internal$|^heartbeats$|\.heartbeats$|^__|[-.]replica$")
_EXCLUDED = r"mm2.*\.internal,.*\.internal,.*-internal,.*\.replica,__.*"


def mirror_source(context: Context) -> SourceLineage:
    """Topics of the source cluster under the name that the replication policy gives them."""
    context.target = _target(context, "target.cluster.bootstrap.servers")
    alias = context.get("source.cluster.alias", default="source")
    policy = context.get("replication.policy.class").rpartition(".")[2]
    mark = context.get("replication.policy.separator", default=".")
    prefix = "" if policy == "IdentityReplicationPolicy" else f"{alias}{mark}"
    if policy not in ("", "DefaultReplicationPolicy", "IdentityReplicationPolicy"):
        context.problem("replication.policy.class: a class of the worker names the topics")
        return SourceLineage(hidden=_hidden)
    listed = context.names("topics")
    wanted = [e for item in listed or [".*"] if (e := context.expression("topics", item))]
    barred = [
        e
        for item in (context.get("topics.exclude", "topics.blacklist", default=_EXCLUDED)).split(
            ","
        )
        if (e := context.expression("topics.exclude", item.strip()))
    ]
    origins = [
        SourceTopic(
            f"{prefix}{name}", _topic(context, "source.cluster.bootstrap.servers", name), "same"
        )
        for item in listed
        for name in literals(item) or ()
        if not any(e.matches(name) for e in barred)
    ]

    def reverse(topic: str) -> ExternalDataset | None:
        name = topic.removeprefix(prefix)
        if not topic.startswith(prefix) or any(e.matches(name) for e in barred):
            return None
        if not any(e.matches(name) for e in wanted):
            return None
        return _topic(context, "source.cluster.bootstrap.servers", name)

    if not origins and not context.connector.active_topics:
        context.problem("topics: only expressions are given, and no topic was seen yet")
    return SourceLineage(tuple(origins), reverse, shape="same", hidden=_hidden)


def replicator_source(context: Context) -> SourceLineage:
    """Topics renamed by a format."""
    context.target = _target(context, "dest.kafka.bootstrap.servers")
    shape = context.get("topic.rename.format", default="${topic}")
    barred = context.names("topic.blacklist")
    origins = [
        SourceTopic(
            templated(shape, name), _topic(context, "src.kafka.bootstrap.servers", name), "same"
        )
        for name in context.names("topic.whitelist")
        if name not in barred
    ]
    wanted = context.expression("topic.regex")
    head, _, tail = shape.partition("${topic}")

    def reverse(topic: str) -> ExternalDataset | None:
        if not (topic.startswith(head) and topic.endswith(tail)) or wanted is None:
            return None
        name = topic[len(head) : len(topic) - len(tail)]
        if name in barred or not wanted.matches(name):
            return None
        return _topic(context, "src.kafka.bootstrap.servers", name)

    return SourceLineage(tuple(origins), reverse, shape="same")


def _topic(context: Context, key: str, name: str) -> ExternalDataset | None:
    servers = context.get(key)
    found = context.name(lambda: naming.kafka(servers, name))
    return ExternalDataset.of(found, "TOPIC") if found else None


def _target(context: Context, key: str) -> str:
    """The cluster written to; where only the worker knows it, that of the worker itself."""
    servers = context.get(key)
    if PLACEHOLDER in servers:
        context.problem(f"{key}: only the worker can resolve the value; its own cluster is meant")
        return ""
    return servers


def _hidden(topic: str) -> bool:
    return _INTERNAL.search(topic) is not None


_MIRROR = "org.apache.kafka.connect.mirror."
PLUGINS = (
    Plugin(
        "mirrormaker", (f"{_MIRROR}MirrorSourceConnector",), "source",
        ("source.cluster.alias", "source.cluster.bootstrap.servers",
         "target.cluster.bootstrap.servers", "topics", "topics.exclude", "topics.blacklist",
         "replication.policy.class", "replication.policy.separator"),
        source=mirror_source, stores="Kafka",
    ),
    Plugin(
        "mirrormaker", (f"{_MIRROR}MirrorCheckpointConnector", f"{_MIRROR}MirrorHeartbeatConnector"),
        "source", (), internal=True, stores="Kafka (bookkeeping, hidden)",
    ),
    Plugin(
        "replicator", ("io.confluent.connect.replicator.ReplicatorSourceConnector",), "source",
        ("src.kafka.bootstrap.servers", "dest.kafka.bootstrap.servers", "topic.whitelist",
         "topic.blacklist", "topic.regex", "topic.rename.format"),
        source=replicator_source, stores="Kafka",
    ),
)  # fmt: skip
