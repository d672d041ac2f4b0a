"""The events of a client of Kafka's: what it reads or writes, in the model, written by the one writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.groups.life import GROUP, REPORTED
from headwater.connect.run_event import WRITER
from headwater.lineage.model import Dataset, Evidence, Job, Lineage, Run
from headwater.lineage.openlineage.events import from_micros
from headwater.lineage.openlineage.writer import encode

if TYPE_CHECKING:
    from headwater.connect.groups.life import ClientEmission, ClientKind

__all__ = ["ClusterTopics", "client_event"]

MAX_TOPICS = 500


class ClusterTopics(msgspec.Struct, frozen=True):
    """Where the topics of a cluster's clients are: their namespace and the cluster they belong to."""

    namespace: str
    cluster_id: str = ""
    bootstrap: tuple[str, ...] = ()

    def dataset(self, topic: str, evidence: Evidence) -> Dataset:
        """A topic that a client uses."""
        return Dataset(
            self.namespace,
            topic,
            type="TOPIC",
            cluster_id=self.cluster_id,
            bootstrap=self.bootstrap,
            evidence=(evidence,),
        )


def client_event(
    kind: ClientKind,
    emission: ClientEmission,
    topics: ClusterTopics,
    facets: dict[str, dict[str, Any]],
    *,
    namespace: str,
    heartbeat: float,
) -> bytes:
    """The bytes of an event of a client's run, with these facets of its run."""
    tracked, time = emission.tracked, from_micros(emission.tracked.emitted_at)
    unknown = (
        "What it does with the records it reads is not reported."
        if kind is GROUP
        else "Where the records that it writes come from is not reported."
    )
    job = Job(
        namespace,
        f"{kind.name}.{tracked.name}",
        kind.processing,
        "KAFKA",
        kind.job_type,
        heartbeat=heartbeat,
        documentation=f"{kind.title.capitalize()} {tracked.name}, as Kafka's brokers show it. "
        f"{unknown}",
        deleted=time if emission.end is REPORTED else None,
    )
    used = tuple(
        topics.dataset(topic, _evidence(kind, seen=seen))
        for topic, seen in list(tracked.topics.items())[:MAX_TOPICS]
    )
    lineage = Lineage(inputs=used) if kind is GROUP else Lineage(outputs=used)
    run = Run(tracked.run, facets=facets)
    return encode(WRITER.run_event(emission.type, time, job, run, lineage, end=emission.end))


def _evidence(kind: ClientKind, *, seen: bool) -> Evidence:
    """A topic was seen to be used, or concluded from the offsets that a group committed."""
    use = "writes" if kind is not GROUP else "reads" if seen else "committed offsets"
    return Evidence(kind.title, use, seen)
