"""Search by name, the events as they were sent, and counts over time."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from headwater.lineage.events import Problem, iso, micros
from headwater.server.api.v1.lists import page
from headwater.server.api.v1.present import when
from headwater.server.http import HttpError, Request

if TYPE_CHECKING:
    from headwater.server.store.view import View

__all__ = ["counted_events", "counter", "events", "moment", "parse_moment", "search"]

_time = msgspec.json.Decoder(datetime)


def moment(request: Request, name: str, default: int) -> int:
    """A moment from the query, in microseconds."""
    text = request.query.get(name)
    if not text:
        return default
    try:
        return parse_moment(text)
    except ValueError:
        problem = Problem(name, "not an RFC 3339 time")
        raise HttpError(400, f"{name}: not an RFC 3339 time", [problem]) from None


def parse_moment(text: str) -> int:
    """A moment written as RFC 3339, in microseconds; raises ValueError when it is not one."""
    found = _time.decode(msgspec.json.encode(text.replace(" ", "+")))
    return micros(found if found.tzinfo else found.replace(tzinfo=timezone.utc))


def search(view: View, request: Request) -> dict[str, Any]:
    """Datasets and jobs whose name holds the text, wherever it stands and whatever its case."""
    text = request.query.get("q", "")
    if not text:
        raise HttpError(400, "q: is missing")
    limit = request.integer("limit", 10, 0)
    kinds = {"DATASET": "dataset", "JOB": "job"}
    wanted = request.query.get("filter", "").upper()
    if wanted and wanted not in kinds:
        raise HttpError(400, "filter: not one of DATASET, JOB")
    where = " WHERE t.hidden = 0"
    params: list[Any] = []
    if request.query.get("namespace"):
        where += " AND n.name = ?"
        params.append(request.query["namespace"])
    for name, sign in (("before", "<"), ("after", ">")):
        if request.query.get(name):
            where += f" AND t.updated {sign} ?"
            params.append(moment(request, name, 0))
    by_name = request.query.get("sort", "").upper() == "NAME"
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
    values = (*params, view.connection.sought(text), limit) * len(asked)
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


def events(view: View, request: Request) -> dict[str, Any]:
    """Events as they were sent, by the time they tell of."""
    before = moment(request, "before", 2**62)
    after = moment(request, "after", 0)
    direction = request.query.get("sortDirection", "desc").lower()
    if direction not in ("asc", "desc"):
        raise HttpError(400, "sortDirection: not one of asc, desc")
    where = " FROM log WHERE kind = 0 AND time < ? AND time >= ?"
    order = " ORDER BY time ASC, seq ASC" if direction == "asc" else " ORDER BY time DESC, seq DESC"
    sql = "SELECT dictionary, body" + where + order + " LIMIT ? OFFSET ?"
    rows = view.all(sql, (before, after, *page(request)))
    ((total,),) = view.all("SELECT count(*)" + where, (before, after))
    return {"events": [msgspec.Raw(view.body(d, b)) for d, b in rows], "totalCount": total}


def _intervals(request: Request) -> list[tuple[int, int]]:
    period = request.query.get("period", "DAY").upper()
    if period not in ("DAY", "WEEK"):
        raise HttpError(400, "period: not one of DAY, WEEK")
    try:
        zone = ZoneInfo(request.query.get("timezone") or "UTC")
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


def counted_events(view: View, request: Request) -> list[dict[str, Any]]:
    """How many runs started, completed, failed and were aborted in each interval."""
    hour = 3_600_000_000
    names = {0: "start", 2: "complete", 3: "abort", 4: "fail"}
    spans = _intervals(request)
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


def counter(table: str) -> Any:
    """How many of something there were at the end of each interval."""
    sql = {
        "jobs": "SELECT created FROM job WHERE hidden = 0 AND created < ?",
        "datasets": "SELECT created FROM dataset WHERE hidden = 0 AND created < ?",
        "sources": "SELECT created FROM source WHERE created < ?",
    }[table]

    def answer(view: View, request: Request) -> list[dict[str, Any]]:
        spans = _intervals(request)
        created = sorted(row[0] for row in view.all(sql, (spans[-1][1],)))
        found, seen = [], 0
        for start, end in spans:
            while seen < len(created) and created[seen] < end:
                seen += 1
            found.append({"startInterval": iso(start), "endInterval": iso(end), "count": seen})
        return found

    return answer
