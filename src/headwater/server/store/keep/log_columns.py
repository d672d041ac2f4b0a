"""Whether the columns beside a record's body, by which it is found, agree with the body.

The chain covers the body. The time, the type, the job and the run are kept beside it, so that
records can be found by them; whoever alters those hides a record without touching the chain.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from headwater.lineage.openlineage.events import (
    EventError,
    EventKind,
    Limits,
    canonical,
    identity,
    read,
)
from headwater.lineage.openlineage.repairs import runs_of_its_own
from headwater.server.store.database import TamperedError, within
from headwater.server.store.write.incoming.prepared import safe
from headwater.server.store.write.log import COMMAND_TYPE, DATASET_EVENT, JOB_EVENT, TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.openlineage.events import Event
    from headwater.server.store.database import ReadConnection
    from headwater.server.store.store import Store

__all__ = ["RecordColumns", "check_facets", "check_links", "columns_of"]

STEP = 512
# What the log holds was taken in under the limits, and by the clock, of its day.
_LIMITS = Limits(
    depth=Limits().depth, members=sys.maxsize, values=sys.maxsize, datasets=sys.maxsize,
    name=sys.maxsize, skew=timedelta(days=36_500),
)  # fmt: skip
_JOBS = (
    "WITH k (space, name) AS ({in}) SELECT n.name, j.name, j.id FROM k"
    " JOIN namespace n ON n.name = k.space JOIN job j ON j.namespace = n.id AND j.name = k.name"
)
_RUNS = "SELECT uuid, id, job FROM run WHERE uuid IN ({in})"


class RecordColumns(NamedTuple):
    """The columns of a record as its body has them; `None` is a job or run that it does not name."""

    time: int
    type: int
    job: tuple[str, str] | None = None
    run: bytes | None = None
    of_run: bool = False
    """The job is the run's, without being named."""
    merged: bool = False
    """The job may be the one that the named one was a task of."""


