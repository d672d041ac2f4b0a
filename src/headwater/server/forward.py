"""The log on its way to a Kafka topic: every record in order, at least once, resumed where it stopped.

How far it got stands in the store, per cluster and topic, and moves on only when the broker has the
records. Ingest never waits for it: it reads committed records, and a broker that is away only lets
the log get ahead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.errors import HeadwaterError, UsageError
from headwater.server.ingest.kafka import PREFIX, READ, WRITE, client_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.server.app import App
    from headwater.server.store import Receipt
    from headwater.server.store.database import Connection, ReadConnection

__all__ = ["TOPIC", "ForwardSettings", "forward", "read_target"]

log = logging.getLogger("headwater.server")

TOPIC = "openlineage.events"
RECORDS = 1_000
BYTES = 4 * 1024 * 1024
"""Bytes of bodies in one batch; a single record may be larger."""
IDLE = 0.25
PAUSE = 1.0
LONGEST_PAUSE = 30.0
DELIVERY_SECONDS = 30
LOG_ID = "log_id"
KINDS = ("event", "command")
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SELECT = (
    "SELECT l.seq, l.kind, l.at, l.dictionary, l.body, n.name, j.name FROM log l"
    " LEFT JOIN job j ON j.id = l.job LEFT JOIN namespace n ON n.id = j.namespace"
    " WHERE l.seq > ? ORDER BY l.seq LIMIT ?"
)


class ForwardSettings(msgspec.Struct, kw_only=True):
    """Which topic the log goes to, and how to reach it."""

    bootstrap: str
    topic: str = TOPIC
    config: dict[str, str] = {}


class _Record(NamedTuple):
    seq: int
    kind: int
    at: int
    job: tuple[str, str] | None
    body: bytes


def read_target(text: str) -> tuple[str, str]:
    """BOOTSTRAP[/TOPIC] as the two; raises UsageError."""
    bootstrap, slash, topic = text.rpartition("/")
    if (
        not slash or ":" in topic or bootstrap.endswith("/")
    ):  # no topic; SASL_SSL://HOST has slashes
        bootstrap, topic = text, TOPIC
    if not bootstrap or not _TOPIC_NAME.fullmatch(topic):
        raise UsageError(
            f"{text!r} is not BOOTSTRAP[/TOPIC]", hint="such as kafka-1:9092/openlineage.events"
        )
    return bootstrap, topic


def forward(app: App, settings: ForwardSettings) -> None:
    """Let a server send its log as long as it runs; to be called before it starts."""
    # Retention, which starts with it, keeps what was not sent.
    app.log_forwarded = 0

    async def run(app: App) -> None:
        forwarder, pause = _Forwarder(app, settings), PAUSE
        try:
            while True:
                try:
                    busy = await forwarder.step()
                except Exception as error:  # noqa: BLE001  (a broker that is away comes back)
                    log.warning("the log is not being forwarded, trying again: %s", error)
                    app.warnings["forward"] = f"the log is not being forwarded: {error}"
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                    continue
                pause = PAUSE
                app.warnings.pop("forward", None)
                if not busy:
                    await asyncio.sleep(IDLE)
        finally:
            await asyncio.shield(asyncio.to_thread(forwarder.close))

    app.background.append(run)


class _Forwarder:
    """Reads what the log has beyond the stored position, sends it, and stores how far it got."""

    def __init__(self, app: App, settings: ForwardSettings) -> None:
        self.app = app
        self.settings = settings
        self._producer: Any = None
        self._name = ""
        self._log_id = ""
        self._stop = threading.Event()
        self._limit = RECORDS

    async def step(self) -> bool:
        """Send one batch; answers whether there may be more. Of several servers, one sends."""
        self.app.forwards = await asyncio.to_thread(self.app.store.database.lead)
        if not self.app.forwards:
            return False
        if not self._name:
            await asyncio.to_thread(self._connect)
            await self.app.ingest.perform(lambda store: store.append([], self._know_log))
        batch = await asyncio.to_thread(self._read)
        if not batch:
            return False
        sent, problem = await asyncio.to_thread(self._send, batch)
        if sent:
            await self.app.ingest.perform(lambda store: store.append([], self._note(sent)))
        # After a record that the broker refused, one at a time: not all behind it again and again.
        self._limit = 1 if problem else RECORDS
        if problem:
            raise HeadwaterError(problem)
        return True

    def close(self) -> None:
        """Stop waiting for the broker; what it does not have is sent again after the next start."""
        self._stop.set()
        if self._producer is not None:
            self._producer.purge()
            self._producer.flush(1)

    def _connect(self) -> None:
        from confluent_kafka import Producer

        if self._producer is None:
            self._producer = Producer(
                {
                    "compression.type": "zstd",
                    # The broker's limit decides, on what is sent; the client's is on what is packed.
                    "message.max.bytes": 1_000_000_000,
                    "linger.ms": 5,
                    "message.timeout.ms": DELIVERY_SECONDS * 1_000,
                    **self.settings.config,
                    "logger": client_log,
                    "bootstrap.servers": self.settings.bootstrap,
                    "acks": "all",
                    # Keeps the records of a partition in order when one of them is sent again.
                    "enable.idempotence": True,
                }
            )
        cluster = self._producer.list_topics(self.settings.topic, timeout=10).cluster_id
        self._name = f"forward/{cluster}/{self.settings.topic}"

    def _know_log(self, connection: Connection, _: Sequence[Receipt]) -> None:
        """Give this log a name of its own: several servers may forward to one topic."""
        rows = connection.all(READ, (LOG_ID,))
        if not rows:
            connection.run(WRITE, (LOG_ID, secrets.token_hex(8)))
            rows = connection.all(READ, (LOG_ID,))
        self._log_id = rows[0][0]

    def _note(self, seq: int) -> Callable[[Connection, Sequence[Receipt]], None]:
        def also(connection: Connection, _: Sequence[Receipt]) -> None:
            # A server that lost the lead while it sent must not set the one that took it back.
            if seq > _position(connection, self._name):
                connection.run(WRITE, (self._name, str(seq)))

        return also

    def _read(self) -> list[_Record]:
        """The next records, no more than are sent in a moment."""
        found: list[_Record] = []
        size = 0
        with self.app.store.database.reading() as connection:
            after = _position(connection, self._name)
            ((head,),) = connection.all("SELECT seq FROM head WHERE id = 1")
            self.app.log_forwarded = after
            if head <= after:
                return found
            for row in connection.all(_SELECT, (after, self._limit)):
                seq, kind, at, dictionary, packed, namespace, name = row
                body = self.app.bodies.unpack(connection, dictionary, bytes(packed))
                size += len(body)
                if found and size > BYTES:
                    break
                job = (namespace, name) if name is not None else None
                found.append(_Record(seq, kind, at, job, body))
        return found

    def _send(self, batch: list[_Record]) -> tuple[int, str]:
        """Send records; answers the last one up to which the broker has all, and what went wrong."""
        failed: dict[int, str] = {}
        waiting = {record.seq for record in batch}

        def done(seq: int, error: Any) -> None:
            if error is None:
                waiting.discard(seq)
            else:
                failed[seq] = _explained(seq, error, self.settings.topic)

        for record in batch:
            self._produce(record, done)
        # Each record is delivered or fails within its time; only the end of the server comes first.
        while not self._stop.is_set() and self._producer.flush(0.2) and waiting - failed.keys():
            pass
        first = min(waiting, default=batch[-1].seq + 1)
        sent = max((record.seq for record in batch if record.seq < first), default=0)
        return sent, failed.get(first, "") or next(iter(failed.values()), "")

    def _produce(self, record: _Record, done: Callable[[int, Any], None]) -> None:
        values = {
            "log": self._log_id,
            "seq": str(record.seq),
            "at": str(record.at),
            "kind": KINDS[record.kind],
        }
        if record.kind and record.job is not None:
            # The job of an event is in its body.
            values["job"] = msgspec.json.encode(record.job).decode()
        headers = [(PREFIX + name, value.encode()) for name, value in values.items()]
        while True:
            with contextlib.suppress(BufferError):
                self._producer.produce(
                    self.settings.topic,
                    record.body,
                    _key(record.job),
                    headers=headers,
                    timestamp=record.at // 1_000,
                    on_delivery=lambda error, _, seq=record.seq: done(seq, error),
                )
                return
            if self._stop.is_set():
                return
            self._producer.poll(0.2)


def _position(connection: ReadConnection, name: str) -> int:
    rows = connection.all(READ, (name,))
    return int(rows[0][0]) if rows else 0


def _key(job: tuple[str, str] | None) -> bytes | None:
    """As OpenLineage's own Kafka transport has it: the records of a job stay together, in order."""
    return f"run:{job[0]}/{job[1]}".encode() if job is not None else None


def _explained(seq: int, error: Any, topic: str) -> str:
    from confluent_kafka import KafkaError

    if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
        return f"record {seq} is larger than topic {topic} takes: raise its max.message.bytes"
    return f"record {seq}: {error}"
