"""Many events in one request, each with its own result."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from headwater.lineage.openlineage.events import EventProblem
from headwater.server.api.types import Named, Object, Time, Uuid
from headwater.server.http import HttpError, Request, Response, body_items
from headwater.server.routing import Routes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Raw

    from headwater.server.app import App
    from headwater.server.store import Receipt

__all__ = ["api"]

api = Routes()


class _InRun(TypedDict, total=False):
    facets: Object


class RunOfEvent(_InRun):
    """The run that an event is of."""

    runId: Uuid


class NamedOfEvent(_InRun, Named):
    """A job or a dataset that an event names."""


class _Parts(TypedDict, total=False):
    eventType: Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"]
    run: RunOfEvent
    job: NamedOfEvent
    dataset: NamedOfEvent
    inputs: list[Named]
    outputs: list[Named]
    producer: str
    schemaURL: str


class Event(_Parts):
    """An OpenLineage event."""

    eventTime: Time


class Batch(TypedDict):
    """What became of many events."""

    accepted: int
    duplicates: int
    refused: int
    results: list[Object]


@api.route("POST", "/api/v1/lineage", body=Event, status=(201,))
async def event() -> None:
    """Send one OpenLineage event."""
    # Declared for OpenAPI and `Allow`: the app takes events in before it looks for a route.


LARGE = 1024 * 1024
"""A body of more bytes is split beside the loop: the largest take half a second."""


def split(body: bytes, limit: int) -> Sequence[Raw | memoryview]:
    """The events of a body, not copied: a JSON array of them, or one a line."""
    if body.lstrip()[:1] == b"[":
        return body_items.array(body, limit)
    return body_items.lines(body, limit)


def result(line: int, receipt: Receipt) -> dict[str, Any]:
    """What became of one line."""
    if receipt.error is not None:
        code = 400 if receipt.error.problems[0].field == "$" else 422
        return {"line": line, "status": code, "problems": receipt.error.problems}
    if receipt.failure is not None:
        problem = EventProblem("$", "the server could not store the event; its log says why")
        return {"line": line, "status": 500, "problems": [problem]}
    return {"line": line, "status": 200 if receipt.duplicate else 201, "seq": receipt.seq}


@api.route("POST", "/api/v2/events", body=list[Event], answer=Batch, status=(201, 207, 422))
async def events(app: App, request: Request) -> Response:
    """Send many events: a JSON array, or one a line."""
    most, limit = app.settings.batch_events, app.settings.body_limit
    if len(request.body) > LARGE:
        lines = await asyncio.to_thread(split, request.body, most)
    else:
        lines = split(request.body, most)
    if any(len(line) > limit for line in lines):
        raise HttpError(413, f"one event is larger than {limit} bytes")
    receipts = await app.ingest.submit_many(lines)
    for receipt in receipts:
        if receipt.error is not None:
            app.refusal(receipt.error)
    taken = sum(1 for r in receipts if r.seq)
    body: Batch = {
        "accepted": sum(1 for r in receipts if r.seq and not r.duplicate),
        "duplicates": sum(1 for r in receipts if r.duplicate),
        "refused": len(lines) - taken,
        "results": [result(i, r) for i, r in enumerate(receipts, 1)],
    }
    return Response(body, 201 if taken == len(lines) else 207 if taken else 422)
