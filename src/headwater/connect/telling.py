"""What is said of a connector: its lineage, and the events that carry it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.config import read_text
from headwater.connect.derive import derive
from headwater.connect.event import event, failure
from headwater.connect.facets import part_of
from headwater.connect.lineage import work_out
from headwater.connect.mapping import read_rules
from headwater.connect.model import Connector, Derived, Failure, Rule, Settings
from headwater.connect.reported import part
from headwater.connect.state import Condition, condition
from headwater.lineage.events import EventType, canonical, from_micros

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.connect.config import ClusterConfig
    from headwater.connect.flow import Flow
    from headwater.connect.life import Said
    from headwater.connect.lineage import Lineage
    from headwater.connect.world import LiveWorld

NO_RUN = "00000000-0000-0000-0000-000000000000"
JOB_EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent"


def settings_of(config: ClusterConfig) -> Settings:
    """How a cluster's connectors are to be read."""
    rules: list[Rule] = []
    for name in config.mappings:
        rules += read_rules(read_text(Path(name)))
    return Settings(config.namespace, tuple(rules), config.internal)


class Teller:
    """Works out and words what one cluster's connectors do."""

    def __init__(self, config: ClusterConfig, world: LiveWorld, flow: Flow | None) -> None:
        self.version = ""
        self._world = world
        self._flow = flow
        self._settings = settings_of(config)
        self._cluster = config.name
        self._heartbeat = max(1, round(config.times.heartbeat))

    def on_root(self, root: Mapping[str, str]) -> None:
        """Take in what Connect says of itself."""
        self.version = root.get("version", "")
        self._world.connect_cluster_id = root.get("kafka_cluster_id") or None

    def derive(self, connector: Connector) -> Lineage:
        """The lineage of a connector, with what it was worked out from."""
        return work_out(connector, self._world, self._settings, derive)

    def nothing(self, name: str) -> Derived:
        """The lineage of a connector of which nothing is known but its name."""
        return Derived("unknown", self._settings.namespace, name)

    def event(self, said: Said) -> bytes | None:
        """The event's bytes; None where another producer tells this job's life itself."""
        if said.part:
            return self._part(said)
        return self._whole(said)

    def _whole(self, said: Said) -> bytes | None:
        tracked = said.tracked
        kind: Any = tracked.type or None
        connector = Connector(tracked.name, kind, tracked.shown, tracked.topics)
        derived = tracked.derived or self.nothing(tracked.name)
        error = None
        if said.type is EventType.FAIL:
            error = failure(tracked.status, connector)
            if error is None and condition(tracked.status) is Condition.FAILED:
                error = Failure(f"connector {tracked.status.state}", tracked.status.trace)
        found = event(
            derived,
            connector,
            run_id=tracked.run,
            state=said.type.value,
            time=from_micros(tracked.at),
            status=tracked.status,
            error=error,
            heartbeat=self._heartbeat,
            engine_version=self.version,
            inferred=said.inferred,
            cluster=self._cluster,
            extra=self._measured(tracked.run),
        )
        if tracked.mute:
            return _as_job(found) if said.type in (EventType.START, EventType.RUNNING) else None
        return canonical(found)

    def _part(self, said: Said) -> bytes:
        """The job of a further task is a part of the connector's; with a run, that it is over."""
        tracked = said.tracked
        whole = tracked.derived or self.nothing(tracked.name)
        named = Derived(whole.family, whole.namespace, part(whole.job_name, said.part))
        found = event(
            named,
            Connector(tracked.name, None, tracked.shown),
            run_id=tracked.run or NO_RUN,
            state=said.type.value,
            time=from_micros(tracked.at),
            engine_version=self.version,
            inferred=said.inferred,
            cluster=self._cluster,
        )
        found["job"]["facets"] = {"headwater_partOf": part_of(whole)}
        return canonical(found) if tracked.run else _as_job(found)

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


def _as_job(found: dict[str, Any]) -> bytes:
    """A run's event as one of its job alone: the lineage is ours, the run the other producer's."""
    kept = {key: value for key, value in found.items() if key not in ("run", "eventType")}
    return canonical({**kept, "schemaURL": JOB_EVENT})
