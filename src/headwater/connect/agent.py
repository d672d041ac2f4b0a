"""The watcher of one Connect cluster: poll, compare, and write what is to be said."""

from __future__ import annotations

import hashlib
import time
from itertools import islice
from typing import TYPE_CHECKING

from headwater.connect.access import ConnectError, Trouble
from headwater.connect.answers import read_entry
from headwater.connect.joining import Joiner
from headwater.connect.life import live
from headwater.connect.memory import Memory
from headwater.connect.pace import Times, micros
from headwater.connect.parts import Closer
from headwater.connect.reader import Reader, Watched
from headwater.connect.runs import Nobody
from headwater.connect.state import Condition, Tracked, condition
from headwater.connect.trouble import Troubles
from headwater.lineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import msgspec

    from headwater.connect.client import Connect
    from headwater.connect.life import Said, Step
    from headwater.connect.lineage import Lineage
    from headwater.connect.model import Connector, Derived
    from headwater.connect.runs import Asked
    from headwater.emit import Outbox

# A restart is ordered, then done: a poll so soon after it may still see the time before.
RESTART_SETTLES = 2.0
# So many connectors' steps are one transaction: small enough that the first events go out early.
BATCH = 100
# Only silence counts as being gone. A cluster that refuses us, or whose answer is not understood,
# may be as well as ever.
GONE = (Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.UNHEALTHY)


