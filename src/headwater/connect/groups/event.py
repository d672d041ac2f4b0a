"""The events of a consumer group: what it reads, in the model, written by the one writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.groups.life import REPORTED
from headwater.connect.run_event import WRITER
from headwater.lineage.model import Dataset, Evidence, Job, Lineage, Run
from headwater.lineage.moments import iso
from headwater.lineage.openlineage.events import from_micros
from headwater.lineage.openlineage.writer import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.connect.groups.life import GroupEmission, WatchedGroup
    from headwater.emit.flow import FlowSample

__all__ = ["GroupTopics", "group_event", "job_name"]

MAX_TOPICS = 500


class GroupTopics(msgspec.Struct, frozen=True):
    """Where the topics of a cluster's groups are: their namespace and the cluster they belong to."""

    namespace: str
    cluster_id: str = ""
    bootstrap: tuple[str, ...] = ()

    def dataset(self, topic: str, *, seen: bool) -> Dataset:
        """A topic that a group reads: seen to be read, or concluded from committed offsets."""
        evidence = Evidence("consumer group", "reads" if seen else "committed offsets", seen)
        return Dataset(
            self.namespace,
            topic,
            type="TOPIC",
            cluster_id=self.cluster_id,
            bootstrap=self.bootstrap,
            evidence=(evidence,),
        )


def job_name(group: str) -> str:
    """The name of the job that a group is reported as."""
    return f"consumer-group.{group}"


def group_event(
    emission: GroupEmission,
    watched: WatchedGroup,
    topics: GroupTopics,
    samples: Sequence[FlowSample],
    *,
    namespace: str,
    heartbeat: float,
) -> bytes:
    """The bytes of an event of a group's run."""
    tracked, time = emission.tracked, from_micros(emission.tracked.emitted_at)
    job = Job(
        namespace,
        job_name(tracked.name),
        "STREAMING",
        "KAFKA",
        "CONSUMER_GROUP",
        heartbeat=heartbeat,
        documentation=f"Consumer group {tracked.name}, as Kafka's brokers show it. What it does "
        "with the records it reads is not reported.",
        deleted=time if emission.end is REPORTED else None,
    )
    facets = {"headwater_consumerGroup": _facet(tracked.name, watched, samples)}
    if samples:
        facets["headwater_flow"] = {"topics": [_measured(sample) for sample in samples]}
    lineage = Lineage(
        inputs=tuple(
            topics.dataset(topic, seen=seen)
            for topic, seen in list(tracked.topics.items())[:MAX_TOPICS]
        )
    )
    run = Run(tracked.run, facets=facets)
    return encode(WRITER.run_event(emission.type, time, job, run, lineage, end=emission.end))


def _facet(name: str, watched: WatchedGroup, samples: Sequence[FlowSample]) -> dict[str, Any]:
    shown, lags = watched.shown, [one.lag for one in samples if one.lag is not None]
    return {
        "group": name,
        "groups": shown.groups if shown and shown.groups > 1 else None,
        "state": shown.state if shown else None,
        "members": shown.members if shown else None,
        "clients": list(shown.clients) if shown else [],
        "lag": sum(lags) if lags else None,
        "lastActiveAt": iso(watched.active_at) if watched.active_at else None,
    }


def _measured(sample: FlowSample) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(sample)
    del found["run"]
    return found
