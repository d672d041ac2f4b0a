"""The agent of one Connect cluster: poll, compare with what was emitted, write what changed."""

from __future__ import annotations

import hashlib
import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from headwater.connect.agent.connector_states import ConnectorStore
from headwater.connect.agent.orders import Orders
from headwater.connect.agent.problems import Problems
from headwater.connect.agent.snapshot import SnapshotReader
from headwater.connect.debezium.runs import DebeziumRuns
from headwater.connect.debezium.task_jobs import TaskRunCloser
from headwater.connect.life.intervals import Intervals, micros
from headwater.connect.life.state import Condition, TrackedConnector, condition
from headwater.connect.life.steps import next_step
from headwater.connect.life.watched import WatchedConnector
from headwater.connect.services.endpoint import ConnectError, ProblemKind
from headwater.connect.services.lineage_server import NoLookup
from headwater.connect.services.rest import read_entry
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import msgspec

    from headwater.connect.derive.refresh import Derivation
    from headwater.connect.life.steps import Emission, Step
    from headwater.connect.model import Connector, Derived
    from headwater.connect.services.lineage_server import RunLookup
    from headwater.connect.services.rest import ConnectRest
    from headwater.emit import Outbox

# A restart is ordered, then done: a poll sooner than this may still show the time before.
RESTART_SETTLES = 2.0
# So many connectors are asked about their topics in every poll, unless it takes more than one part in
# so many of the time.
FEW, SHARE = 100, 20
# The steps of so many connectors are one transaction: few enough that the first are sent early.
BATCH = 100
# Only silence counts as being gone: a cluster that refuses us, or answers what we do not
# understand, may be as healthy as ever.
UNANSWERED = (ProblemKind.UNREACHABLE, ProblemKind.TIMEOUT, ProblemKind.UNHEALTHY)


class ConnectorLineage(Protocol):
    """What the agent needs to know about lineage: one object for one cluster."""

    def read_root(self, root: Mapping[str, str]) -> None:
        """Take in Connect's answer about itself: version and Kafka cluster id."""

    def derive(self, connector: Connector) -> Derivation:
        """The lineage of a connector."""

    def unknown(self, name: str) -> Derived:
        """The lineage of a connector of which only the name is known."""

    def claim_name(self, tracked: TrackedConnector) -> str | None:
        """Take the job's name for this cluster; the conflict, if another cluster has it."""

    def problems(self) -> Mapping[str, str]:
        """What cannot be asked beside Connect itself now, by kind."""

    def event(self, emission: Emission) -> bytes | None:
        """The bytes of an event; None where Debezium reports the run itself."""


