"""An event made ready for the projection, part by part.

Runs, jobs and datasets come again and again byte for byte. Each such part is known by the digest
of its bytes, so that only what has not been met before is decoded and checked.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headwater.lineage import facets as known
from headwater.lineage import secrets
from headwater.lineage.events import (
    FACET_MEMBERS,
    EventError,
    EventType,
    Kind,
    Limits,
    Problem,
    canonical,
    check_size,
    check_text,
    micros,
    part_hash,
    read,
)
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.parts import NEITHER, Facet, Part, Prepared, safe

if TYPE_CHECKING:
    from headwater.lineage.events import Event, Facets

__all__ = ["NEITHER", "Facet", "Part", "Parts", "Prepared", "safe"]

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])
_time = msgspec.json.Decoder(datetime)
_type = msgspec.json.Decoder(EventType)
_text = msgspec.json.Decoder(str)
_uuid = msgspec.json.Decoder(UUID)
_plain = msgspec.json.Decoder()
_encode = msgspec.json.Encoder(order="sorted").encode
_NULL = b"null"
_PLAIN = ("schema", "columnLineage", "lineage")
"""Facets whose keys are names of columns or fixed: no value of theirs is a secret for its key."""


class _OddError(Exception):
    """The event takes the slow way: it has spaces, escapes, or something wrong with it."""


class Parts:
    """The parts and facets met so far, by the digest of their bytes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._parts: dict[bytes, Part] = {}
        self._facets: dict[bytes, Facet] = {}
        self._lists: dict[bytes, tuple[list[tuple[int, Part]], list[str]]] = {}

    def trim(self, limit: int = 30_000) -> None:
        """Drop the older half once there are too many."""
        held: dict[bytes, Any]
        for held in (self._parts, self._facets, self._lists):
            if len(held) > limit:
                for key in list(held)[: limit // 2]:
                    del held[key]

    def prepare(self, raw: bytes, *, now: datetime | None = None) -> Prepared:
        """Read one event; raises EventError, with every problem found, when it must be refused."""
        try:
            found = self._event(raw, now, compact=True)
        except _REASONS:
            pass
        else:
            return found if not found.tainted else self._cleaned(found, now)
        # What is wrong is said by the lenient reader; what is merely spaced out is taken as it is.
        event = read(raw, limits=self.limits, now=now)
        try:
            found = self._event(raw, now, compact=False)
        except _REASONS:
            found = self._whole(event)
        return found if not found.tainted else self._cleaned(found, now)

    def _cleaned(self, found: Prepared, now: datetime | None) -> Prepared:
        """The event again, without the credentials that were found in it."""
        raw = secrets.clean(found.raw)
        if raw == found.raw:
            return found
        try:
            return self._event(raw, now, compact=False)
        except _REASONS:
            return self._whole(read(raw, limits=self.limits, now=now))

    def _event(self, raw: bytes, now: datetime | None, *, compact: bool) -> Prepared:
        members = _members.decode(raw)
        if compact:
            _once(members, len(raw))
        time = _time.decode(members["eventTime"])
        if time.tzinfo is None or not _sane(time, now, self.limits):
            raise _OddError
        whole: dict[str, Any] = {}
        datasets: list[tuple[int, Part]] = []
        run = job = None
        odd = False
        for key, value in members.items():
            if value == _NULL:
                continue
            if key == "inputs" or key == "outputs":  # noqa: PLR1714
                direction = INPUT if key == "inputs" else OUTPUT
                sides, whole[key] = self._list(value, key, direction, compact)
                datasets += sides
            elif key == "run":
                run = self._part(value, key, compact)
                whole[key] = run.hash
            elif key == "job":
                job = self._part(value, key, compact)
                whole[key] = job.hash
            elif key == "dataset":
                part = self._part(value, key, compact)
                whole[key] = part.hash
                datasets.append((NEITHER, part))
            elif key == "eventTime" or key == "eventType":  # noqa: PLR1714
                whole[key] = value
            else:
                whole[key] = self._other(key, value)
                odd = odd or secrets.suspicious(bytes(value), keys=False)
        if job is None and (run is not None or [d for d, _ in datasets] != [NEITHER]):
            raise _OddError
        if job is not None:
            datasets = [pair for pair in datasets if pair[0] != NEITHER]
        kind = Kind.DATASET if job is None else Kind.RUN if run else Kind.JOB
        event_type = _type.decode(whole.get("eventType", b'"OTHER"'))
        digest = hashlib.sha256(_encode(whole)).digest()
        tainted = odd or any(part.tainted for _, part in datasets)
        tainted = tainted or bool(run and run.tainted) or bool(job and job.tainted)
        return Prepared(kind, event_type, micros(time), raw, digest, run, job, datasets, tainted)

    def _list(
        self, raw: msgspec.Raw, path: str, direction: int, compact: bool
    ) -> tuple[list[tuple[int, Part]], list[str]]:
        digest = hashlib.sha256(raw).digest() + path[:1].encode()
        found = self._lists.get(digest)
        if found is None:
            parts = [self._part(item, path, compact) for item in _items.decode(raw)]
            found = [(direction, part) for part in parts], [part.hash for part in parts]
            self._lists[digest] = found
        return found

    def _part(self, raw: msgspec.Raw, path: str, compact: bool) -> Part:
        digest = hashlib.sha256(raw).digest()
        part = self._parts.get(digest)
        if part is None:
            part = self._parts[digest] = self._examine(raw, path, compact)
        return part

    def _examine(self, raw: msgspec.Raw, path: str, compact: bool) -> Part:
        members = _members.decode(raw)
        if compact:
            _once(members, len(raw))
        whole: dict[str, Any] = {}
        found: dict[str, list[tuple[str, Facet]]] = {}
        tainted = False
        for key, value in members.items():
            if value == _NULL:
                continue
            if key in FACET_MEMBERS:
                facets = _members.decode(value)
                if compact:
                    _once(facets, len(value))
                pairs = [(name, self._facet(name, facet)) for name, facet in facets.items()]
                whole[key] = {name: facet.hex for name, facet in pairs}
                found[key] = [pair for pair in pairs if pair[1].body != _NULL]
                tainted = tainted or any(facet.tainted for _, facet in pairs)
            else:
                whole[key] = self._other(key, value)
                tainted = tainted or secrets.suspicious(bytes(value))
        name: Any
        if path == "run":
            name = _uuid.decode(members["runId"]).bytes
        else:
            name = (whole["namespace"], whole["name"])
            if not all(isinstance(n, str) and 0 < len(n) <= self.limits.name for n in name):
                raise _OddError
            name = safe(*name)
        side = found.get("inputFacets" if path == "inputs" else "outputFacets", [])
        return Part(part_hash(_encode(whole)), name, found.get("facets", []), side, tainted=tainted)

    def _facet(self, name: str, raw: msgspec.Raw) -> Facet:
        digest = hashlib.sha256(raw).digest()
        facet = self._facets.get(digest)
        if facet is None:
            text = bytes(raw)
            value = _plain.decode(text)
            if type(value) is not dict and value is not None:
                raise _OddError
            sources = None
            if name == "columnLineage":
                sources = _sources(raw) if value is not None else None
            elif known.problems(name, raw):
                raise _OddError
            check_size(text, value, self.limits)
            body = canonical(value)
            if len(body) != len(text) or b"\\" in text:
                check_text(text, value)
            found = hashlib.sha256(body)
            deleted = value is not None and value.get("_deleted") is True
            odd = secrets.suspicious(text, keys=name not in _PLAIN)
            facet = Facet(found.digest(), found.hexdigest(), body, deleted, odd, sources=sources)
            self._facets[digest] = facet
        return facet

    def _other(self, key: str, value: msgspec.Raw) -> Any:
        """Any other member: held to the limits, kept in the identity."""
        decoded = _plain.decode(value)
        if type(decoded) is not str or len(decoded) + 2 != len(value):
            text = bytes(value)
            check_size(text, decoded, self.limits)
            check_text(text, decoded)
            if key in ("producer", "schemaURL") and type(decoded) is not str:
                raise _OddError
        return decoded

    def _whole(self, event: Event) -> Prepared:
        """An event that only the lenient reader understands."""
        datasets = [
            (side, Part("", safe(d.namespace, d.name), self._given(d.facets, f"{path}[{i}].facets"), []))
            for side, path, items in ((INPUT, "inputs", event.inputs), (OUTPUT, "outputs", event.outputs))
            for i, d in enumerate(items)
        ]  # fmt: skip
        run, job, dataset = event.run, event.job, event.dataset
        if dataset is not None:
            facets = self._given(dataset.facets, "dataset.facets")
            datasets.append((NEITHER, Part("", safe(dataset.namespace, dataset.name), facets, [])))
        return Prepared(
            event.kind,
            event.type,
            event.time,
            event.raw,
            event.hash,
            Part("", run.runId.bytes, self._given(run.facets, "run.facets"), []) if run else None,
            Part("", (job.namespace, job.name), self._given(job.facets, "job.facets"), []) if job else None,
            datasets,
            secrets.suspicious(event.raw),
        )  # fmt: skip

    def _given(self, facets: Facets | None, path: str) -> list[tuple[str, Facet]]:
        found = []
        for name, raw in (facets or {}).items():
            problem = known.problems(name, raw)
            if problem:
                raise EventError([Problem(f"{path}.{name}", problem)])
            found.append((name, self._facet(name, raw)))
        return [pair for pair in found if pair[1].body != _NULL]


_REASONS = (
    _OddError, msgspec.DecodeError, EventError, KeyError, RecursionError, UnicodeDecodeError,
)  # fmt: skip


def _sources(raw: msgspec.Raw) -> set[tuple[str, str]]:
    read = known.read("columnLineage", raw, known.ColumnLineage)
    if read is None:
        raise _OddError
    return known.sources(read)


def _once(members: dict[str, msgspec.Raw], size: int) -> None:
    """Make sure no key was lost to repetition: in compact JSON the lengths add up."""
    held = sum(map(len, members)) + sum(map(len, members.values())) + 4 * len(members)
    if size != max(2, 1 + held):
        raise _OddError


def _sane(time: datetime, now: datetime | None, limits: Limits) -> bool:
    return 0 <= micros(time) <= micros((now or datetime.now(timezone.utc)) + limits.skew)
