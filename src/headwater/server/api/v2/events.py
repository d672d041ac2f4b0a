"""The log, page by page from a cursor, narrowed to a job, a run, a type or a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from headwater.lineage.openlineage.events import EventType, iso
from headwater.server.api.lookup import job_node, kind_of, the_run
from headwater.server.api.parameters import integer, moment, text
from headwater.server.api.types import Time
from headwater.server.routing import Routes
from headwater.server.store.write.log import COMMAND_TYPE, DATASET_EVENT, JOB_EVENT, TYPES

if TYPE_CHECKING:
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

NUMBERS = {
    **{kind.value: number for kind, number in TYPES.items()},
    "JOB": JOB_EVENT,
    "DATASET": DATASET_EVENT,
    "COMMAND": COMMAND_TYPE,
}
NAMES = {number: name for name, number in NUMBERS.items()}
SCAN = 50_000
"""Records looked at for one page; a filter that fits few of them gives a short page."""


class Record(TypedDict):
    """A record of the log; beside this its `event` or its `command`."""

    seq: int
    receivedAt: Time
    type: str
    hash: str


class Log(TypedDict):
    """Some records of the log, and from where to go on."""

    records: list[Record]
    next: int
    more: bool


@api.get("/api/v2/events", answer=Log)
def events(
    view: View,
    request: Request,
    after: int = integer(0, 0, 2**62),
    before: int = integer(0, 0, 2**62),
    limit: int = integer(100, 1),
    job: str = text(),
    run: str = text(),
    kinds: str = text(name="type", example="START,FAIL"),
    since: int | None = moment(),
    until: int | None = moment(),
) -> dict[str, Any]:
    """Records after a cursor, or before one the newest first: events as sent, and commands."""
    newest = bool(request.query.get("before"))
    if newest and request.query.get("after"):
        raise request.bad("before", "not together with after")
    if since is not None and until is not None and since > until:
        raise request.bad("since", "is later than until")
    ((head,),) = view.all("SELECT seq FROM head WHERE id = 1")
    where, params = _filters(view, request, job, run, kinds)
    for at, sign in ((since, ">="), (until, "<")):
        if at is not None:
            where += f" AND time {sign} ?"
            params.append(at)
    if newest:
        top = min(before, head + 1)
        low, high, order = max(0, top - SCAN), top - 1, "DESC"
    else:
        low = after
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
            "type": NAMES.get(number, EventType.OTHER.value),
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


def _filters(view: View, request: Request, job: str, run: str, kinds: str) -> tuple[str, list[int]]:
    where, params = "", []
    if job:
        kind, rest = kind_of(job)
        if kind != "job":
            raise request.bad("job", "not a job (job:NAMESPACE:NAME)")
        where += " AND job = ?"
        params.append(job_node(view, rest).id)
    if run:
        where += " AND run = ?"
        params.append(the_run(view, run).id)
    if kinds:
        types = [name for name in kinds.upper().split(",") if name]
        if not types or not set(types) <= NUMBERS.keys():
            raise request.bad("type", "not one of " + ", ".join(NUMBERS))
        numbers = sorted({NUMBERS[name] for name in types})
        where += f" AND type IN ({','.join('?' * len(numbers))})"
        params += numbers
    return where, params
