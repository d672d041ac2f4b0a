"""Flow: records a second, lag and last record of live runs; rolled up, never in the log."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from headwater.insight import REPORTS, grows
from headwater.lineage.openlineage.events import EventProblem, Limits, iso, micros
from headwater.server.http import body_items
from headwater.server.store.database import within
from headwater.server.store.read.observed import Lag, Lagging
from headwater.server.store.write.incoming.name_limits import too_long

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.server.app import App
    from headwater.server.store import Store
    from headwater.server.store.database import ReadConnection

__all__ = [
    "FlowDataset",
    "FlowRollups",
    "GrowingLag",
    "Rollup",
    "Sample",
    "growing_lags",
    "keep_flow",
    "last_records",
    "read_flow",
    "read_lags",
]

MINUTE, HOUR = 60, 3_600
KEPT = {MINUTE: 24 * HOUR, HOUR: 90 * 24 * HOUR}
SECOND = 1_000_000
CURRENT = 120
RECENT_SECONDS = 900
LIMIT = 10_000
CANDIDATES = 200
LIMITS = Limits()
MOST_LAG = 2**63 - 1
DIRECTIONS = {"input": 0, "output": 1}
Key = tuple[bytes, str, str, int]


class FlowDataset(msgspec.Struct):
    """The dataset a sample is about."""

    namespace: str
    name: str


class Sample(msgspec.Struct):
    """One sample of one run's use of one dataset, as a producer posts it every 10 s."""

    run: UUID
    time: datetime
    dataset: FlowDataset
    direction: str
    recordsPerSecond: float | None = None  # noqa: N815
    bytesPerSecond: float | None = None  # noqa: N815
    lag: int | None = None
    lastRecordAt: datetime | None = None  # noqa: N815


class _Samples(msgspec.Struct):
    """A body that is an object."""

    samples: msgspec.Raw


class Rollup(msgspec.Struct, array_like=True):
    """The samples of one interval in one."""

    count: int = 0
    records: float = 0.0
    peak: float = 0.0
    data: float = 0.0
    lag: int | None = None
    last: int | None = None
    time: int = 0
    moved: int | None = None
    """When records were last seen to move."""

    @property
    def wrote(self) -> int | None:
        """When the last record was written, as far as the samples say."""
        # Records bear the time that their producer gave them, which may lie ahead.
        last = 0 if self.last is None else min(self.last, self.time)
        # Intervals of older versions do not say when records moved in them.
        moved = self.time if self.moved is None and self.peak > 0 else self.moved
        return max(last, moved or 0) or None

    def add(self, sample: Sample, when: int, last: int | None) -> None:
        """Take one more sample in, with its time and that of its last record in microseconds."""
        rate = sample.recordsPerSecond or 0.0
        self.count += 1
        self.records += rate
        self.peak = max(self.peak, rate)
        self.data += sample.bytesPerSecond or 0.0
        if rate > 0:
            self.moved = max(self.moved or 0, when)
        if when >= self.time:
            self.time = when
            self.lag = sample.lag if sample.lag is not None else self.lag
        if last is not None:
            self.last = max(self.last or 0, last)


_wrapped = msgspec.json.Decoder(_Samples)
_sample = msgspec.json.Decoder(Sample)
_rollup = msgspec.msgpack.Decoder(Rollup)


