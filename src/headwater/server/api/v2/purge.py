"""Hard deletion over HTTP, for administrators who say the name twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from headwater.server.http import HttpError, Response, bad_member
from headwater.server.routing import Routes
from headwater.server.store.keep.purge import KINDS, PurgeTarget, purge
from headwater.server.store.write.commands import NoSuchError

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request

__all__ = ["api"]

api = Routes()


class _Name(TypedDict, total=False):
    name: str


class PostPurge(_Name):
    """What to delete; `confirm` is the name once more."""

    kind: Literal["job", "dataset", "namespace"]
    namespace: str
    confirm: str


class Deleted(TypedDict):
    """How much went."""

    records: int
    jobs: int
    datasets: int


def _text(body: dict[str, Any], member: str) -> str:
    value = body.get(member)
    if not isinstance(value, str) or not value or "\0" in value:
        raise bad_member(member, "must be a string that is not empty")
    return value


def target_of(body: dict[str, Any]) -> PurgeTarget:
    """What a request wants gone; it must say the last part of the name again in `confirm`."""
    kind = _text(body, "kind")
    if kind not in KINDS:
        raise bad_member("kind", f"must be one of {', '.join(KINDS)}")
    namespace = _text(body, "namespace")
    target = PurgeTarget(kind, namespace, "" if kind == "namespace" else _text(body, "name"))
    if body.get("confirm") != (target.name or target.namespace):
        raise bad_member("confirm", "must repeat the name: a purge cannot be undone")
    return target


@api.route("POST", "/api/v2/purge", role="admin", body=PostPurge, answer=Deleted)
async def post_purge(app: App, request: Request) -> Response:
    """Delete for good: a job, a dataset or a namespace, and every event that names it."""
    target = target_of(request.json())

    try:
        gone = await app.ingest.perform(lambda store: purge(store, target))
    except NoSuchError as error:
        raise HttpError(404, error.message) from error
    app.bodies.forget()
    return Response(gone._asdict())
