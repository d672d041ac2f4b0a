"""How fast records move: end offsets, rates and lag, measured every few seconds.

Flow is not lineage: samples go to the server's `/api/v2/flow`, lossy by design, and the newest
figures into the next heartbeat.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.connect.services.kafka import KafkaError
from headwater.emit.flow import DatasetRef, FlowSample
from headwater.lineage.moments import SECOND, iso
from headwater.lineage.naming import kafka_namespace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.services.kafka import EndOffsets, KafkaAdmin
    from headwater.emit.flow import Direction

INTERVAL = 10.0
NEWEST_EVERY = 3


class FlowMeter:
    """Measures the topics of one Kafka cluster."""

    def __init__(self, kafka: KafkaAdmin) -> None:
        self.kafka = kafka
        self.latest: dict[str, tuple[FlowSample, ...]] = {}
        self._before: dict[tuple[str, str], tuple[float, int]] = {}
        self._last: dict[str, int] = {}
        self._round = 0

    def measure(self, connectors: Iterable[TrackedConnector]) -> list[FlowSample]:
        """One round over the topics of the runs that are under way."""
        running = [tracked for tracked in connectors if tracked.open and tracked.derived]
        try:
            found = self._measure(running)
        except KafkaError:
            return []  # the cluster's problems name the reason
        return found

    def _measure(self, running: list[TrackedConnector]) -> list[FlowSample]:
        uses = {tracked.name: self._topics(tracked) for tracked in running}
        newest = self._round % NEWEST_EVERY == 0
        self._round += 1
        ends = self.kafka.ends({t for pairs in uses.values() for t, _, _ in pairs}, newest=newest)
        groups = {
            tracked.name: tracked.group or f"connect-{tracked.name}"
            for tracked in running
            if tracked.type == "sink"
        }
        committed = self.kafka.committed(groups.values())
        now = time.time()
        known = {topic: last for topic, last in self._last.items() if topic in ends}
        self._last = known | {t: end.last for t, end in ends.items() if end.last is not None}
        found: list[FlowSample] = []
        for tracked in running:
            group = groups.get(tracked.name)
            done = committed.get(group) if group else None
            samples = [
                self.sample(tracked.run, namespace, topic, direction, ends[topic], done, now)
                for topic, namespace, direction in uses[tracked.name]
                if topic in ends
            ]
            self.latest[tracked.run] = tuple(samples)
            found += samples
            if done is not None:
                found += _delivered(tracked, samples)
        alive = {tracked.run for tracked in running}
        self.latest = {run: samples for run, samples in self.latest.items() if run in alive}
        self.forget_others(alive)
        return found

    def forget_others(self, runs: Collection[str]) -> None:
        """Keep what was measured of these runs only: an agent lives longer than any run."""
        self._before = {key: seen for key, seen in self._before.items() if key[0] in runs}

    def _topics(self, tracked: TrackedConnector) -> list[tuple[str, str, Direction]]:
        """The topics of this cluster that a connector uses."""
        derived = tracked.derived
        assert derived is not None
        cluster = self.kafka.cluster
        here = {kafka_namespace(server) for server in self.kafka.bootstraps}
        sides: tuple[tuple[Direction, Any], ...] = (
            ("input", derived.lineage.inputs),
            ("output", derived.lineage.outputs),
        )
        return [
            (dataset.name, dataset.namespace, direction)
            for direction, datasets in sides
            for dataset in datasets
            if dataset.namespace in here
            or (cluster and cluster.id and dataset.cluster_id == cluster.id)
        ]

    def sample(
        self,
        run: str,
        namespace: str,
        topic: str,
        direction: Direction,
        ends: EndOffsets,
        done: Mapping[tuple[str, int], int] | None,
        now: float,
    ) -> FlowSample:
        """One topic of a run; with `done`, the offsets that its consumer group has committed."""
        end = sum(ends.offsets.values())
        position, lag = end, None
        if direction == "input" and done is not None:
            read = {part: offset for (name, part), offset in done.items() if name == topic}
            if read:
                lag = sum(max(0, ends.offsets.get(part, at) - at) for part, at in read.items())
                position = sum(read.values())
        last = self._last.get(topic)
        return FlowSample(
            run=run,
            dataset=DatasetRef(namespace, topic),
            direction=direction,
            time=iso(int(now * SECOND)),
            records_per_second=self._rate(run, f"{direction}/{topic}", position, now),
            end_offset=end,
            lag=lag,
            last_record_at=iso(last) if last else None,
        )

    def _rate(self, run: str, what: str, position: int, now: float) -> float | None:
        before = self._before.get((run, what))
        self._before[run, what] = (now, position)
        if before is None or now <= before[0] or position < before[1]:
            return None
        return round((position - before[1]) / (now - before[0]), 3)


def _delivered(tracked: TrackedConnector, read: list[FlowSample]) -> list[FlowSample]:
    """What a sink delivers to each output: a worker commits the offsets of records it has handed over."""
    assert tracked.derived is not None
    lineage = tracked.derived.lineage
    rates = {
        (one.dataset.namespace, one.dataset.name): one.records_per_second
        for one in read
        if one.direction == "input" and one.records_per_second is not None
    }
    found: list[FlowSample] = []
    for output in lineage.outputs:
        if lineage.edges is not None:
            topics = {edge.input for edge in lineage.edges if edge.output == output.id}
        else:
            topics = {one.id for one in lineage.inputs} if len(lineage.outputs) == 1 else set()
        # Where the rate of one of several topics is not known, the sum is not either.
        if topics and topics <= rates.keys():
            ref = DatasetRef(output.namespace, output.name)
            rate = round(sum(rates[topic] or 0.0 for topic in topics), 3)
            found.append(
                FlowSample(tracked.run, ref, "output", read[0].time, records_per_second=rate)
            )
    return found