class FlowRollups:
    """The intervals now being filled."""

    def __init__(self) -> None:
        self._filling: dict[tuple[int, int, Key], Rollup] = {}
        self.dropped = 0

    def take(self, body: bytes, limit: int) -> tuple[list[Sample], list[dict[str, Any]]]:
        """Take in at most `limit` samples; answers those taken and, by position, what was wrong."""
        text = body.lstrip()
        items = body_items.array(text if text[:1] == b"[" else _wrapped.decode(text).samples, limit)
        taken, problems = [], []
        for i, raw in enumerate(items):
            try:
                sample = _sample.decode(raw)
                self._add(sample)
            except (msgspec.DecodeError, ValueError) as error:
                problems.append({"sample": i, "problems": [EventProblem("sample", str(error))]})
            else:
                taken.append(sample)
        return taken, problems

    def _add(self, sample: Sample) -> None:
        if sample.time.tzinfo is None or (
            sample.lastRecordAt and sample.lastRecordAt.tzinfo is None
        ):
            raise ValueError("a time has no time zone")
        if sample.direction not in DIRECTIONS:
            raise ValueError("direction is neither input nor output")
        dataset = sample.dataset
        for text in (dataset.namespace, dataset.name):
            if "\0" in text:
                raise ValueError("the dataset's name holds a NUL")
            if problem := too_long(text, LIMITS.name):
                raise ValueError(f"the dataset's name has {problem}")
        if sample.lag is not None and not -MOST_LAG <= sample.lag <= MOST_LAG:
            raise ValueError("lag does not fit into 64 bits")
        # An interval that lies ahead would stay in memory, and in the way of others, until then.
        if sample.time > datetime.now(timezone.utc) + LIMITS.skew:
            raise ValueError("time lies in the future")
        key = (sample.run.bytes, dataset.namespace, dataset.name, DIRECTIONS[sample.direction])
        when = micros(sample.time)
        last = None if sample.lastRecordAt is None else micros(sample.lastRecordAt)
        for width in KEPT:
            place = (width, when // SECOND // width * width, key)
            rollup = self._filling.get(place)
            if rollup is None:
                if len(self._filling) >= LIMIT:
                    self.dropped += 1
                    return
                rollup = self._filling[place] = Rollup()
            rollup.add(sample, when, last)

    def forget(self) -> None:
        """Let go of what is not written yet."""
        self._filling.clear()

    def flush(self, store: Store, now: float) -> None:
        """Write the intervals out, drop those that are over, and delete rows past their time."""
        if not self._filling:
            return
        connection = store.connection
        store.begin()
        sql = (
            "INSERT INTO flow (run, dataset_namespace, dataset_name, direction, width, bucket, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (run, dataset_namespace, dataset_name, direction, width, bucket)"
            " DO UPDATE SET state = excluded.state"
        )
        for (width, bucket, key), rollup in list(self._filling.items()):
            connection.run(sql, (*key, width, bucket, msgspec.msgpack.encode(rollup)))
            if bucket + width + MINUTE < now:
                del self._filling[width, bucket, key]
        for width, age in KEPT.items():
            sql = "DELETE FROM flow WHERE width = ? AND bucket < ?"
            connection.run(sql, (width, int(now) - age))
        connection.commit()


def read_flow(
    connection: ReadConnection, *, run: UUID | None = None, since: int | None = None
) -> list[dict[str, Any]]:
    """What flows now, or what flowed in a run since a moment (in seconds since 1970)."""
    columns = (
        "SELECT run, dataset_namespace, dataset_name, direction, width, bucket, state FROM flow"
    )
    now = int(time.time())
    if run is not None:
        start = since if since is not None else now - HOUR
        width = MINUTE if now - start <= KEPT[MINUTE] else HOUR
        sql = columns + " WHERE run = ? AND width = ? AND bucket >= ? ORDER BY bucket LIMIT ?"
        rows = connection.all(sql, (run.bytes, width, start, LIMIT))
    else:
        sql = columns + " WHERE width = ? AND bucket >= ? ORDER BY bucket LIMIT ?"
        rows = connection.all(sql, (MINUTE, now - CURRENT, LIMIT))
    found: dict[Any, dict[str, Any]] = {}
    for uuid, namespace, name, direction, width, bucket, state in rows:
        rollup = _rollup.decode(bytes(state))
        key = (bytes(uuid), namespace, name, direction, bucket if run is not None else 0)
        found[key] = {
            "run": str(UUID(bytes=bytes(uuid))),
            "dataset": {"namespace": namespace, "name": name},
            "direction": "output" if direction else "input",
            "time": iso(bucket * SECOND),
            "seconds": width,
            "recordsPerSecond": round(rollup.records / max(1, rollup.count), 3),
            "peakRecordsPerSecond": rollup.peak,
            "bytesPerSecond": round(rollup.data / max(1, rollup.count), 3),
            "lag": rollup.lag,
            "lastRecordAt": iso(rollup.last) if rollup.last else None,
        }
    return list(found.values())


def read_lags(connection: ReadConnection, runs: Collection[bytes]) -> dict[bytes, Lagging]:
    """Runs that are behind in an input by more than they read of it in a minute.

    Only inputs that were sampled of late count; `since` looks back a quarter of an hour at most.
    """
    now = int(time.time())
    sql = (
        "SELECT run, dataset_namespace, dataset_name, bucket, state FROM flow"
        " WHERE direction = 0 AND width = ? AND bucket >= ? AND run IN ({in})"
    )
    rows = within(connection, sql, list(runs), (MINUTE, now - RECENT_SECONDS))
    inputs: dict[bytes, set[tuple[str, str]]] = defaultdict(set)
    over: set[tuple[bytes, str, str]] = set()
    behind: dict[tuple[bytes, str, str], Lag] = {}
    for uuid, space, name, bucket, state in sorted(rows, key=lambda row: -row[3]):
        key, rollup = (bytes(uuid), space, name), _rollup.decode(bytes(state))
        rate = rollup.records / max(1, rollup.count)
        inputs[key[0]].add((space, name))
        sampled = key in behind or bucket >= now - CURRENT
        if key in over or not sampled or (rollup.lag or 0) <= MINUTE * rate:
            over.add(key)
            continue
        newest = behind.get(key) or Lag(rollup.lag or 0, name, rate, 0)
        behind[key] = newest._replace(since=bucket * SECOND)
    found: dict[bytes, list[Lag]] = defaultdict(list)
    for key, lag in behind.items():
        found[key[0]].append(lag)
    return {
        run: Lagging(sorted(lags, key=lambda one: (-one.records, one.dataset)), len(inputs[run]))
        for run, lags in found.items()
    }


def last_records(
    connection: ReadConnection, runs: Collection[bytes], names: Collection[tuple[str, str]]
) -> dict[bytes, int | None]:
    """When runs last wrote a record to a dataset, under any of its names; None where none flowed.

    Only runs that sampled what they write to it.
    """
    sql = (
        "SELECT run, state FROM flow WHERE direction = 1 AND dataset_namespace = ?"
        " AND dataset_name = ? AND run IN ({in})"
    )
    found: dict[bytes, int | None] = {}
    for name in names:
        for uuid, state in within(connection, sql, runs, name):
            run, wrote = bytes(uuid), _rollup.decode(bytes(state)).wrote
            found[run] = max(found.get(run) or 0, wrote or 0) or None
    return found


class GrowingLag(NamedTuple):
    """An input in which a run falls behind: the lag of its first and of its last report looked at."""

    run: bytes
    namespace: str
    name: str
    before: int
    lag: int
    since: int


def growing_lags(connection: ReadConnection) -> list[GrowingLag]:
    """Inputs in which runs are a minute of their work behind and fall further behind, the worst first."""
    now = int(time.time())
    columns = "SELECT run, dataset_namespace, dataset_name, bucket, state FROM flow"
    sql = columns + " WHERE direction = 0 AND width = ? AND bucket >= ? ORDER BY bucket LIMIT ?"
    newest = {
        (bytes(uuid), space, name): _rollup.decode(bytes(state))
        for uuid, space, name, _, state in connection.all(sql, (MINUTE, now - CURRENT, LIMIT))
    }
    behind = sorted(
        (-(one.lag or 0), key)
        for key, one in newest.items()
        if (one.lag or 0) > MINUTE * one.records / max(1, one.count)
    )[:CANDIDATES]
    sql = columns + " WHERE direction = 0 AND width = ? AND bucket >= ? AND run IN ({in})"
    reports: dict[tuple[bytes, str, str], list[tuple[int, int]]] = defaultdict(list)
    rows = within(connection, sql, {key[0] for _, key in behind}, (MINUTE, now - RECENT_SECONDS))
    for uuid, space, name, bucket, state in rows:
        lag = _rollup.decode(bytes(state)).lag
        if lag is not None:
            reports[bytes(uuid), space, name].append((bucket, lag))
    found = []
    for _, key in behind:
        last = sorted(reports[key])[-REPORTS:]
        if grows([lag for _, lag in last]):
            (since, before), (_, lag) = last[0], last[-1]
            found.append(GrowingLag(*key, before, lag, since * SECOND))
    return found


async def keep_flow(app: App) -> None:
    """Write flow out every few seconds."""
    while True:
        await asyncio.sleep(app.settings.flow_every)
        try:
            await app.ingest.perform(lambda store: app.flow.flush(store, time.time()))
        except Exception:  # noqa: BLE001  (flow is lossy by design; the next round tries again)
            app.flow.dropped += 1
