"""The end of the log's hash chain, to be kept elsewhere and compared later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headwater.server.api.parameters import integer
from headwater.server.http import HttpError
from headwater.server.routing import Routes
from headwater.server.store.keep.chain import head_of, link_at

if TYPE_CHECKING:
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()


class LogHead(TypedDict):
    """A record of the log and its link of the hash chain, which stands for all records up to it."""

    seq: int
    chain: str


@api.get("/api/v2/log/head", answer=LogHead)
def log_head(view: View, seq: int = integer(0, 0, 2**62)) -> dict[str, Any]:
    """The last record of the log, or record `seq`, and its link of the hash chain."""
    if seq and view.limit is not None:
        raise HttpError(403, "the token is limited to namespaces, and the log is not")
    found = link_at(view.connection, seq) if seq else head_of(view.connection)
    if found is None:
        raise HttpError(404, f"The log has no record {seq}.")
    return {"seq": found[0], "chain": found[1].hex()}
