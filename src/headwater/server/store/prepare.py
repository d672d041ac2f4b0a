"""An event made ready for the projection: checked, and its facets known by digest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.lineage import facets as known
from headwater.lineage.events import Event, EventError, Limits, Problem, canonical, check_size, read
from headwater.server.store.entities import INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime

    from headwater.lineage.events import Facets

__all__ = ["Named", "NewFacet", "Prepared", "prepare"]

Digests = list[tuple[str, bytes]]
NEITHER = -1
_LIMITS = Limits()


class NewFacet(NamedTuple):
    """A facet not met before: the hash and bytes of its canonical form."""

    hash: bytes
    body: bytes
    deleted: bool


class Named(NamedTuple):
    """A dataset as an event names it."""

    key: tuple[str, str]
    direction: int
    facets: Digests
    io: Digests


class Prepared(NamedTuple):
    """An event with its facets digested; `new` holds the facets not met before."""

    event: Event
    run_facets: Digests
    job_facets: Digests
    datasets: list[Named]
    new: dict[bytes, NewFacet]


def prepare(
    raw: bytes, met: Container[bytes], *, limits: Limits | None = None, now: datetime | None = None
) -> Prepared:
    """Read one event; raises EventError when it must be refused.

    `met` tells which facet digests need no second look.
    """
    limits = limits or _LIMITS
    event = read(raw, limits=limits, now=now, facets=False)
    new: dict[bytes, NewFacet] = {}

    def digests(facets: Facets | None, path: str) -> Digests:
        found: Digests = []
        for name, value in (facets or {}).items():
            digest = hashlib.sha256(value).digest()
            if digest not in met and digest not in new:
                if bytes(value) == b"null":
                    continue
                new[digest] = _examine(name, value, f"{path}.{name}", limits)
            found.append((name, digest))
        return found

    datasets: list[Named] = []
    for side, direction, items in (
        ("inputs", INPUT, event.inputs),
        ("outputs", OUTPUT, event.outputs),
        ("dataset", NEITHER, [event.dataset] if event.dataset else []),
    ):
        for i, item in enumerate(items):
            path = side if direction == NEITHER else f"{side}[{i}]"
            extra = item.inputFacets if direction == INPUT else item.outputFacets
            key = "inputFacets" if direction == INPUT else "outputFacets"
            datasets.append(
                Named(
                    (item.namespace, item.name),
                    direction,
                    digests(item.facets, f"{path}.facets"),
                    digests(extra, f"{path}.{key}") if extra else [],
                )
            )
    return Prepared(
        event,
        digests(event.run.facets, "run.facets") if event.run else [],
        digests(event.job.facets, "job.facets") if event.job else [],
        datasets,
        new,
    )


def _examine(name: str, raw: msgspec.Raw, path: str, limits: Limits) -> NewFacet:
    problem = known.problems(name, raw)
    if problem:
        raise EventError([Problem(path, problem)])
    value = msgspec.json.decode(raw)
    try:
        check_size(bytes(raw), value, limits)
    except EventError as error:
        found = [Problem(f"{path}.{p.field}".replace(".$", ""), p.problem) for p in error.problems]
        raise EventError(found) from None
    body = canonical(value)
    return NewFacet(hashlib.sha256(body).digest(), body, value.get("_deleted") is True)
