"""The log, page by page from a cursor, narrowed to a job, a run, a type or a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.events import EventType, iso
from headwater.server.api.v1 import reader
from headwater.server.api.v1.nodes import job_node, kind_of
from headwater.server.api.v1.runs import the_run
from headwater.server.api.v1.search import moment
from headwater.server.api.v2.paging import bad
from headwater.server.store.log import COMMAND_TYPE, DATASET_EVENT, JOB_EVENT, TYPES

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["routes"]

NUMBERS = {
    **{kind.value: number for kind, number in TYPES.items()},
    "JOB": JOB_EVENT,
    "DATASET": DATASET_EVENT,
    "COMMAND": COMMAND_TYPE,
}
WORDS = {number: word for word, number in NUMBERS.items()}
SCAN = 50_000
"""Records looked at for one page; a filter that fits few of them gives a short page."""


def events(view: View, request: Request) -> dict[str, Any]:
    """Records after a cursor, or before one the newest first: events as sent, and commands."""
    limit = request.integer("limit", 100, 1, 1_000)
    newest = bool(request.query.get("before"))
    if newest and request.query.get("after"):
        raise bad("before", "not together with after")
    ((head,),) = view.all("SELECT seq FROM head WHERE id = 1")
    where, params = _filters(view, request)
    if newest:
        top = min(request.integer("before", head + 1, 0, 2**62), head + 1)
        low, high, order = max(0, top - SCAN), top - 1, "DESC"
    else:
        low = request.integer("after", 0, 0, 2**62)
        high, order = min(low + SCAN, 2**62), "ASC"
    sql = (
        "SELECT seq, kind, at, type, hash, dictionary, body FROM log WHERE seq >= ? AND seq <= ?"  # noqa: S608
        f"{where} ORDER BY seq {order} LIMIT ?"
    )
    first = low if newest else low + 1
    rows = view.all(sql, (first, high, *params, limit))
    records = [
        {
            "seq": seq,
            "receivedAt": iso(at),
            "type": WORDS.get(number, EventType.OTHER.value),
            "hash": bytes(digest).hex(),
            "command" if kind else "event": msgspec.Raw(view.body(dictionary, body)),
        }
        for seq, kind, at, number, digest, dictionary, body in rows
    ]
    if len(rows) == limit:
        following = rows[-1][0]
        more = following > 1 if newest else following < head
    else:
        following = first if newest else max(low, min(high, head))
        more = first > 1 if newest else high < head
    return {"records": records, "next": following, "more": more}


def _filters(view: View, request: Request) -> tuple[str, list[int]]:
    where, params = "", []
    if text := request.query.get("job"):
        kind, rest = kind_of(text)
        if kind != "job":
            raise bad("job", "not a job (job:NAMESPACE:NAME)")
        where += " AND job = ?"
        params.append(job_node(view, rest).id)
    if text := request.query.get("run"):
        where += " AND run = ?"
        params.append(the_run(view, text).id)
    if text := request.query.get("type"):
        words = [word for word in text.upper().split(",") if word]
        if not words or not set(words) <= NUMBERS.keys():
            raise bad("type", "not one of " + ", ".join(NUMBERS))
        numbers = sorted({NUMBERS[word] for word in words})
        where += f" AND type IN ({','.join('?' * len(numbers))})"
        params += numbers
    for name, sign in (("since", ">="), ("until", "<")):
        if request.query.get(name):
            where += f" AND time {sign} ?"
            params.append(moment(request, name, 0))
    return where, params


def routes(app: App) -> None:
    """`GET /api/v2/events`."""
    app.router.add("GET", "/api/v2/events", reader(app, events))
