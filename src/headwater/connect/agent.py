"""The watcher of one Connect cluster: poll, compare, and write what is to be said.

Nothing is remembered before it is on disk: a step's events and the state after it are one
transaction, so that a process killed at any instant goes on with the same runs.
"""

from __future__ import annotations

import hashlib
import logging
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from headwater.connect.client import ConnectError, Trouble, read_entry
from headwater.connect.life import live
from headwater.connect.model import Connector
from headwater.connect.redact import scrub, secrets
from headwater.connect.state import (
    Condition,
    Tracked,
    bare,
    condition,
    digest,
    dump,
    key_of,
    load,
    shown_of,
)
from headwater.connect.trouble import Troubles
from headwater.lineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headwater.connect.client import Connect, Entry
    from headwater.connect.life import Said, Step
    from headwater.connect.lineage import Lineage
    from headwater.connect.model import Derived, Status
    from headwater.emit import Outbox

log = logging.getLogger(__name__)

SECOND = 1_000_000
# A restart is ordered, then done: a poll so soon after it may still see the time before.
RESTART_SETTLES = 2.0
# Topics of a young run are looked at more often, since a source's show with its first records.
YOUNG = 60 * SECOND
LONGEST_TRACE = 32_000
# So many connectors' steps are one transaction: small enough that the first events go out early.
BATCH = 100
STATUS = "connect-status/"
GONE = (Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.UNHEALTHY)


class Times(msgspec.Struct, frozen=True):
    """How often things happen, in seconds."""

    poll: float = 5.0
    heartbeat: float = 300.0
    grace: float = 600.0
    rotation: float = 60.0


class _Watched:
    """A connector in memory: what is on disk, and what need not be."""

    def __init__(self, tracked: Tracked) -> None:
        self.tracked = tracked
        self.raw = b""
        self.lineage: Lineage | None = None
        self.topics_due = 0.0
        self.unsettled: int | None = None


