"""How fast records move: end offsets, rates and lag, measured every few seconds.

Flow is not lineage: samples go to the server's `/api/v2/flow`, lossy by design, and the newest
figures into the next heartbeat.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Literal

import httpx
import msgspec

from headwater.connect.services.kafka import KafkaError
from headwater.lineage.events import iso
from headwater.lineage.naming import kafka_namespace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.services.kafka import EndOffsets, KafkaAdmin

log = logging.getLogger(__name__)

INTERVAL = 10.0
NEWEST_EVERY = 3
# A server that knows no flow is asked again after so many seconds.
RETRY_AFTER = 600.0
Direction = Literal["input", "output"]


class DatasetRef(msgspec.Struct, frozen=True):
    """The dataset that a sample is about."""

    namespace: str
    name: str


class Sample(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One topic as one run reads or writes it, at one moment."""

    run: str
    dataset: DatasetRef
    direction: Direction
    time: str
    records_per_second: float | None = None
    end_offset: int | None = None
    lag: int | None = None
    last_record_at: str | None = None


class FlowMeter:
    """Measures the topics of one Kafka cluster."""

    def __init__(self, kafka: KafkaAdmin) -> None:
        self.kafka = kafka
        self.latest: dict[str, tuple[Sample, ...]] = {}
        self.lag: dict[str, int] = {}
        self._before: dict[tuple[str, str], tuple[float, int]] = {}
        self._last: dict[str, int] = {}
        self._round = 0

    def measure(self, connectors: Iterable[TrackedConnector]) -> list[Sample]:
        """One round over the topics of the runs that are under way."""
        running = [tracked for tracked in connectors if tracked.open and tracked.derived]
        try:
            found = self._measure(running)
        except KafkaError:
            return []  # the cluster's problems name the reason
        return found

    def _measure(self, running: list[TrackedConnector]) -> list[Sample]:
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
        self._last |= {topic: end.last for topic, end in ends.items() if end.last is not None}
        found: list[Sample] = []
        for tracked in running:
            group = groups.get(tracked.name)
            done = committed.get(group) if group else None
            samples = [
                self._sample(tracked.run, namespace, topic, direction, ends[topic], done, now)
                for topic, namespace, direction in uses[tracked.name]
                if topic in ends
            ]
            self.latest[tracked.run] = tuple(samples)
            self.lag[tracked.name] = sum(sample.lag or 0 for sample in samples)
            found += samples
        alive = {tracked.run for tracked in running}
        self.latest = {run: samples for run, samples in self.latest.items() if run in alive}
        return found

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

    def _sample(
        self,
        run: str,
        namespace: str,
        topic: str,
        direction: Direction,
        ends: EndOffsets,
        done: Mapping[tuple[str, int], int] | None,
        now: float,
    ) -> Sample:
        end = sum(ends.offsets.values())
        position, lag = end, None
        if direction == "input" and done is not None:
            read = {part: offset for (name, part), offset in done.items() if name == topic}
            if read:
                lag = sum(max(0, ends.offsets.get(part, at) - at) for part, at in read.items())
                position = sum(read.values())
        last = self._last.get(topic)
        return Sample(
            run=run,
            dataset=DatasetRef(namespace, topic),
            direction=direction,
            time=iso(int(now * 1_000_000)),
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


class FlowReporter:
    """Posts samples to the servers that events go to; one without `/api/v2/flow` is asked rarely."""

    def __init__(self, servers: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        self._servers = [(url.rstrip("/"), dict(headers)) for url, headers in servers]
        self._http = httpx.Client(timeout=5.0, trust_env=False)
        self._retry_at: dict[str, float] = {}

    def post(self, samples: list[Sample]) -> None:
        """Send the samples; what does not arrive is lost."""
        if not samples:
            return
        body = msgspec.json.encode({"samples": samples})
        for url, headers in self._servers:
            if time.monotonic() < self._retry_at.get(url, 0.0):
                continue
            try:
                answer = self._http.post(
                    f"{url}/api/v2/flow",
                    content=body,
                    headers={"Content-Type": "application/json", **headers},
                )
                if answer.status_code in (404, 405):
                    self._retry_at[url] = time.monotonic() + RETRY_AFTER
            except httpx.HTTPError as error:
                log.debug("flow samples not sent to %s: %s", url, error)

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()
