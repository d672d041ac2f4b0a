"""Takes an existing Marquez over through its API: its events, and what was set by hand."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec

from headwater.errors import HeadwaterError
from headwater.lineage.openlineage.events import iso, micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.server.store.database import Connection

__all__ = ["Marquez", "MarquezBatch", "missing"]

PAGE = 100
UNTIL = "9999-01-01T00:00:00Z"


class _Events(msgspec.Struct):
    events: list[msgspec.Raw]
    totalCount: int = 0  # noqa: N815


class _Time(msgspec.Struct):
    eventTime: datetime  # noqa: N815


_events = msgspec.json.Decoder(_Events)
_time = msgspec.json.Decoder(_Time)


class MarquezBatch(NamedTuple):
    """Some events as the server gives them, and how many it has in all."""

    events: list[bytes]
    total: int


class Marquez:
    """A server that speaks Marquez's API."""

    def __init__(self, url: str, token: str | None = None) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        self._http = httpx.Client(timeout=120, headers=headers)

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def _get(self, *path: str, **query: Any) -> bytes:
        address = f"{self.url}/api/v1/" + "/".join(quote(part, safe="") for part in path)
        try:
            response = self._http.get(address, params=query)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HeadwaterError(f"{self.url} does not answer: {error}") from error
        if response.is_error:
            raise HeadwaterError(f"{address} answered {response.status_code}")
        return response.content

    def events(self, size: int = PAGE) -> Iterator[MarquezBatch]:
        """Every event once, the earliest first.

        Pages are cut by time, for an offset grows slower the deeper it goes; only events of one
        and the same moment are distinguished by an offset.
        """
        since, offset = 0, 0
        seen: set[bytes] = set()
        while True:
            query = {"after": iso(since), "before": UNTIL, "sortDirection": "asc"}
            page = self._page(self._get("events", "lineage", **query, limit=size, offset=offset))
            last = since
            fresh = []
            for event in map(bytes, page.events):
                moment = self._moment(event)
                if moment > last:
                    last, seen = moment, set()
                if event not in seen:
                    seen.add(event)
                    fresh.append(event)
            if fresh:
                yield MarquezBatch(fresh, page.totalCount)
            if len(page.events) < size:
                return
            offset = offset + size if last == since else 0
            since = last

    def _page(self, body: bytes) -> _Events:
        try:
            return _events.decode(body)
        except msgspec.DecodeError as error:
            raise HeadwaterError(f"{self.url} does not answer as Marquez does: {error}") from error

    def _moment(self, event: bytes) -> int:
        try:
            return micros(_time.decode(event).eventTime)
        except (ValueError, TypeError) as error:
            raise HeadwaterError(f"{self.url} holds an event without a time: {error}") from error

    def _listed(self, kind: str, *path: str) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            answer = msgspec.json.decode(self._get(*path, limit=PAGE, offset=offset))
            found = answer.get(kind) or []
            yield from found
            offset += PAGE
            if len(found) < PAGE:
                return

    def commands(self) -> Iterator[dict[str, Any]]:
        """What was set by hand, as commands: namespaces, sources, tags and where they are put."""
        for tag in self._listed("tags", "tags"):
            text = tag.get("description")
            yield {"command": "tag", "name": tag["name"], "description": text}
        for source in self._listed("sources", "sources"):
            yield {
                "command": "source",
                "name": source["name"],
                "type": source.get("type") or "",
                "url": source.get("connectionUrl") or "",
                "description": source.get("description"),
            }
        for space in self._listed("namespaces", "namespaces"):
            owner, text = space.get("ownerName"), space.get("description")
            name = space["name"]
            yield {"command": "namespace", "name": name, "owner": owner, "description": text}
            for kind in ("dataset", "job"):
                for one in self._listed(f"{kind}s", "namespaces", name, f"{kind}s"):
                    yield from _tagged(kind, name, one)


def _tagged(kind: str, namespace: str, one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    on = {
        "command": "tagged",
        "kind": kind,
        "namespace": namespace,
        "name": one["name"],
        "on": True,
    }
    for tag in one.get("tags") or ():
        yield {**on, "field": "", "tag": tag}
    for field in one.get("fields") or ():
        for tag in field.get("tags") or ():
            yield {**on, "field": field["name"], "tag": tag}


_NAMED = {
    "dataset": (
        "SELECT t.id FROM dataset t JOIN namespace n ON n.id = t.namespace"
        " WHERE n.name = ? AND t.name = ?"
    ),
    "job": (
        "SELECT t.id FROM job t JOIN namespace n ON n.id = t.namespace"
        " WHERE n.name = ? AND t.name = ?"
    ),
}


def missing(connection: Connection, commands: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The commands that would change something, so that a takeover can be repeated."""
    for command in commands:
        kind, name = command["command"], command["name"]
        if kind == "tag":
            rows = connection.all("SELECT description FROM tag WHERE name = ?", (name,))
            same = rows == [(command["description"],)]
        elif kind == "source":
            rows = connection.all("SELECT kind, url FROM source WHERE name = ?", (name,))
            same = rows == [(command["type"], command["url"])]
        elif kind == "namespace":
            sql = "SELECT owner, description FROM namespace WHERE name = ?"
            owner, text = command["owner"] or "anonymous", command["description"]
            found = [(row[0] or "anonymous", row[1]) for row in connection.all(sql, (name,))]
            same = found == [(owner, text)]
        else:
            same = _is_tagged(connection, command)
        if not same:
            yield command


def _is_tagged(connection: Connection, command: dict[str, Any]) -> bool:
    kind = command["kind"]
    rows = connection.all(_NAMED[kind], (command["namespace"], command["name"]))
    if not rows:
        return True  # nothing here to put the tag on
    sql = "SELECT 1 FROM tag_use WHERE kind = ? AND entity = ? AND field = ? AND tag = ?"
    values = (int(kind == "job"), rows[0][0], command["field"], command["tag"])
    return bool(connection.all(sql, values))