class Agent:
    """One Connect cluster, watched."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        outbox: Outbox,
        *,
        derive: Callable[[Connector], Lineage],
        nothing: Callable[[str], Derived],
        event: Callable[[Said], bytes | None],
        times: Times | None = None,
        clock: Callable[[], float] = time.time,
        claim: Callable[[Tracked], str | None] = lambda _: None,
        on_root: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.connect = connect
        self.outbox = outbox
        self.times = times or Times()
        self.troubles = Troubles(name)
        self.version = ""
        self._derive = derive
        self._nothing = nothing
        self._event = event
        self._clock = clock
        self._claim = claim
        self._on_root = on_root
        self._failures = 0
        self._watched: dict[str, _Watched] = {}
        self._restarts: dict[str, float] = {}
        self._silent: float | None = None
        self._told_status: object = None
        self.load()

    def load(self) -> None:
        """Take over the runs that this or another process left in the store."""
        self._watched = {}
        for key, value in self.outbox.state(key_of(self.name)).items():
            tracked = load(value)
            if tracked is None:
                log.warning("%s: state of an unknown form is left out", key)
            else:
                self._watched[tracked.name] = _Watched(tracked)

    @property
    def tracked(self) -> list[Tracked]:
        """Every connector that is known now."""
        return [watched.tracked for watched in list(self._watched.values())]

    def tick(self) -> int:
        """Look once, say what there is to say, and return the number of events."""
        began = self._clock()
        self._read_notes()
        try:
            unwell = self.connect.unhealthy()
            if unwell:
                raise ConnectError(Trouble.UNHEALTHY, f"not healthy: {unwell}")
            if not self.version:
                self.version = self._root()
            found = self.connect.poll()
        except ConnectError as error:
            self.troubles.add("", error.message)
            self._failures += 1
            return self._silence(error.trouble, began)
        self.troubles.clear("")
        self._silent, self._failures = None, 0
        count, steps = 0, self._steps(found, began)
        while some := list(islice(steps, BATCH)):
            count += self._commit(some)
        count += self._rotate(found, began)
        self._tell_status()
        return count

    @property
    def wait(self) -> float:
        """How long to wait before the next look: longer and longer while none succeeds."""
        longest = max(self.times.poll, min(30.0, self.times.grace / 4))
        return min(self.times.poll * (1 << min(self._failures, 10)), longest)

    def _root(self) -> str:
        try:
            found = self.connect.root()
        except ConnectError as error:
            if error.trouble is Trouble.MISSING:
                return ""
            raise
        self._on_root(found)
        return found.get("version", "")

    def _silence(self, trouble: Trouble, now: float) -> int:
        """A cluster that cannot be asked: nothing to say until it is gone past the grace time.

        Only silence counts. A cluster that refuses us, or whose answer is not understood, may be
        as well as ever.
        """
        if trouble not in GONE:
            self._silent = None
        elif self._silent is None:
            self._silent = now
        if self._silent is None or now - self._silent < self.times.grace:
            self._tell_status()
            return 0
        self.version = ""
        steps = [
            live(watched.tracked, Condition.LOST, _micros(now))
            for watched in self._watched.values()
            if watched.tracked.open
        ]
        count = self._commit(steps)
        self._tell_status()
        return count

    def _steps(self, found: Mapping[str, msgspec.Raw], now: float) -> Iterator[Step]:
        beats = self._beats(_micros(now))
        for name, raw in found.items():
            try:
                step = self._seen(name, raw, now, name in beats)
            except ConnectError as error:
                self.troubles.add(name, error.message)
                continue
            except Exception as error:  # noqa: BLE001
                self.troubles.fault(name, error)
                continue
            if step is not None:
                yield step
        for name in self._watched.keys() - found.keys():
            step = self._missing(name, now)
            if step is not None:
                yield step

    def _seen(self, name: str, raw: msgspec.Raw, now: float, beat: bool) -> Step | None:
        mark = hashlib.blake2b(raw, digest_size=16).digest()
        watched = self._watched.get(name)
        restarted = now - self._restarts.get(name, now) >= RESTART_SETTLES
        due = beat or restarted or (watched is not None and watched.unsettled is not None)
        if watched is not None and watched.raw == mark and not due:
            return None
        if not self.troubles.retry(name, self._clock()):
            return None
        entry = read_entry(name, raw)
        if watched is None:
            watched = self._watched[name] = _Watched(Tracked(cluster=self.name, name=name))
        seen = self._settled(watched, condition(entry.status), _micros(now))
        tracked = self._with_entry(watched, entry, seen)
        step = live(tracked, seen, _micros(now), beat=beat, restarted=restarted)
        started = any(said.type is EventType.START for said in step.said)
        if started or seen is Condition.RESTARTING or (restarted and step.said):
            self._restarts.pop(name, None)
        watched.raw = mark
        self.troubles.clear(name)
        return step if step.said or step.tracked != watched.tracked else None

    def _settled(self, watched: _Watched, seen: Condition, now: int) -> Condition:
        """A state that should pass by itself and does not is a loss after the grace time."""
        if seen is not Condition.UNSETTLED:
            watched.unsettled = None
            return seen
        if watched.unsettled is None:
            watched.unsettled = now
        late = now - watched.unsettled >= self.times.grace * SECOND
        return Condition.LOST if late else seen

    def _with_entry(self, watched: _Watched, entry: Entry, seen: Condition) -> Tracked:
        tracked = watched.tracked
        config = digest(entry.info.config)
        changed = config != tracked.config or tracked.derived is None or watched.lineage is None
        after = replace(
            tracked,
            type=entry.info.type,
            shown=shown_of(entry.info.config),
            config=config,
            group=entry.info.config.get("consumer.override.group.id", ""),
            status=self._scrubbed(entry) if seen is Condition.FAILED else bare(entry.status),
        )
        if changed and seen in (Condition.RUNNING, Condition.FAILED):
            after = self._lineage(watched, after, entry)
        return after

    def _scrubbed(self, entry: Entry) -> Status:
        """A status whose traces hold none of the connector's secrets, cut to a bearable length."""
        config = entry.info.config
        hidden = secrets(config, self.connect.passwords(config.get("connector.class", "")))

        def clean(trace: str) -> str:
            return scrub(trace[:LONGEST_TRACE], hidden)

        status = entry.status
        tasks = tuple(replace(task, trace=clean(task.trace)) for task in status.tasks)
        return replace(status, trace=clean(status.trace), tasks=tasks)

    def _lineage(self, watched: _Watched, tracked: Tracked, entry: Entry) -> Tracked:
        """Work the lineage out anew; what cannot be asked now keeps its last answer."""
        topics = self._topics(tracked)
        kind: Any = entry.info.type or None
        watched.topics_due = self._clock() + self.times.poll
        try:
            lineage = self._derive(Connector(tracked.name, kind, entry.info.config, topics))
        except Exception as error:  # noqa: BLE001
            # Its life is told all the same, with the lineage that is known.
            self.troubles.fault(tracked.name, error, "lineage")
            watched.lineage = None
            return replace(tracked, derived=tracked.derived or self._nothing(tracked.name))
        watched.lineage = lineage
        self.troubles.clear(tracked.name, "lineage")
        same = watched.tracked.config == tracked.config and tracked.derived is not None
        if lineage.unsure and same:
            return replace(tracked, topics=topics)
        after = replace(tracked, topics=topics, derived=lineage.derived)
        taken = self._claim(after)
        if taken:
            self.troubles.add(tracked.name, taken, "name")
        else:
            self.troubles.clear(tracked.name, "name")
        return after

    def _topics(self, tracked: Tracked) -> tuple[str, ...]:
        try:
            found = self.connect.topics(tracked.name)
        except ConnectError as error:
            log.debug("topics of %s: %s", tracked.name, error.message)
            return tracked.topics
        return tracked.topics if found is None else found

    def _missing(self, name: str, now: float) -> Step | None:
        """A connector that is not listed is gone only when Connect says so."""
        watched = self._watched[name]
        try:
            if self.connect.exists(name):
                return None
        except ConnectError as error:
            self.troubles.add(name, error.message)
            return None
        self.troubles.clear(name)
        return live(watched.tracked, Condition.DELETED, _micros(now))

    def _beats(self, now: int) -> set[str]:
        """Who is due for a heartbeat: a few before their time, so that not all are at once."""
        interval = int(self.times.heartbeat * SECOND)
        ages = sorted(
            (
                (now - watched.tracked.at, name)
                for name, watched in self._watched.items()
                if watched.tracked.open
            ),
            reverse=True,
        )
        room = int(len(ages) * self.times.poll / self.times.heartbeat * 1.5) + 5
        early = interval * 0.7
        return {
            name
            for place, (age, name) in enumerate(ages)
            if age >= interval or (age >= early and place < room and len(ages) > room)
        }

    def _rotate(self, found: Mapping[str, msgspec.Raw], began: float) -> int:
        """Look again at topics and schemas of some connectors, all of them within the rotation."""
        now = self._clock()
        due = sorted(
            (watched.topics_due, name)
            for name, watched in self._watched.items()
            if watched.tracked.open and name in found and watched.topics_due <= now
        )
        room = int(len(self._watched) * self.times.poll / self.times.rotation * 1.5) + 10
        steps = []
        for _, name in due[:room]:
            watched = self._watched[name]
            try:
                step = self._again(watched, found[name], _micros(now))
            except ConnectError as error:
                self.troubles.add(name, error.message)
            except Exception as error:  # noqa: BLE001
                self.troubles.fault(name, error)
            else:
                if step is not None:
                    steps.append(step)
            if self._clock() - began > max(self.times.poll, 1.0):
                break
        return self._commit(steps)

    def _again(self, watched: _Watched, raw: msgspec.Raw, now: int) -> Step | None:
        tracked = watched.tracked
        young = now - tracked.at < YOUNG
        watched.topics_due = now / SECOND + (self.times.poll if young else self.times.rotation)
        topics = self._topics(tracked)
        if topics == tracked.topics and watched.lineage and not watched.lineage.changed():
            return None
        entry = read_entry(tracked.name, raw)
        if condition(entry.status) is not Condition.RUNNING:
            return None
        after = self._lineage(watched, tracked, entry)
        step = live(after, Condition.RUNNING, now)
        return step if step.said else None

    def _commit(self, steps: list[Step]) -> int:
        if not steps:
            return 0
        try:
            count = self._write(steps)
        except Exception:
            # What is not on disk was not seen: everything is looked at anew.
            for watched in self._watched.values():
                watched.raw, watched.lineage = b"", None
            raise
        for step in steps:
            after = step.tracked
            for said in step.said:
                log.info("%s %s %s", said.type.value, after.name, said.tracked.run)
            if after.condition is Condition.DELETED:
                del self._watched[after.name]
                self.troubles.forget(after.name)
            else:
                watched = self._watched[after.name]
                watched.tracked = replace(after, status=bare(after.status))
                if after.condition is Condition.LOST:
                    watched.raw = b""  # back again, it may look as it did before
        return count

    def _write(self, steps: list[Step]) -> int:
        count = 0
        with self.outbox.transaction() as transaction:
            for step in steps:
                for said in step.said:
                    body = self._event(said)
                    if body is not None:
                        transaction.append(said.tracked.run, body)
                        count += 1
                if step.tracked.condition is Condition.DELETED:
                    transaction.remove(step.tracked.key)
                else:
                    transaction.put(step.tracked.key, dump(step.tracked))
        return count

    def _read_notes(self) -> None:
        for body in self.outbox.notes(f"restart/{self.name}"):
            self._restarts[body.decode()] = self._clock()

    def _tell_status(self) -> None:
        """Leave what is wrong where `headwater connect status` finds it, when it changes."""
        status = self.troubles.all()
        if status != self._told_status:
            with self.outbox.transaction() as transaction:
                transaction.put(f"{STATUS}{self.name}", msgspec.json.encode(status))
            self._told_status = status


def _micros(seconds: float) -> int:
    return int(seconds * SECOND)
