"""The log: one record for each event and each change, chained to the one before."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from headwater.lineage.events import EventType, Kind
from headwater.server.store.packing import Packer
from headwater.server.store.session import Session

if TYPE_CHECKING:
    from headwater.server.store.database import Connection
    from headwater.server.store.parts import Prepared

__all__ = ["COMMAND", "COMMAND_TYPE", "DATASET_EVENT", "JOB_EVENT", "TYPES", "Log"]

EVENT, COMMAND = 0, 1
TYPES = {kind: i for i, kind in enumerate(EventType)}
JOB_EVENT, DATASET_EVENT, COMMAND_TYPE = 6, 7, 8
HOUR = 3_600_000_000


class Log:
    """The end of the log, as the one writer knows it, and what it takes to add to it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.packer = Packer()
        self.session = Session(connection, self.packer)
        self._seq = -1
        self._chain = b""

    def _log(self, item: Prepared, seq: int, at: int, job: int | None, run: int | None) -> None:
        kind = TYPES[item.type] if item.kind is Kind.RUN else JOB_EVENT
        if item.kind is Kind.DATASET:
            kind = DATASET_EVENT
        self._record(EVENT, seq, at, item.time, kind, item.hash, item.raw, job, run)
        self.session.count(item.time // HOUR, kind)

    def _record(
        self, kind: int, seq: int, at: int, when: int, event_type: int, digest: bytes, body: bytes,
        job: int | None, run: int | None,
    ) -> None:  # fmt: skip
        link = self._chain + digest + struct.pack(">qqb", seq, at, kind)
        self._chain = hashlib.sha256(link).digest()
        packed = self.packer.pack(body)
        row = (seq, kind, at, when, event_type, digest, self._chain, job, run, *packed)
        self.session.rows["log"].append(row)

    def _finish(self) -> None:
        self.session.flush()
        proposal = self.packer.proposal()
        if proposal is not None:
            self.connection.run("INSERT INTO dictionary (id, data) VALUES (?, ?)", proposal)
            self.packer.learn(*proposal)
        self.connection.run(
            "UPDATE head SET seq = ?, chain = ? WHERE id = 1", (self._seq, self._chain)
        )
