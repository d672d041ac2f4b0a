"""What the agent remembers of a connector, and what Connect's words about it amount to."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from headwater.connect.model import Derived, Status
from headwater.lineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Mapping

TERMINAL = (EventType.COMPLETE, EventType.FAIL, EventType.ABORT)


class Condition(str, Enum):
    """How a connector is, as far as its run goes."""

    RUNNING = "running"
    FAILED = "failed"
    PAUSED = "paused"
    STOPPED = "stopped"
    RESTARTING = "restarting"
    UNSETTLED = "unsettled"
    DELETED = "deleted"
    LOST = "lost"


def condition(status: Status) -> Condition:
    """What a status amounts to; a state that passes by itself, as in a rebalance, is unsettled."""
    states = {task.state for task in status.tasks}
    if status.state in ("FAILED", "DEGRADED") or "FAILED" in states:
        return Condition.FAILED
    if status.state == "STOPPED":
        return Condition.STOPPED
    if status.state == "PAUSED":
        return Condition.PAUSED
    if status.state == "RESTARTING" or "RESTARTING" in states:
        return Condition.RESTARTING
    if status.state == "RUNNING" and states <= {"RUNNING"}:
        return Condition.RUNNING
    return Condition.UNSETTLED


class Ended(msgspec.Struct, frozen=True, array_like=True):
    """The end that was said of a run: how, and when; never, where it is only a guess."""

    type: EventType
    at: int


class Tracked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A connector with the run it is in, or the last it was in. Times are microseconds."""

    cluster: str
    name: str
    type: str = ""
    shown: dict[str, str] = {}
    """What an event shows of the configuration: the class and the transforms' types."""
    group: str = ""
    """The consumer group of a sink that has one other than `connect-<name>`."""
    run: str = ""
    said: EventType | None = None
    at: int = 0
    condition: Condition = Condition.UNSETTLED
    config: str = ""
    topics: tuple[str, ...] = ()
    status: Status = Status("")
    derived: Derived | None = None
    told: str = ""
    """A hash of all that the last event said, by which a change is seen."""
    theirs: bool = False
    """Whether another producer of the same job began the run."""
    ended: dict[str, Ended] = {}
    """The runs of a job that another producer reports too whose ends were said, the last ones."""
    parts: int = 0
    """How many parts of the job beside the first have been told: one for each further task."""
    folded: str = ""
    """A mark of what was last said of the parts."""
    unsure: tuple[int, ...] = ()
    """Parts that may have runs under way that are to be ended."""
    mute: bool = False
    """Whether another producer tells the run and nobody can say which it is."""

    @property
    def open(self) -> bool:
        """Whether a run is under way."""
        return self.said is not None and self.said not in TERMINAL

    @property
    def job(self) -> tuple[str, str] | None:
        """Namespace and name of the job, as far as known."""
        return (self.derived.namespace, self.derived.job_name) if self.derived else None

    @property
    def started(self) -> int:
        """When the run began, by its id; 0 for one of another's making that does not say."""
        try:
            return int(self.run.replace("-", "")[:12], 16) * 1000
        except ValueError:
            return 0

    @property
    def key(self) -> str:
        """Under which it is kept in the store."""
        return key_of(self.cluster, self.name)


def key_of(cluster: str, name: str = "") -> str:
    """The key of a connector in the store, or the prefix of a cluster's."""
    return f"connect/{cluster}/{name}"


def shown_of(config: Mapping[str, str]) -> dict[str, str]:
    """The part of a configuration that events show."""
    names = [name.strip() for name in config.get("transforms", "").split(",")]
    keys = ["connector.class", "transforms", *(f"transforms.{name}.type" for name in names)]
    return {key: config[key] for key in keys if config.get(key)}


def digest(config: Mapping[str, str]) -> str:
    """A hash by which two configurations are known to be the same, whatever their order."""
    text = msgspec.json.encode(dict(config), order="sorted")
    return hashlib.sha256(text).hexdigest()[:32]


def fingerprint(tracked: Tracked) -> str:
    """A hash of what a RUNNING event would say that is worth saying at once."""
    version = tracked.derived.version if tracked.derived else ""
    tasks = [task.id for task in tracked.status.tasks]
    text = f"{tracked.config}|{tracked.topics}|{version}|{tasks}|{tracked.status.version}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Tracked)


def dump(tracked: Tracked) -> bytes:
    """A connector as the store keeps it; traces went out with the event and are not kept."""
    return _encoder.encode(replace(tracked, status=bare(tracked.status)))


def bare(status: Status) -> Status:
    """A status without its traces."""
    tasks = tuple(replace(task, trace="") for task in status.tasks)
    return replace(status, trace="", tasks=tasks)


def load(value: bytes) -> Tracked | None:
    """A connector out of the store; None when another version of the program wrote it."""
    try:
        return _decoder.decode(value)
    except msgspec.DecodeError:
        return None
