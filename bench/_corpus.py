"""Recorded events, varied to any number, the same each time.

The templates are the events that the demo's pipeline and its estate were recorded with: Spark jobs, streams
and connectors, with their schemas and column lineage. A copy of the estate has names of its own; each day
every copy reports every template once, with runs of that day.
"""

from __future__ import annotations

import itertools
import re
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).parents[1] / "tests/fixtures"
FILES = ("server/orders-pipeline.ndjson", "page/demo.ndjson")
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
DAY = timedelta(days=1)
RUNS = UUID("0e6f2a4c-7d41-4f0b-9d53-1c6a2b8f9e10")
_COPY, _TIME, _RUN = "\x01copy\x01", "\x01time\x01", "\x01run"
# JSON has control characters as escapes.
_PLACES = re.compile(r"\\u0001(copy|time|run[0-9a-f-]{36})\\u0001")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Template:
    """A recorded event, cut where copies differ."""

    def __init__(self, body: bytes, first: datetime) -> None:
        event = msgspec.json.decode(body)
        self.event = event
        # Recorded within some hours; a day holds them all.
        self.offset = (_moment(event) - first) % DAY
        event = _marked(event) | {"eventTime": _TIME}
        self._pieces = _PLACES.split(msgspec.json.encode(event).decode())

    def made(self, copy: int, day: int) -> tuple[datetime, bytes]:
        """The event of a copy on a day, and its time."""
        at = START + day * DAY + self.offset
        pieces = list(self._pieces)
        for index in range(1, len(pieces), 2):
            place = pieces[index]
            if place == "copy":
                pieces[index] = f"_{copy}"
            elif place == "time":
                pieces[index] = at.isoformat()
            else:
                pieces[index] = str(uuid5(RUNS, f"{place}/{copy}/{day}"))
        return at, "".join(pieces).encode()


class Corpus:
    """The templates and what is made of them."""

    @cached_property
    def bodies(self) -> list[bytes]:
        """The events as they were recorded."""
        return [line for name in FILES for line in (FIXTURES / name).read_bytes().splitlines()]

    @property
    def size(self) -> dict[str, int]:
        """How many events were recorded, and their bytes."""
        return {"templates": len(self.bodies), "bytes": sum(map(len, self.bodies))}

    @cached_property
    def templates(self) -> list[Template]:
        """The events of a day, in their order."""
        first = min(_moment(msgspec.json.decode(body)) for body in self.bodies)
        return sorted((Template(body, first) for body in self.bodies), key=lambda one: one.offset)

    def copies(self, events: int, most: int, days: int) -> int:
        """How many copies report so many events in some days; more than `most` take more days."""
        return max(1, min(most, events // (len(self.bodies) * days)))

    def events(self, count: int, copies: int) -> Iterator[tuple[int, bytes]]:
        """So many events with their time in microseconds, day by day, for as many days as it takes."""
        every = (
            one.made(copy, day)
            for day in itertools.count()
            for copy in range(copies)
            for one in self.templates
        )
        for at, body in itertools.islice(every, count):
            yield int(at.timestamp() * 1_000_000), body

    def output(self, job: str, copy: int) -> str:
        """The id of what a recorded job writes, in a copy."""
        written = (
            one.event["outputs"] for one in self.templates if one.event["job"]["name"] == job
        )
        first = next(outputs[0] for outputs in written if outputs)
        return f"dataset:{first['namespace']}:{first['name']}_{copy}"


def _moment(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["eventTime"])


def _marked(value: Any) -> Any:
    """With a mark where a copy has a name of its own, and where a run is named."""
    if isinstance(value, dict):
        found = {key: _marked(inner) for key, inner in value.items()}
        if isinstance(found.get("name"), str) and isinstance(found.get("namespace"), str):
            found["name"] += _COPY
        return found
    if isinstance(value, list):
        return [_marked(inner) for inner in value]
    if isinstance(value, str) and _UUID.fullmatch(value):
        return f"{_RUN}{value}\x01"
    return value
