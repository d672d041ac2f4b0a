"""The log: one record for each event and each change, chained to the one before."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from headwater.lineage.openlineage.events import EventKind, EventType

if TYPE_CHECKING:
    from headwater.server.store.write.incoming.prepared import PreparedEvent
    from headwater.server.store.write.session import WriteSession

__all__ = ["COMMAND_TYPE", "DATASET_EVENT", "JOB_EVENT", "TYPES", "Log"]

EVENT, COMMAND = 0, 1
TYPES = {kind: i for i, kind in enumerate(EventType)}
JOB_EVENT, DATASET_EVENT, COMMAND_TYPE = 6, 7, 8
_RUN, _DATASET = EventKind.RUN, EventKind.DATASET
HOUR = 3_600_000_000
UNKNOWN = -1
"""The sequence number before the head was read, and after a commit that failed."""


class Log:
    """The end of the log as the one writer knows it, and what adds to it."""

    def __init__(self, session: WriteSession) -> None:
        self._session = session
        self.seq = UNKNOWN
        self.chain = b""

    def append_event(
        self, item: PreparedEvent, seq: int, at: int, job: int | None, run: int | None
    ) -> None:
        """Add an event under the sequence number that it was given."""
        kind = TYPES[item.type] if item.kind is _RUN else JOB_EVENT
        if item.kind is _DATASET:
            kind = DATASET_EVENT
        self._append(EVENT, seq, at, item.time, kind, item.hash, item.raw, job, run)
        self._session.count(item.time // HOUR, kind)

    def append_command(
        self, body: bytes, at: int, when: int, job: int | None = None, run: int | None = None
    ) -> None:
        """Add a change made by hand, as the next record."""
        self.seq += 1
        digest = hashlib.sha256(body).digest()
        self._append(COMMAND, self.seq, at, when, COMMAND_TYPE, digest, body, job, run)

    def _append(
        self, kind: int, seq: int, at: int, when: int, event_type: int, digest: bytes, body: bytes,
        job: int | None, run: int | None,
    ) -> None:  # fmt: skip
        link = self.chain + digest + struct.pack(">qqb", seq, at, kind)
        self.chain = hashlib.sha256(link).digest()
        packed = self._session.packer.pack(body)
        row = (seq, kind, at, when, event_type, digest, self.chain, job, run, *packed)
        self._session.rows["log"].append(row)

    def flush(self) -> None:
        """Write the working set, a new dictionary where one is due, and the head."""
        session = self._session
        records = session.rows.pop("log", [])
        session.flush()
        proposal = session.packer.proposal()
        if proposal is not None:
            session.connection.run("INSERT INTO dictionary (id, data) VALUES (?, ?)", proposal)
            session.packer.learn(*proposal)
        session.connection.append_log(records, self.seq, self.chain)
