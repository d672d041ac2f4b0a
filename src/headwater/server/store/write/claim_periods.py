"""What one author claims of a dataset, as the periods in which it reports one schema.

A period ends where the author reports another schema. Claims that are received late may divide one:
how far its two parts reach is then read from the log, which has every claim.
"""

from __future__ import annotations

import heapq
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.lineage.openlineage.checks import Limits
from headwater.lineage.openlineage.events import EventError, EventKind
from headwater.lineage.schema.claims import Rank
from headwater.server.store.write.incoming.event_reader import EventReader
from headwater.server.store.write.incoming.prepared import AHEAD, producer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headwater.server.store.entities import Dataset
    from headwater.server.store.write.incoming.prepared import PreparedEvent
    from headwater.server.store.write.session import WriteSession

__all__ = ["KEY", "VALUE", "WHOLE", "ClaimKey", "ClaimPeriod", "divided", "with_claim"]

READ_AT_ONCE = 32
READ_AT_MOST = 1_000
READ_BYTES = 8 * 1024 * 1024
"""How much of an author's log is read on either side of a late claim, as everybody's events wait
meanwhile. Where no claim is found in it, the period has none but its first and its last."""
VALUE, KEY = 1, 2
WHOLE = VALUE | KEY
_ANY = Limits(members=sys.maxsize, values=sys.maxsize, datasets=sys.maxsize, name=sys.maxsize)
"""What the log holds was taken in under the limits of its day."""


class ClaimKey(NamedTuple):
    """The claims of one author on one dataset that replace each other."""

    rank: Rank
    dataset: int
    job: int
    run: int
    side: int
    subject: str = ""
    version: int = 0

    def row(
        self, facet: int, first: int, last: int, *, single: bool = False, parts: int = WHOLE
    ) -> tuple[Any, ...]:
        """A row of the table; `single` where the author has one claim at most.

        What has a version is ordered by it and kept once, whatever is claimed between. `parts` are
        the parts of a topic that it claims, `VALUE` and `KEY`, where those replace each other.
        """
        rank, dataset, job, run, side, subject, version = self
        mark = 0 if single else facet if version else first
        return (
            dataset,
            job,
            run,
            side,
            subject,
            version,
            mark,
            int(rank),
            facet,
            first,
            last,
            parts,
        )


class ClaimPeriod(NamedTuple):
    """The claims of one author that name the same schema, with none of its others between."""

    facet: int
    first: int
    last: int


def with_claim(
    periods: Sequence[ClaimPeriod],
    facet: int,
    time: int,
    divide: Callable[[ClaimPeriod], list[ClaimPeriod] | None],
) -> list[ClaimPeriod]:
    """The periods around a moment with one more claim.

    `divide` answers what a period of another schema is without this moment, None if it keeps it.
    """
    found = [ClaimPeriod(facet, time, time)]
    for one in periods:
        if one.facet == facet or not one.first <= time <= one.last:
            found.append(one)
            continue
        parts = divide(one)
        if parts is None:
            return list(periods)
        found += parts
    joined: list[ClaimPeriod] = []
    for one in sorted(found, key=lambda s: (s.first, s.last, s.facet)):
        if joined and joined[-1].facet == one.facet:
            joined[-1] = joined[-1]._replace(last=max(joined[-1].last, one.last))
        else:
            joined.append(one)
    return joined


def divided(
    session: WriteSession, dataset: Dataset, key: ClaimKey, one: ClaimPeriod, facet: int, time: int
) -> list[ClaimPeriod] | None:
    """A period without a moment at which its author claimed another schema, as the log has it.

    None if it was claimed at that very moment too and is to be preferred, by content.
    """
    preferred = session.body(one.facet) > session.body(facet)
    if preferred and time in (one.first, one.last):
        return None
    parts: list[ClaimPeriod] = []
    if one.first < time:
        last = one.first
        for moment in _claimed(session, dataset, key, one.facet, (one.first, time), back=True):
            if moment == time and preferred:
                return None
            if moment < time:
                last = moment
                break
        parts.append(ClaimPeriod(one.facet, one.first, last))
    if one.last > time:
        later = _claimed(session, dataset, key, one.facet, (time + 1, one.last), back=False)
        parts.append(ClaimPeriod(one.facet, next(later, one.last), one.last))
    return parts


def _claimed(
    session: WriteSession,
    dataset: Dataset,
    key: ClaimKey,
    facet: int,
    between: tuple[int, int],
    *,
    back: bool,
) -> Iterator[int]:
    """When an author claimed a schema, the earliest first, or the latest."""
    reader = EventReader(_ANY)
    for time, body in _records(session, key, between, back=back):
        try:
            item = reader.prepare(body)
        except EventError:
            continue
        parts = [part for _, part in item.datasets if part.numbers is None]
        parts += [
            part for part in (item.job, item.run) if part is not None and part.numbers is None
        ]
        session.number_parts(parts)
        if facet in _facets(item, key, dataset):
            yield time


def _records(
    session: WriteSession, key: ClaimKey, between: tuple[int, int], *, back: bool
) -> Iterator[tuple[int, bytes]]:
    """The events of an author's job, or of no job: the time that counts of each, and its bytes."""
    session.write("log")
    who, values = ("job = ?", [key.job]) if key.job else ("job IS NULL", [])
    if key.run:
        who, values = f"{who} AND run = ?", [*values, key.run]
    values += [*between, session.log_end]
    order = "DESC" if back else "ASC"
    found = [
        _in_steps(
            session,
            f"SELECT {column}, dictionary, body FROM log WHERE kind = 0 AND {who} AND {clock}"  # noqa: S608
            f" AND {column} >= ? AND {column} <= ? AND seq <= ? ORDER BY {column} {order}",
            values,
        )
        for column, clock in (("time", f"time <= at + {AHEAD}"), ("at", f"time > at + {AHEAD}"))
    ]
    size = 0
    for time, dictionary, packed in heapq.merge(*found, key=lambda row: row[0], reverse=back):
        body = session.packer.unpack(dictionary, bytes(packed))
        size += len(body)
        if size > READ_BYTES:
            return
        yield time, body


def _in_steps(session: WriteSession, sql: str, values: list[int]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, READ_AT_MOST, READ_AT_ONCE):
        rows = session.connection.all(f"{sql} LIMIT ? OFFSET ?", (*values, READ_AT_ONCE, start))
        yield from rows
        if len(rows) < READ_AT_ONCE:
            return


def _facets(item: PreparedEvent, key: ClaimKey, dataset: Dataset) -> set[int]:
    """The schemas that an event claims as this author."""
    name = dataset.space, dataset.name
    for direction, part in item.datasets:
        if direction != key.side or part.key != name:
            continue
        if not (part.schema or part.origins or part.change):
            continue
        if key.rank is Rank.SOURCE:
            return {
                facet for subject, version, facet in part.origins if (subject, version) == key[5:]
            }
        if _speaks_for(item, key) and part.schema and part.change != "DROP":
            return {part.schema}
        break
    return set()


def _speaks_for(item: PreparedEvent, key: ClaimKey) -> bool:
    if item.job is None:
        return key.rank is Rank.DECLARED and producer_of(item) == key.subject
    if key.rank in (Rank.DEFINED, Rank.DEFINED_READER):
        return item.kind is EventKind.JOB
    return item.kind is EventKind.RUN and item.job.streaming == bool(key.run)
