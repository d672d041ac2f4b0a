"""Every outbox of this user: what waits for which destination, and what a destination refused."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.emit.journal import OUTBOXES, untouched
from headwater.emit.outbox import Outbox
from headwater.lineage.naming import redact
from headwater.lineage.secrets import clean_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.emit.outbox import RefusedByDestination

UNKNOWN = "an unknown destination"


class Waiting(NamedTuple):
    """How many events of one outbox a destination has not taken yet."""

    outbox: str
    destination: str
    """How the destination is shown."""
    events: int
    active: bool
    """Whether the producer still sends new events there."""


class RefusedEvent(NamedTuple):
    """An event that a destination refused, with secrets masked."""

    id: str
    place: str
    """Where its outbox is; a URL may hold a password, `outbox` is the form to show."""
    seq: int
    outbox: str
    destination: str
    reason: str
    refused_at: int
    event_type: str
    event_time: str
    namespace: str
    job: str
    run: str
    event: dict[str, Any]


def find_outboxes(folder: Path, agent: str) -> list[str]:
    """The outboxes of programs below a state folder, and the one of a Connect agent."""
    places = [str(path) for path in sorted((folder / OUTBOXES).rglob("*.db"))]
    if "://" in agent or Path(agent).expanduser().exists():
        places.append(agent)
    return places


def waiting(places: Iterable[str]) -> list[Waiting]:
    """What waits in these outboxes, by destination."""
    found: list[Waiting] = []
    for place in places:
        with _opened(place) as outbox:
            shown, active = outbox.destinations(), outbox.destinations(active=True)
            found += [
                Waiting(outbox.shown, shown.get(name) or name or UNKNOWN, count, name in active)
                for name, count in sorted(outbox.waiting().items())
            ]
    return found


def refused(places: Iterable[str]) -> list[RefusedEvent]:
    """What was refused, the latest first."""
    found: list[RefusedEvent] = []
    for place in places:
        with _opened(place) as outbox:
            shown = outbox.destinations()
            found += [
                _described(place, one, outbox, shown.get(one.destination) or one.destination)
                for one in outbox.refused()
            ]
    return sorted(found, key=lambda one: (one.refused_at, one.event_time), reverse=True)


def retry(events: Iterable[RefusedEvent]) -> None:
    """Queue refused events again, each for the destination that refused it."""
    for one in events:
        with _opened(one.place) as outbox:
            outbox.retry(one.seq)


def drop(events: Iterable[RefusedEvent]) -> None:
    """Delete refused events for good."""
    for one in events:
        with _opened(one.place) as outbox:
            outbox.drop(one.seq)


@contextmanager
def _opened(place: str) -> Iterator[Outbox]:
    outbox = Outbox(place)
    with untouched(Path(place)):
        try:
            # An outbox of an earlier version shows what it holds once its writer has converted it.
            if Path(place).parent.name == OUTBOXES and outbox.lead():
                outbox.close()
            yield outbox
        finally:
            outbox.forget_connection()


def _described(
    place: str, one: RefusedByDestination, outbox: Outbox, destination: str
) -> RefusedEvent:
    try:
        event = clean_value(msgspec.json.decode(one.body))
    except msgspec.DecodeError:
        event = {}
    job = event.get("job") or {}
    return RefusedEvent(
        id=f"{hashlib.sha256(outbox.shown.encode()).hexdigest()[:6]}-{one.seq}",
        place=place,
        seq=one.seq,
        outbox=outbox.shown,
        destination=destination or UNKNOWN,
        reason=redact(one.reason),
        refused_at=one.at,
        event_type=str(event.get("eventType", "")),
        event_time=str(event.get("eventTime", "")),
        namespace=str(job.get("namespace", "")),
        job=str(job.get("name", "")),
        run=str((event.get("run") or {}).get("runId", one.run)),
        event=event,
    )
