"""From Kafka to Kafka: MirrorMaker 2 and Replicator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.patterns import literals
from headwater.connect.plan import templated
from headwater.connect.values import PLACEHOLDER
from headwater.lineage import naming

from .base import Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_INTERNAL = re.compile(r"^mm2-|\.internal$|^heartbeats$|\.heartbeats$|^__|[-.]replica$")
_EXCLUDED = r"mm2.*\.internal,.*\.internal,.*-internal,.*\.replica,__.*"


def mirror_source(plan: Plan) -> Reading:
    """Topics of the source cluster under the name that the replication policy gives them."""
    plan.target = _target(plan, "target.cluster.bootstrap.servers")
    alias = plan.get("source.cluster.alias", default="source")
    policy = plan.get("replication.policy.class").rpartition(".")[2]
    mark = plan.get("replication.policy.separator", default=".")
    prefix = "" if policy == "IdentityReplicationPolicy" else f"{alias}{mark}"
    if policy not in ("", "DefaultReplicationPolicy", "IdentityReplicationPolicy"):
        plan.problem("replication.policy.class: a class of the worker names the topics")
        return Reading(hidden=_hidden)
    listed = plan.names("topics")
    wanted = [e for item in listed or [".*"] if (e := plan.expression("topics", item))]
    barred = [
        e
        for item in (plan.get("topics.exclude", "topics.blacklist", default=_EXCLUDED)).split(",")
        if (e := plan.expression("topics.exclude", item.strip()))
    ]
    origins = [
        Origin(f"{prefix}{name}", _topic(plan, "source.cluster.bootstrap.servers", name), "same")
        for item in listed
        for name in literals(item) or ()
        if not any(e.matches(name) for e in barred)
    ]

    def reverse(topic: str) -> Place | None:
        name = topic.removeprefix(prefix)
        if not topic.startswith(prefix) or any(e.matches(name) for e in barred):
            return None
        if not any(e.matches(name) for e in wanted):
            return None
        return _topic(plan, "source.cluster.bootstrap.servers", name)

    if not origins and not plan.connector.active_topics:
        plan.problem("topics: only expressions are given, and no topic was seen yet")
    return Reading(tuple(origins), reverse, shape="same", hidden=_hidden)


def replicator_source(plan: Plan) -> Reading:
    """Topics renamed by a format."""
    plan.target = _target(plan, "dest.kafka.bootstrap.servers")
    shape = plan.get("topic.rename.format", default="${topic}")
    barred = plan.names("topic.blacklist")
    origins = [
        Origin(templated(shape, name), _topic(plan, "src.kafka.bootstrap.servers", name), "same")
        for name in plan.names("topic.whitelist")
        if name not in barred
    ]
    wanted = plan.expression("topic.regex")
    head, _, tail = shape.partition("${topic}")

    def reverse(topic: str) -> Place | None:
        if not (topic.startswith(head) and topic.endswith(tail)) or wanted is None:
            return None
        name = topic[len(head) : len(topic) - len(tail)]
        if name in barred or not wanted.matches(name):
            return None
        return _topic(plan, "src.kafka.bootstrap.servers", name)

    return Reading(tuple(origins), reverse, shape="same")


def _topic(plan: Plan, key: str, name: str) -> Place | None:
    servers = plan.get(key)
    found = plan.name(lambda: naming.kafka(servers, name))
    return Place(found, "TOPIC") if found else None


def _target(plan: Plan, key: str) -> str:
    """The cluster written to; where only the worker knows it, that of the worker itself."""
    servers = plan.get(key)
    if PLACEHOLDER in servers:
        plan.problem(f"{key}: only the worker can resolve the value; its own cluster is meant")
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