def columns_of(kind: int, digest: bytes, body: bytes) -> RecordColumns | None:
    """The columns that the body of a record implies; None if it is not the body of this hash."""
    if kind:
        return _command(body) if hashlib.sha256(body).digest() == digest else None
    try:
        event = read(body, limits=_LIMITS)
        if event.hash != digest and identity(msgspec.json.decode(body)) != digest:
            return None
    except (EventError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if event.kind is EventKind.RUN:
        return RecordColumns(event.time, TYPES[event.type], *_names(event))
    return RecordColumns(
        event.time, JOB_EVENT if event.kind is EventKind.JOB else DATASET_EVENT, *_names(event)
    )


def _names(event: Event) -> tuple[tuple[str, str] | None, bytes | None]:
    job = safe(event.job.namespace, event.job.name) if event.job else None
    return job, event.run.runId.bytes if event.run else None


def _command(body: bytes) -> RecordColumns:
    value: dict[str, Any] = msgspec.json.decode(body)
    about = RecordColumns(int(value.get("time") or value["at"]), COMMAND_TYPE)
    name = value["command"]
    if name == "event":
        job, run = _names(read(canonical(value["event"]), limits=_LIMITS))
        return about._replace(job=job, run=run)
    if name == "run":
        return about._replace(run=UUID(value["run"]).bytes, of_run=True)
    if name == "new_run":
        key = (value["namespace"], value["name"])
        return about._replace(job=key, run=UUID(value["run"]).bytes)
    if name in ("hide", "tagged") and value["kind"] == "job":
        return about._replace(job=(value["namespace"], value["name"]), merged=name == "tagged")
    return about


def check_links(
    connection: ReadConnection,
    group: Iterable[tuple[int, RecordColumns, int | None, int | None]],
    kept: int,
) -> None:
    """Check that records stand under the job and the run that they name.

    Up to the checkpoint at `kept`, retention may have deleted a job or a run since.
    """
    items = list(group)
    jobs = {
        (space, name): number
        for space, name, number in within(connection, _JOBS, {s.job for _, s, _, _ in items if s.job})
    }  # fmt: skip
    found = within(connection, _RUNS, {s.run for _, s, _, _ in items if s.run})
    runs = {bytes(uuid): (number, job) for uuid, number, job in found}
    there = {number for number, _ in runs.values()}
    others = {run for *_, run in items if run is not None} - there
    there |= {row[0] for row in within(connection, "SELECT id FROM run WHERE id IN ({in})", others)}
    apart = _of_their_own(connection, items, runs, jobs)
    for seq, one, job, run in items:
        known = apart[seq] if seq in apart else runs.get(one.run) if one.run else None
        # A run that was deleted by retention and reported again has a later number than it had.
        again = known is not None and run is not None and run not in there and run < known[0]
        gone = seq <= kept and one.run is not None and (known is None or again)
        if not gone and run != (known[0] if known else None):
            raise _misplaced(seq, "run", kept)
        if gone and run is None:
            raise _misplaced(seq, "run", kept)
        if one.of_run:
            wanted = known[1] if known else None
            right = job == wanted or (gone and job is not None)
        else:
            wanted = jobs.get(one.job) if one.job else None
            gone = seq <= kept and one.job is not None and wanted is None
            right = job == wanted or ((gone or one.merged) and job is not None)
        if not right:
            raise _misplaced(seq, "job", kept)


def _of_their_own(
    connection: ReadConnection,
    items: Iterable[tuple[int, RecordColumns, int | None, int | None]],
    runs: dict[bytes, tuple[int, int]],
    jobs: dict[tuple[str, str], int],
) -> dict[int, tuple[int, int] | None]:
    """The records of jobs that reported under the id of another job's run, with the run they got.

    It is None where retention has deleted it. A record of an earlier release stands under the first job's run
    until the next rebuild.
    """
    wanted: dict[int, tuple[int, int | None, bool, list[bytes]]] = {}
    for seq, one, _, run in items:
        held = runs.get(one.run) if one.run else None
        if not one.run or not one.job or run is None or (held and held[0] == run):
            continue
        job = jobs.get(one.job)
        own = [uuid.bytes for uuid in runs_of_its_own(UUID(bytes=one.run), *one.job)]
        wanted[seq] = run, job, held is not None and held[1] != job, own
    uuids = {uuid for *_, own in wanted.values() for uuid in own}
    found = {bytes(u): (n, j) for u, n, j in within(connection, _RUNS, uuids)}
    apart: dict[int, tuple[int, int] | None] = {}
    for seq, (run, job, foreign, own) in wanted.items():
        known = [found[uuid] for uuid in own if uuid in found]
        if any(number == run for number, _ in known):
            apart[seq] = next(one for one in known if one[0] == run)
        elif foreign:
            apart[seq] = next((one for one in known if one[1] == job), None)
    return apart


def _misplaced(seq: int, what: str, kept: int) -> TamperedError:
    mend = "run `headwater rebuild`" if seq > kept else "restore a backup of it"
    return TamperedError(
        f"the log was changed: record {seq} stands under another {what} than its body says",
        hint=f"keep a copy of the store, and {mend}",
    )


def check_facets(store: Store, connection: ReadConnection) -> None:
    """Check that each stored facet is the one of its hash."""
    after = 0
    sql = "SELECT id, hash, dictionary, body FROM facet WHERE id > ? ORDER BY id LIMIT ?"
    while rows := connection.all(sql, (after, STEP)):
        for number, digest, dictionary, packed in rows:
            body = store.packer.unpack(dictionary, bytes(packed))
            # The highest number stays when nothing holds the facet any more.
            empty = b"facet %d is gone" % number if body == b"null" else body
            if bytes(digest) not in (
                hashlib.sha256(body).digest(),
                hashlib.sha256(empty).digest(),
            ):
                raise TamperedError(
                    f"what was computed from the log was changed: facet {number} has another hash",
                    hint="keep a copy of the store; `headwater rebuild` computes it again",
                )
        after = rows[-1][0]
