"""Search by name, the events as they were sent, and counts over time."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from headwater.lineage.openlineage.events import iso, micros
from headwater.server.api.java_client_urls import to_uri
from headwater.server.api.parameters import integer, moment, text
from headwater.server.api.present import when
from headwater.server.api.types import Events, Time
from headwater.server.api.v1.lists import LIMIT, OFFSET
from headwater.server.http import HttpError
from headwater.server.routing import Routes
from headwater.server.store.write.log import JOB_EVENT

if TYPE_CHECKING:
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes(blank=True)  # as Marquez takes them

PERIOD = text("DAY", options=("DAY", "WEEK"))
TIMEZONE = text("UTC", example="UTC")


class _Addresses(msgspec.Struct):
    producer: str | None = None
    schemaURL: str | None = None  # noqa: N815


_addresses = msgspec.json.Decoder(_Addresses).decode


class Result(TypedDict):
    """A job or a dataset that was found."""

    type: Literal["DATASET", "JOB"]
    name: str
    namespace: str
    updatedAt: Time
    nodeId: str


class Results(TypedDict):
    """What was found."""

    totalCount: int
    results: list[Result]


class Interval(TypedDict):
    """An hour or a day, with what was counted in it."""

    startInterval: Time
    endInterval: Time


@api.get("/api/v1/search", answer=Results)
def search(
    view: View,
    q: str = text(required=True, example="load"),
    wanted: str = text(name="filter", options=("DATASET", "JOB")),
    sort: str = text(options=("NAME", "UPDATE_AT")),
    limit: int = integer(10),
    namespace: str = text(),
    before: int | None = moment(),
    after: int | None = moment(),
) -> dict[str, Any]:
    """Datasets and jobs whose name holds the text, wherever it stands and whatever its case."""
    kinds = {"DATASET": "dataset", "JOB": "job"}
    where = " WHERE t.hidden = 0"
    params: list[Any] = []
    if namespace:
        where += " AND n.name = ?"
        params.append(namespace)
    for at, sign in ((before, "<"), (after, ">")):
        if at is not None:
            where += f" AND t.updated {sign} ?"
            params.append(at)
    by_name = sort == "NAME"
    order = " ORDER BY t.name" if by_name else " ORDER BY t.updated DESC, t.name"
    holds = view.connection.holds
    asked = [
        # The names alone are read from their index; rows only where the name fits.
        f"SELECT * FROM (SELECT '{kind}' AS kind, t.name, t.updated, n.name AS space"  # noqa: S608
        f" FROM {table} t JOIN namespace n ON n.id = t.namespace{where}"
        f" AND t.id IN (SELECT id FROM {table} WHERE {holds.format(table)}){order} LIMIT ?)"
        f" AS {table}s"
        for kind, table in kinds.items()
        if wanted in ("", kind)
    ]
    values = (*params, view.connection.sought(q), limit) * len(asked)
    results = view.all(" UNION ALL ".join(asked), values)
    results.sort(key=(lambda r: r[1]) if by_name else (lambda r: (-r[2], r[1])))
    found = [
        {
            "type": kind,
            "name": name,
            "updatedAt": when(updated),
            "namespace": space,
            "nodeId": f"{kind.lower()}:{space}:{name}",
        }
        for kind, name, updated, space in results[:limit]
    ]
    return {"results": found, "totalCount": len(found)}


@api.get("/api/v1/events/lineage", answer=Events)
@api.get("/api/v1/events", answer=Events)
def events(
    view: View,
    before: int = moment(2**62),
    after: int = moment(0),
    direction: str = text("desc", name="sortDirection", options=("asc", "desc")),
    limit: int = LIMIT,
    offset: int = OFFSET,
) -> dict[str, Any]:
    """Events of runs as they were sent, by their event time."""
    where = f" FROM log WHERE kind = 0 AND type < {JOB_EVENT} AND time < ? AND time >= ?"
    order = " ORDER BY time ASC, seq ASC" if direction == "asc" else " ORDER BY time DESC, seq DESC"
    sql = "SELECT dictionary, body" + where + order + " LIMIT ? OFFSET ?"
    rows = view.all(sql, (before, after, limit, offset))
    ((total,),) = view.all("SELECT count(*)" + where, (before, after))
    return {"events": [_readable(view.body(d, b)) for d, b in rows], "totalCount": total}


def _readable(body: bytes) -> msgspec.Raw | dict[str, Any]:
    """An event as it was sent, its two addresses in a form that Java reads."""
    addresses = _addresses(body)
    mended = {
        name: to_uri(address)
        for name, address in (("producer", addresses.producer), ("schemaURL", addresses.schemaURL))
        if address is not None and to_uri(address) != address
    }
    return {**msgspec.json.decode(body), **mended} if mended else msgspec.Raw(body)


def _intervals(period: str, timezone: str) -> list[tuple[int, int]]:
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise HttpError(400, "timezone: not known") from None
    now = datetime.now(zone)
    if period == "DAY":
        end = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        width, count = timedelta(hours=1), 24
    else:
        end = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        width, count = timedelta(days=1), 7
    edges = [micros(end - width * i) for i in range(count, -1, -1)]
    return list(itertools.pairwise(edges))


@api.get("/api/v1/stats/lineage-events", answer=list[Interval])
def counted_events(
    view: View, period: str = PERIOD, timezone: str = TIMEZONE
) -> list[dict[str, Any]]:
    """How many runs started, completed, failed and were aborted in each interval."""
    hour = 3_600_000_000
    names = {0: "start", 2: "complete", 3: "abort", 4: "fail"}
    spans = _intervals(period, timezone)
    sql = "SELECT hour, type, n FROM event_count WHERE hour >= ? AND hour < ?"
    rows = view.all(sql, (spans[0][0] // hour, spans[-1][1] // hour))
    answers = []
    for start, end in spans:
        counts = dict.fromkeys(("fail", "start", "complete", "abort"), 0)
        for at, kind, n in rows:
            if kind in names and start // hour <= at < end // hour:
                counts[names[kind]] += n
        answers.append({"startInterval": iso(start), "endInterval": iso(end), **counts})
    return answers


def _counted(view: View, sql: str, spans: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """How many there were at the end of each interval."""
    created = sorted(row[0] for row in view.all(sql, (spans[-1][1],)))
    found, seen = [], 0
    for start, end in spans:
        while seen < len(created) and created[seen] < end:
            seen += 1
        found.append({"startInterval": iso(start), "endInterval": iso(end), "count": seen})
    return found


@api.get("/api/v1/stats/jobs", answer=list[Interval])
def counted_jobs(
    view: View, period: str = PERIOD, timezone: str = TIMEZONE
) -> list[dict[str, Any]]:
    """How many jobs there were at the end of each interval."""
    sql = "SELECT created FROM job WHERE hidden = 0 AND created < ?"
    return _counted(view, sql, _intervals(period, timezone))


@api.get("/api/v1/stats/datasets", answer=list[Interval])
def counted_datasets(
    view: View, period: str = PERIOD, timezone: str = TIMEZONE
) -> list[dict[str, Any]]:
    """How many datasets there were at the end of each interval."""
    sql = "SELECT created FROM dataset WHERE hidden = 0 AND created < ?"
    return _counted(view, sql, _intervals(period, timezone))


@api.get("/api/v1/stats/sources", answer=list[Interval])
def counted_sources(
    view: View, period: str = PERIOD, timezone: str = TIMEZONE
) -> list[dict[str, Any]]:
    """How many sources there were at the end of each interval."""
    return _counted(
        view, "SELECT created FROM source WHERE created < ?", _intervals(period, timezone)
    )