def restart_topic(url: str) -> str:
    """Where word of a restart is left for the agent of the cluster at that address."""
    return f"restart/{url.rstrip('/')}"


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
        around: Callable[[], Mapping[str, str]] = dict,
        runs: Asked | None = None,
    ) -> None:
        self.name = name
        self.connect = connect
        self.outbox = outbox
        self.times = times or Times()
        self.troubles = Troubles(name)
        self._reader = Reader(
            connect, self.troubles, derive=derive, nothing=nothing, claim=claim,
            times=self.times, clock=clock,
        )  # fmt: skip
        self._clock = clock
        self._on_root = on_root
        self._around = around
        runs = runs or Nobody()
        self._joiner, self._closer = Joiner(runs, self.times), Closer(runs)
        self._known_root, self._polled = False, 0
        self._restarts: dict[str, float] = {}
        self._silent: float | None = None
        self._failures = 0
        self._memory = Memory(name, outbox, self.troubles, event)
        self._watched = self._memory.watched

    @property
    def tracked(self) -> list[Tracked]:
        """Every connector that is known now."""
        return [watched.tracked for watched in list(self._watched.values())]

    @property
    def wait(self) -> float:
        """How long to wait before the next look."""
        return self.times.wait(self._failures)

    def tick(self) -> int:
        """Look once, say what there is to say, and return the number of events."""
        began = self._clock()
        for url in self.connect.urls:
            for body in self.outbox.notes(restart_topic(url)):
                self._restarts[body.decode()] = began
        try:
            found = self._look()
        except ConnectError as error:
            self.troubles.add("", error.message)
            self._failures += 1
            count = self._silence(error.trouble, began)
        else:
            self.troubles.clear("")
            self._silent, self._failures = None, 0
            count, steps = 0, self._steps(found, began)
            while some := list(islice(steps, BATCH)):
                count += self._memory.commit(some)
            count += self._rotate(found, began)
            self._polled = micros(began)
        count += self._memory.commit(self._closer.steps(self._watched.values(), micros(began)))
        self.troubles.around(self._around())
        self._memory.tell()
        return count

    def _look(self) -> dict[str, msgspec.Raw]:
        unwell = self.connect.unhealthy()
        if unwell:
            raise ConnectError(Trouble.UNHEALTHY, f"not healthy: {unwell}")
        if not self._known_root:
            try:
                self._on_root(self.connect.root())
            except ConnectError as error:
                if error.trouble is not Trouble.MISSING:
                    raise
            self._known_root = True
        return self.connect.poll()

    def _silence(self, trouble: Trouble, now: float) -> int:
        """A cluster that cannot be asked: nothing to say until it is gone past the grace time."""
        if trouble not in GONE:
            self._silent = None
        elif self._silent is None:
            self._silent = now
        for watched in self._watched.values():
            if watched.tracked.theirs:  # a worker that dies says nothing of its runs
                watched.forget()
        if self._silent is None or now - self._silent < self.times.grace:
            return 0
        self._known_root = False
        return self._memory.commit(
            [
                self._joiner.step(watched, watched.tracked, Condition.LOST, micros(now))
                for watched in self._watched.values()
                if watched.tracked.open
            ]
        )

    def _steps(self, found: Mapping[str, msgspec.Raw], now: float) -> Iterator[Step]:
        beats = self.times.beats(
            (micros(now) - watched.tracked.at, name)
            for name, watched in self._watched.items()
            if watched.tracked.open
        )
        for name, raw in found.items():
            step = self._guarded(name, lambda n=name, r=raw: self._seen(n, r, now, n in beats))  # type: ignore[misc]
            if step is not None:
                yield step
        for name in self._watched.keys() - found.keys():
            step = self._guarded(name, lambda n=name: self._missing(n, now))  # type: ignore[misc]
            if step is not None:
                yield step

    def _guarded(self, name: str, look: Callable[[], Step | None]) -> Step | None:
        """One broken connector costs no other its turn."""
        try:
            return look()
        except ConnectError as error:
            self.troubles.add(name, error.message)
        except Exception as error:  # noqa: BLE001
            self.troubles.fault(name, error)
        return None

    def _seen(self, name: str, raw: msgspec.Raw, now: float, beat: bool) -> Step | None:
        mark = hashlib.blake2b(raw, digest_size=16).digest()
        watched = self._watched.get(name)
        restarted = now - self._restarts.get(name, now) >= RESTART_SETTLES
        due = beat or restarted or (watched and (watched.pending or watched.late(micros(now))))
        if watched is not None and watched.raw == mark and not due:
            return None
        if not self.troubles.retry(name, self._clock()):
            return None
        entry = read_entry(name, raw)
        if watched is None:
            fresh = Tracked(cluster=self.name, name=name)
            watched = self._watched[name] = Watched(fresh, self._polled)
        watched.stir(mark)
        seen = watched.settled(condition(entry.status), micros(now), self.times.grace)
        tracked = self._reader.read(watched, entry, seen)
        beat = watched.arrived(tracked, seen) or beat
        step = self._joiner.step(watched, tracked, seen, micros(now), beat, restarted)
        started = any(said.type is EventType.START for said in step.said)
        told = step.said or step.tracked.theirs
        if started or seen is Condition.RESTARTING or (restarted and told):
            self._restarts.pop(name, None)
        watched.raw = mark
        watched.moved = watched.moved and not step.said
        self.troubles.clear(name)
        return step if step.said or step.tracked != watched.tracked else None

    def _missing(self, name: str, now: float) -> Step | None:
        """A connector that is not listed is gone only when Connect says so."""
        watched = self._watched[name]
        if watched.tracked.condition is Condition.DELETED or self.connect.exists(name):
            return None
        self.troubles.clear(name)
        return self._joiner.step(watched, watched.tracked, Condition.DELETED, micros(now))

    def _rotate(self, found: Mapping[str, msgspec.Raw], began: float) -> int:
        """Look again at topics and schemas of some connectors, all of them within the rotation."""
        now = self._clock()
        due = sorted(
            (watched.due, name)
            for name, watched in self._watched.items()
            if watched.tracked.open and name in found and watched.due <= now
        )
        steps = []
        for _, name in due[: self.times.room(len(self._watched))]:
            step = self._guarded(name, lambda n=name: self._again(n, found[n], micros(now)))  # type: ignore[misc]
            if step is not None:
                steps.append(step)
            if self._clock() - began > max(self.times.poll, 1.0):
                break
        return self._memory.commit(steps)

    def _again(self, name: str, raw: msgspec.Raw, now: int) -> Step | None:
        watched = self._watched[name]
        topics = self._reader.outdated(watched, now)
        if topics is None:
            return None
        entry = read_entry(name, raw)
        if condition(entry.status) is not Condition.RUNNING:
            return None
        after = self._reader.lineage(watched, watched.tracked, entry, topics)
        step = live(after, Condition.RUNNING, now)
        return step if step.said else None