class ClusterAgent:
    """Polls one Connect cluster and emits what changed."""

    def __init__(
        self,
        name: str,
        connect: ConnectRest,
        outbox: Outbox,
        lineage: ConnectorLineage,
        *,
        intervals: Intervals | None = None,
        clock: Callable[[], float] = time.time,
        lookup: RunLookup | None = None,
    ) -> None:
        self.name = name
        self.connect = connect
        self.outbox = outbox
        self.intervals = intervals or Intervals()
        self.problems = Problems(name)
        self._lineage = lineage
        self._reader = SnapshotReader(connect, lineage, self.problems, self.intervals, clock)
        self._clock = clock
        lookup = lookup or NoLookup()
        self._runs = DebeziumRuns(lookup, self.intervals)
        self._task_runs = TaskRunCloser(lookup)
        self._root_is_read, self._polled_at = False, 0
        self._orders = Orders()
        self._restarts: dict[str, float] = {}
        self._unanswered_since: float | None = None
        self._failures = 0
        self._store = ConnectorStore(name, outbox, self.problems, lineage.event)
        self._watched = self._store.watched

    @property
    def tracked(self) -> list[TrackedConnector]:
        """Every connector that is known now."""
        return [watched.tracked for watched in list(self._watched.values())]

    @property
    def has_polled(self) -> bool:
        """Whether Connect has answered a poll since this agent began."""
        return self._polled_at > 0

    @property
    def is_failing(self) -> bool:
        """Whether Connect did not answer the last poll."""
        return self._failures > 0

    @property
    def poll_delay(self) -> float:
        """How long to wait before the next poll."""
        return self.intervals.poll_delay(self._failures)

    def stop(self) -> None:
        """Write no problems any more, also in a poll that is still under way."""
        self._store.stopped = True

    def poll(self) -> int:
        """Poll once, emit what changed, and return the number of events."""
        began = self._clock()
        try:
            answers = self._poll_connect()
        except ConnectError as error:
            self.problems.add("", error.message)
            self._failures += 1
            count = self._unanswered(error.trouble, began)
        else:
            self.problems.clear("")
            self._unanswered_since, self._failures = None, 0
            self._take_orders()
            count, steps = 0, self._steps(answers, began)
            while some := list(islice(steps, BATCH)):
                count += self._store.commit(some)
            count += self._refresh(answers, began)
            self._polled_at = micros(began)
        closing = self._task_runs.steps(self._watched.values(), micros(began))
        count += self._store.commit(closing)
        self.problems.set_services(self._lineage.problems())
        self._store.write_problems()
        return count

    def _take_orders(self) -> None:
        """Take the notes of commands: after the answer that may show what they ordered."""
        for order in self._orders.take(self.outbox, self.connect.urls, self._polled_at):
            watched = self._watched.get(order.name)
            # A poll may have seen the restart before its note was there.
            unseen = watched is None or watched.tracked.started <= order.at
            if order.action == "restart" and unseen:
                self._restarts[order.name] = self._clock()

    def _poll_connect(self) -> dict[str, msgspec.Raw]:
        unhealthy = self.connect.unhealthy()
        if unhealthy:
            raise ConnectError(ProblemKind.UNHEALTHY, f"not healthy: {unhealthy}")
        if not self._root_is_read:
            try:
                self._lineage.read_root(self.connect.root())
            except ConnectError as error:
                if error.trouble is not ProblemKind.MISSING:
                    raise
            self._root_is_read = True
        return self.connect.poll()

    def _unanswered(self, trouble: ProblemKind, now: float) -> int:
        """A cluster that cannot be polled: nothing is emitted until the grace time has passed."""
        if trouble not in UNANSWERED:
            self._unanswered_since = None
        elif self._unanswered_since is None:
            self._unanswered_since = now
        for watched in self._watched.values():
            if watched.tracked.by_debezium:  # a worker that dies does not end its runs
                watched.forget_answer()
        since = self._unanswered_since
        if since is None or now - since < self.intervals.grace:
            return 0
        self._root_is_read = False
        return self._store.commit(
            [
                self._runs.step(watched, watched.tracked, Condition.LOST, micros(now))
                for watched in self._watched.values()
                if watched.tracked.open
            ]
        )

    def _steps(self, answers: Mapping[str, msgspec.Raw], now: float) -> Iterator[Step]:
        heartbeats = self.intervals.heartbeats_due(
            (micros(now) - watched.tracked.emitted_at, name)
            for name, watched in self._watched.items()
            if watched.tracked.open
        )
        for name, raw in answers.items():
            examine = partial(self._examine, name, raw, now, name in heartbeats)
            step = self._guarded(name, examine)
            if step is not None:
                yield step
        for name in self._watched.keys() - answers.keys():
            step = self._guarded(name, partial(self._missing, name, now))
            if step is not None:
                yield step

    def _guarded(self, name: str, examine: Callable[[], Step | None]) -> Step | None:
        """Make the step of one connector; a fault of it costs no other its step."""
        try:
            return examine()
        except ConnectError as error:
            self.problems.add(name, error.message)
        except Exception as error:  # noqa: BLE001
            self.problems.add_fault(name, error)
        return None

    def _examine(self, name: str, raw: msgspec.Raw, now: float, heartbeat: bool) -> Step | None:
        answer = hashlib.blake2b(raw, digest_size=16).digest()
        watched = self._watched.get(name)
        restarted = now - self._restarts.get(name, now) >= RESTART_SETTLES
        due = heartbeat or restarted or watched is None
        if not due and watched and not watched.needs_examining(answer, micros(now)):
            return None
        if not self.problems.may_retry(name, self._clock()):
            return None
        entry = read_entry(name, raw)
        if watched is None:
            unknown = TrackedConnector(cluster=self.name, name=name)
            watched = self._watched[name] = WatchedConnector(unknown, self._polled_at)
        watched.examine(answer)
        seen = watched.settled(entry.status, micros(now), self.intervals.grace)
        tracked = self._reader.read(watched, entry, seen)
        heartbeat = watched.finished_moving(tracked, seen) or heartbeat
        step = self._runs.step(
            watched, tracked, seen, micros(now), heartbeat=heartbeat, restarted=restarted
        )
        step = self._orders.sign(step, seen)
        started = any(one.type is EventType.START for one in step.emissions)
        reported = step.emissions or step.tracked.by_debezium
        if started or seen is Condition.RESTARTING or (restarted and reported):
            self._restarts.pop(name, None)
        watched.examined(answer, bool(step.emissions))
        self.problems.clear(name)
        return step if step.emissions or step.tracked != watched.tracked else None

    def _missing(self, name: str, now: float) -> Step | None:
        """A connector that is not listed is deleted only when Connect answers 404 for it."""
        watched = self._watched[name]
        if watched.tracked.condition is Condition.DELETED or self.connect.exists(name):
            return None
        self.problems.clear(name)
        return self._runs.step(watched, watched.tracked, Condition.DELETED, micros(now))

    def _refresh(self, answers: Mapping[str, msgspec.Raw], began: float) -> int:
        """Ask again for topics and schemas, of as many connectors as one poll may ask for.

        Those come first that are due: what they lack is reported by the poll that finds it. All
        have their turn; more than that, up to `FEW`, are asked for while it takes little of the time.
        """
        now = self._clock()
        turn = self.intervals.rotation_size(len(self._watched))
        due = sorted(
            (watched.refresh_at, name)
            for name, watched in self._watched.items()
            if watched.tracked.open and name in answers and watched.refreshed_at < began
        )
        steps = []
        for place, (_, name) in enumerate(due[: max(turn, FEW)]):
            if place >= turn and self._clock() - now > self.intervals.poll / SHARE:
                break
            refresh = partial(self._refresh_one, name, answers[name], micros(now))
            step = self._guarded(name, refresh)
            if step is not None:
                steps.append(step)
            if self._clock() - began > max(self.intervals.poll, 1.0):
                break
        return self._store.commit(steps)

    def _refresh_one(self, name: str, raw: msgspec.Raw, now: int) -> Step | None:
        watched = self._watched[name]
        topics = self._reader.changed_topics(watched, now)
        if topics is None:
            return None
        entry = read_entry(name, raw)
        if condition(entry.status) is not Condition.RUNNING:
            return None
        if watched.tracked.suppressed:
            watched.forget_answer()  # ask the server for the run that another producer has started
        after = self._reader.derive(watched, watched.tracked, entry, topics)
        step = next_step(after, Condition.RUNNING, now)
        return step if step.emissions else None
