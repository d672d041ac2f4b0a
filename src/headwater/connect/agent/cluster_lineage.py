"""The lineage of one cluster's connectors, the names of their jobs, and the bytes of their events."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.config import read_text
from headwater.connect.debezium.naming import task_job
from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.mapping import MappingRule, read_rules
from headwater.connect.derive.refresh import derivation
from headwater.connect.life.state import Condition, condition
from headwater.connect.model import Connector, Derived, job_of
from headwater.connect.run_event import deletion_event, failure_of, job_event, run_event, task_event
from headwater.errors import UsageError
from headwater.lineage.model import Failure
from headwater.lineage.openlineage.events import EventType, from_micros
from headwater.lineage.openlineage.writer import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.connect.agent.flow import FlowMeter
    from headwater.connect.config import ClusterConfig
    from headwater.connect.derive.refresh import Derivation
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.life.steps import Emission
    from headwater.connect.services.live_metadata import LiveMetadata


def settings_of(config: ClusterConfig) -> DeriveSettings:
    """How a cluster's connectors are to be read."""
    rules: list[MappingRule] = []
    for name in config.mappings:
        rules += read_mapping_file(Path(name))
    return DeriveSettings(config.namespace, tuple(rules), config.internal)


def read_mapping_file(path: Path) -> tuple[MappingRule, ...]:
    """The rules of a user's mapping file; raises UsageError that names it."""
    text = read_text(path)
    try:
        return read_rules(text)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from None


class JobNames:
    """Which cluster uses which job name, so that two clusters do not report two jobs as one."""

    def __init__(self) -> None:
        self._owner: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def claim(self, tracked: TrackedConnector) -> str | None:
        """Take a job's name for a cluster; the conflict, if another cluster has it."""
        assert tracked.derived is not None
        job = (tracked.derived.job.namespace, tracked.derived.job.name)
        with self._lock:
            owner = self._owner.setdefault(job, tracked.cluster)
        if owner == tracked.cluster:
            return None
        return (
            f"cluster {owner} has a job {job[1]} in namespace {job[0]} too: both show as one; "
            "give each cluster a namespace of its own"
        )

    def release(self, cluster: str) -> None:
        """Give up the names of a cluster that is polled no more."""
        with self._lock:
            self._owner = {job: who for job, who in self._owner.items() if who != cluster}


class ClusterLineage:
    """What the agent of one cluster needs to know about lineage."""

    def __init__(
        self,
        config: ClusterConfig,
        metadata: LiveMetadata,
        flow: FlowMeter | None = None,
        names: JobNames | None = None,
    ) -> None:
        self.version = ""
        self._metadata = metadata
        self._flow = flow
        self._names = names or JobNames()
        self._settings = settings_of(config)
        self._cluster = config.name
        self._heartbeat = max(1, round(config.times.heartbeat))

    def read_root(self, root: Mapping[str, str]) -> None:
        """Take in Connect's answer about itself: version and Kafka cluster id."""
        self.version = root.get("version", "")
        self._metadata.connect_cluster_id = root.get("kafka_cluster_id") or None

    def claim_name(self, tracked: TrackedConnector) -> str | None:
        """Take the job's name for this cluster; the conflict, if another cluster has it."""
        return self._names.claim(tracked)

    def problems(self) -> Mapping[str, str]:
        """What cannot be asked beside Connect itself now, by kind."""
        return self._metadata.problems

    def derive(self, connector: Connector) -> Derivation:
        """The lineage of a connector, with the answers it was derived from."""
        return derivation(connector, self._metadata, self._settings, derive)

    def unknown(self, name: str) -> Derived:
        """The lineage of a connector of which only the name is known."""
        return Derived(job_of(self._settings.namespace, name))

    def event(self, emission: Emission) -> bytes | None:
        """The bytes of an event; None where Debezium reports the run itself."""
        if emission.deleted:
            return self._deletion_event(emission)
        if emission.task:
            return self._task_event(emission)
        return self._connector_event(emission)

    def _connector_event(self, emission: Emission) -> bytes | None:
        tracked = emission.tracked
        kind: Any = tracked.type or None
        connector = Connector(tracked.name, kind, tracked.config_shown, tracked.topics)
        derived = tracked.derived or self.unknown(tracked.name)
        time = from_micros(tracked.emitted_at)
        if tracked.suppressed:
            if emission.type not in (EventType.START, EventType.RUNNING):
                return None
            return encode(job_event(derived, time=time, heartbeat=self._heartbeat))
        failure = None
        if emission.type is EventType.FAIL:
            failure = failure_of(tracked.status, connector)
            if failure is None and condition(tracked.status) is Condition.FAILED:
                failure = Failure(f"connector {tracked.status.state}", tracked.status.trace)
        return encode(
            run_event(
                derived,
                connector,
                run_id=tracked.run,
                state=emission.type,
                time=time,
                status=tracked.status,
                failure=failure,
                heartbeat=self._heartbeat,
                engine_version=self.version,
                inferred=emission.inferred,
                end=emission.end,
                cluster=self._cluster,
                facets=self._measured(tracked.run),
            )
        )

    def _task_event(self, emission: Emission) -> bytes:
        """Declares a further task's job a part of the connector's; with a run, ends that run."""
        tracked = emission.tracked
        parent = tracked.derived or self.unknown(tracked.name)
        return encode(
            task_event(
                parent,
                Connector(tracked.name, None, tracked.config_shown),
                task_job(parent.job.name, emission.task),
                run_id=tracked.run,
                state=emission.type,
                time=from_micros(tracked.emitted_at),
                engine_version=self.version,
                inferred=emission.inferred,
                cluster=self._cluster,
            )
        )

    def _deletion_event(self, emission: Emission) -> bytes:
        tracked = emission.tracked
        derived = tracked.derived or self.unknown(tracked.name)
        task = task_job(derived.job.name, emission.task) if emission.task else ""
        return encode(deletion_event(derived, time=from_micros(tracked.emitted_at), task=task))

    def _measured(self, run: str) -> dict[str, dict[str, Any]]:
        samples = self._flow.latest.get(run) if self._flow else None
        if not samples:
            return {}
        topics = []
        for sample in samples:
            found: dict[str, Any] = msgspec.to_builtins(sample)
            del found["run"]
            topics.append(found)
        return {"headwater_flow": {"topics": topics}}
