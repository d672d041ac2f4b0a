"""One form for equal JSON, and the hash by which an event is known."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FACET_MEMBERS", "canonical", "identity", "part_hash"]

FACET_MEMBERS = ("facets", "inputFacets", "outputFacets")


_sorted = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces: equal values have equal bytes."""
    return _sorted.encode(value)


def identity(value: Mapping[str, Any]) -> bytes:
    """The hash by which an event is known, whatever its key order and spacing.

    SHA-256 of the canonical event in which each facet stands as the SHA-256 (in hex) of its own
    canonical form, and so in turn the run, the job, the dataset and each input and output.
    """
    whole = dict(value)
    for key in ("run", "job", "dataset"):
        whole[key] = _part(whole[key]) if key in whole else None
    for key in ("inputs", "outputs"):
        items = whole.get(key)
        whole[key] = [_part(item) for item in items] if isinstance(items, list) else items
    return hashlib.sha256(canonical({k: v for k, v in whole.items() if v is not None})).digest()


def _part(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    whole = dict(value)
    for key in FACET_MEMBERS:
        facets = whole.get(key)
        if isinstance(facets, dict):
            whole[key] = {name: part_hash(canonical(facet)) for name, facet in facets.items()}
    return part_hash(canonical({k: v for k, v in whole.items() if v is not None}))


def part_hash(body: bytes) -> str:
    """How a part of an event, in canonical form, stands in the event's identity."""
    return hashlib.sha256(body).hexdigest()
