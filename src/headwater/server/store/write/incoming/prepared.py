"""The parts of an event as the projection takes them: runs, jobs, datasets and their facets."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from headwater.lineage import naming
from headwater.lineage.openlineage.envelope import EventKind, EventType

__all__ = ["AHEAD", "NEITHER", "EventPart", "Facet", "PreparedEvent", "producer_of", "safe"]

NEITHER = -1
AHEAD = 5 * 60 * 1_000_000
"""An event time further beyond the arrival is a wrong clock, and counts as the arrival."""
PRODUCERS = 64


class Facet(msgspec.Struct, eq=False, gc=False):
    """A facet: the hash and bytes of its canonical form, and its number once it has one."""

    hash: bytes
    hex: str
    body: bytes
    deleted: bool
    tainted: bool
    number: int = -1
    sources: set[tuple[str, str]] | None = None
    """The datasets that a `columnLineage` facet names."""
    names: int = 0
    """How many datasets it names, if it is one of `NAMING_FACETS`."""


class EventPart(msgspec.Struct, eq=False, gc=False):
    """A run, job or dataset as it was sent; its facets by number once they are known."""

    hash: str
    key: Any
    facets: list[tuple[str, Facet]]
    io: list[tuple[str, Facet]]
    tainted: bool = False
    names: int = 0
    """How many datasets its facets name, the same in two of them counted twice."""
    numbers: list[tuple[str, int]] | None = None
    io_numbers: list[tuple[str, int]] = []
    columns: int | None = None
    """The number of the facet with this dataset's column lineage: its `lineage`, else `columnLineage`."""
    explicit: bool = False
    stated: dict[tuple[str, str], int] = {}
    """The sources of its outputs in a job's `lineage` facet, by name."""
    schema: int = 0
    """The number of the schema that is claimed of this dataset."""
    symlinks: int = 0
    """The number of the facet with the dataset's other names."""
    origins: tuple[tuple[str, int, int], ...] = ()
    """What a registry or catalog answered: subject, version and number of its schema."""
    streaming: bool = False
    """Whether `jobType` declares a job that has no end of its own."""
    pattern: tuple[int | None, bool] | None = None
    """How often a job promises to report, and whether its events name all of its datasets."""
    names_parent: bool = False
    """Whether a job declares which job it is a part of."""
    change: str = ""
    """The `lifecycleStateChange` of the dataset; an overwrite of a part of it is none."""


class PreparedEvent(msgspec.Struct, eq=False, gc=False):
    """What the projection needs to know of one event."""

    kind: EventKind
    type: EventType
    time: int
    raw: bytes
    hash: bytes
    run: EventPart | None
    job: EventPart | None
    datasets: list[tuple[int, EventPart]]
    tainted: bool = False
    """Whether a credential may be in it."""
    assumed: tuple[str, ...] = ()
    """What was assumed of it, a reason for each assumption."""
    names: int = 0
    """How many datasets its facets name, the same in two of them counted twice."""


class _Produced(msgspec.Struct):
    producer: str = ""


_produced = msgspec.json.Decoder(_Produced).decode


def producer_of(item: PreparedEvent) -> str:
    """Which producer sent an event: one of a few, however many names there are."""
    try:
        name = _produced(item.raw).producer
    except msgspec.DecodeError:
        name = ""
    return f"{crc32(name.encode('utf-8', 'surrogatepass')) % PRODUCERS}"


def safe(namespace: str, name: str) -> tuple[str, str]:
    """A name as it was sent, unless it may carry a login or a query: those never get further."""
    if "@" in namespace or "?" in namespace or "://" in name:
        spelled = naming.canonical(namespace, name)
        return spelled.namespace, spelled.name
    return namespace, name
