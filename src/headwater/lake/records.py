"""From a record of the topic to a row of the lake: masked and hashed by the server's own reader."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from headwater.lineage import secrets
from headwater.lineage.openlineage.checks import EventError, Limits, refuse
from headwater.lineage.openlineage.events import EventKind, canonical, from_micros
from headwater.server.ingest.kafka import PREFIX
from headwater.server.store.write.commands import COMMANDS
from headwater.server.store.write.incoming.event_reader import EventReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.server.store.write.incoming.prepared import PreparedEvent

__all__ = ["UNLIMITED", "Arrival", "RecordReader", "job_node", "reason_of"]

BODY_LIMIT = 10 * 1024 * 1024
"""Bytes of a producer's record; the same as the default of a server."""
KEPT = 64 * 1024
"""Bytes of a refused record that are kept."""
AHEAD = 5 * 60 * 1_000_000
REASON = 1_000
UNLIMITED = Limits(name=sys.maxsize, values=sys.maxsize, datasets=sys.maxsize)
"""Forwarded records passed the configured limits of the server that took them in."""
KINDS = {EventKind.RUN: "run", EventKind.JOB: "job", EventKind.DATASET: "dataset"}
Row = dict[str, Any]


class Arrival(NamedTuple):
    """A record as Kafka has it; times are microseconds."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    headers: Mapping[str, bytes]

    def header(self, name: str) -> str:
        """A header that a server sets when it forwards its log; empty where there is none."""
        return self.headers.get(PREFIX + name, b"").decode(errors="replace")

    @property
    def at(self) -> int:
        """When a server received it, else the broker."""
        text = self.header("at")
        known = int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else None
        return self.timestamp if known is None or known > self.timestamp + AHEAD else known

    @property
    def seq(self) -> int | None:
        """Its place in the log of a server."""
        text = self.header("seq")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else None


def job_node(namespace: str, name: str) -> str:
    """A job as the tables name it."""
    return f"job:{namespace}:{name}"


def reason_of(text: str) -> str:
    """Why a record is refused, on one line and without credentials."""
    return secrets.redact(" ".join(text.split()))[:REASON]


class RecordReader:
    """Makes rows of records; keeps what it met, as a server does, since most comes again."""

    def __init__(self) -> None:
        self._sent = EventReader(Limits())
        self._forwarded = EventReader(UNLIMITED)

    def read(self, record: Arrival) -> tuple[str, Row]:
        """The row of a record and the table it belongs to: `events`, or `refused` with a reason."""
        value = record.value
        try:
            if value is None:
                return _refused(record, "the record has no value")
            if record.header("kind") == "command":
                return "events", _command(record, value)
            forwarded = bool(record.header("log"))
            if not forwarded and len(value) > BODY_LIMIT:
                return _refused(record, f"larger than {BODY_LIMIT} bytes")
            reader = self._forwarded if forwarded else self._sent
            item = reader.prepare(value, now=from_micros(record.at))
        except EventError as error:
            return _refused(record, str(error))
        except Exception as error:  # noqa: BLE001  (one record must not hold up those behind it)
            return _refused(record, f"the reader failed on it: {error!r}")
        return "events", _event(record, item)

    def trim(self) -> None:
        """Let go of the older half of what was met, once there is too much of it."""
        self._sent.trim()
        self._forwarded.trim()


def _event(record: Arrival, item: PreparedEvent) -> Row:
    if item.job is not None:
        node = job_node(*item.job.key)
    else:
        namespace, name = item.datasets[0][1].key
        node = f"dataset:{namespace}:{name}"
    return {
        **_common(record),
        "time": item.time,
        "kind": KINDS[item.kind],
        "type": item.type.value if item.kind is EventKind.RUN else None,
        "node": node,
        "run": str(UUID(bytes=item.run.key)) if item.run is not None else None,
        "hash": item.hash,
        "body": item.raw.decode(),
    }


class _CommandRecord(msgspec.Struct):
    command: str
    time: int | None = None
    run: str | None = None


_command_of = msgspec.json.Decoder(_CommandRecord).decode
_job_of = msgspec.json.Decoder(tuple[str, str]).decode


def _command(record: Arrival, value: bytes) -> Row:
    try:
        read = _command_of(value)
    except msgspec.DecodeError as error:
        refuse("$", f"is no command: {error}")
    if not record.header("log") or read.command not in COMMANDS:
        refuse("command", "is not one that a server's log has")
    job = record.headers.get(PREFIX + "job")
    return {
        **_common(record),
        "time": read.time if read.time is not None else record.at,
        "kind": "command",
        "type": read.command,
        "node": job_node(*_job_of(job)) if job else None,
        "run": read.run,
        "hash": hashlib.sha256(value).digest(),
        "body": value.decode(),
    }


def _common(record: Arrival) -> Row:
    return {
        "arrived": record.at,
        "log": record.header("log") or None,
        "seq": record.seq,
        "topic": record.topic,
        "kafka_partition": record.partition,
        "kafka_offset": record.offset,
    }


def _refused(record: Arrival, reason: str) -> tuple[str, Row]:
    value, body = record.value or b"", None
    if len(value) <= KEPT:
        with contextlib.suppress(ValueError, RecursionError):
            body = canonical(secrets.clean_value(msgspec.json.decode(value))).decode()
    row = {
        "arrived": record.timestamp,
        "reason": reason_of(reason),
        "topic": record.topic,
        "kafka_partition": record.partition,
        "kafka_offset": record.offset,
        "size": len(value),
        "body": body,
    }
    return "refused", row
