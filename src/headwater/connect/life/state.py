"""The state of a connector's run, as the agent keeps it, and the condition that follows from a status."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from headwater.connect.model import ConnectorStatus, Derived
from headwater.lineage.conversion import converter
from headwater.lineage.lifecycle import Emitted
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Mapping

# Names on disk, which earlier versions wrote.
_ON_DISK = {
    "config_shown": "shown",
    "config_digest": "config",
    "last_event": "said",
    "emitted_at": "at",
    "fingerprint": "told",
    "by_debezium": "theirs",
    "task_jobs": "parts",
    "tasks_declared": "folded",
    "tasks_to_check": "unsure",
    "suppressed": "mute",
}


class Condition(str, Enum):
    """What a connector's status means for its run."""

    RUNNING = "running"
    FAILED = "failed"
    PAUSED = "paused"
    STOPPED = "stopped"
    RESTARTING = "restarting"
    UNSETTLED = "unsettled"
    DELETED = "deleted"
    LOST = "lost"


def condition(status: ConnectorStatus) -> Condition:
    """The condition of a status; a state that passes by itself is unsettled.

    So are a rebalance, and a task that has not started.
    """
    states = {task.state for task in status.tasks}
    if status.state in ("FAILED", "DEGRADED") or "FAILED" in states:
        return Condition.FAILED
    if status.state == "STOPPED":
        return Condition.STOPPED
    if status.state == "PAUSED":
        return Condition.PAUSED
    if status.state == "RESTARTING" or "RESTARTING" in states:
        return Condition.RESTARTING
    if status.state == "RUNNING" and states <= {"RUNNING"} and not status.starting:
        return Condition.RUNNING
    return Condition.UNSETTLED


class EmittedEnd(msgspec.Struct, frozen=True, array_like=True):
    """The end that was emitted of a run; its time is 0 where the end was inferred."""

    type: EventType
    at: int


class TrackedConnector(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=_ON_DISK
):
    """A connector with the run it is in, or the last it was in. Times are microseconds."""

    cluster: str
    name: str
    type: str = ""
    config_shown: dict[str, str] = {}
    """What an event shows of the configuration: the class and the transforms' types."""
    group: str = ""
    """The consumer group of a sink that has one other than `connect-<name>`."""
    run: str = ""
    last_event: EventType | None = None
    """The last event that was emitted of the run."""
    emitted_at: int = 0
    """The time of the last event of any run of the connector."""
    condition: Condition = Condition.UNSETTLED
    config_digest: str = ""
    topics: tuple[str, ...] = ()
    status: ConnectorStatus = ConnectorStatus("")
    derived: Derived | None = None
    fingerprint: str = ""
    """A hash of what the last event reported, by which a change is noticed."""
    by_debezium: bool = False
    """Whether Debezium itself started the run."""
    ended: dict[str, EmittedEnd] = {}
    """The latest ends that were emitted of runs of a job that Debezium reports too, by run."""
    task_jobs: int = 0
    """How many jobs beside the first are declared as parts: one for each further task."""
    tasks_declared: str = ""
    """What was last declared about them, by which a change is noticed."""
    tasks_to_check: tuple[int, ...] = ()
    """Tasks with jobs that may have open runs which only the agent can end."""
    suppressed: bool = False
    """Whether run events are held back: Debezium reports the run, and which one is not known."""

    @property
    def emitted(self) -> Emitted:
        """Where the run is in its life."""
        return Emitted(self.last_event, self.emitted_at)

    @property
    def open(self) -> bool:
        """Whether a run is under way."""
        return self.emitted.open

    @property
    def job(self) -> tuple[str, str] | None:
        """Namespace and name of the job, as far as known."""
        return (self.derived.job.namespace, self.derived.job.name) if self.derived else None

    @property
    def started(self) -> int:
        """When the run began, by its id; 0 where Debezium made the id, which holds no time."""
        try:
            return int(self.run.replace("-", "")[:12], 16) * 1000
        except ValueError:
            return 0

    @property
    def key(self) -> str:
        """The key it is stored under."""
        return key_of(self.cluster, self.name)


def key_of(cluster: str, name: str = "") -> str:
    """The key of a connector in the store, or the prefix of a cluster's."""
    return f"connect/{cluster}/{name}"


def shown_config(config: Mapping[str, str]) -> dict[str, str]:
    """The part of a configuration that events show."""
    names = [name.strip() for name in config.get("transforms", "").split(",")]
    keys = ["connector.class", "transforms", *(f"transforms.{name}.type" for name in names)]
    return {key: config[key] for key in keys if config.get(key)}


def digest(config: Mapping[str, str]) -> str:
    """A hash by which two configurations are known to be the same, whatever their order."""
    text = msgspec.json.encode(dict(config), order="sorted")
    return hashlib.sha256(text).hexdigest()[:32]


def fingerprint(tracked: TrackedConnector) -> str:
    """A hash of what is worth a RUNNING event at once when it changes."""
    version = tracked.derived.version if tracked.derived else ""
    tasks = [task.id for task in tracked.status.tasks]
    text = f"{tracked.config_digest}|{tracked.topics}|{version}|{tasks}|{tracked.status.version}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TrackedConnector)
_members = msgspec.msgpack.Decoder(dict[str, object])
_convert = converter(TrackedConnector)


def dump(tracked: TrackedConnector) -> bytes:
    """A connector as it is stored; stack traces went out with the event and are left out."""
    return _encoder.encode(replace(tracked, status=bare(tracked.status)))


def bare(status: ConnectorStatus) -> ConnectorStatus:
    """A status without stack traces."""
    tasks = tuple(replace(task, trace="") for task in status.tasks)
    return replace(status, trace="", tasks=tasks)


def load(value: bytes) -> TrackedConnector | None:
    """A connector as it was stored; None when another version of the program wrote it."""
    try:
        return _decoder.decode(value)
    except msgspec.ValidationError:
        return _without_lineage(value)
    except msgspec.DecodeError:
        return None


def _without_lineage(value: bytes) -> TrackedConnector | None:
    """A connector whose lineage an older version wrote: it is derived again, the run goes on."""
    try:
        kept = _members.decode(value)
        return _convert({**kept, "derived": None})
    except msgspec.DecodeError:
        return None
