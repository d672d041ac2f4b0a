"""Many events in one request, each with its own result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.events import Problem
from headwater.server.http import HttpError, Request, Response

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.store import Receipt

__all__ = ["routes", "split"]

_array = msgspec.json.Decoder(list[msgspec.Raw])


def split(body: bytes) -> list[bytes]:
    """The events of a body: a JSON array of them, or one a line."""
    if body.lstrip()[:1] == b"[":
        try:
            return [bytes(item) for item in _array.decode(body)]
        except msgspec.DecodeError as error:
            raise HttpError(400, "the array is not JSON", [Problem("$", str(error))]) from None
    lines = body.splitlines() if b"\r" in body else body.split(b"\n")
    return [line for line in lines if line.strip()]


def result(line: int, receipt: Receipt) -> dict[str, Any]:
    """What became of one line."""
    if receipt.error is not None:
        code = 400 if receipt.error.problems[0].field == "$" else 422
        return {"line": line, "status": code, "problems": receipt.error.problems}
    if receipt.failure is not None:
        problem = Problem("$", "the server could not take it in; its log says why")
        return {"line": line, "status": 500, "problems": [problem]}
    return {"line": line, "status": 200 if receipt.duplicate else 201, "seq": receipt.seq}


def routes(app: App) -> None:
    """`POST /api/v2/events`."""

    async def events(request: Request) -> Response:
        lines = split(request.body)
        limit = app.settings.body_limit
        if any(len(line) > limit for line in lines):
            raise HttpError(413, f"one event is larger than {limit} bytes")
        receipts = await app.ingest.submit(lines) if lines else []
        for receipt in receipts:
            if receipt.error is not None:
                app.refusal(receipt.error)
        taken = sum(1 for r in receipts if r.seq)
        body = {
            "accepted": sum(1 for r in receipts if r.seq and not r.duplicate),
            "duplicates": sum(1 for r in receipts if r.duplicate),
            "refused": len(lines) - taken,
            "results": [result(i, r) for i, r in enumerate(receipts, 1)],
        }
        return Response(body, 201 if taken == len(lines) else 207 if taken else 422)

    app.router.add("POST", "/api/v2/events", events, "write", direct=True)
