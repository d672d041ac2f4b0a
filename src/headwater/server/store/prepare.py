"""An event made ready for the projection, part by part."""

from __future__ import annotations

import time as clock
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage import secrets
from headwater.lineage.events import EventError, EventType, Kind, Limits, micros, read
from headwater.lineage.moments import MICROSECOND
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.examine import (
    NULL,
    OddError,
    decode_members,
    once,
)
from headwater.server.store.parts import NEITHER, Facet, Part, Prepared, safe
from headwater.server.store.regular import Regular

if TYPE_CHECKING:
    from headwater.lineage.events import Event

__all__ = ["NEITHER", "Facet", "Part", "Parts", "Prepared", "safe"]

_time = msgspec.json.Decoder(datetime).decode
_type = msgspec.json.Decoder(EventType).decode
_encode = msgspec.json.Encoder(order="sorted").encode
_TYPES = {f'"{kind.value}"'.encode(): kind for kind in EventType}
_REASONS = (
    OddError, msgspec.DecodeError, EventError, KeyError, RecursionError, UnicodeDecodeError,
)  # fmt: skip


class Parts(Regular):
    """Events from their bytes, with the parts and facets met so far."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._lists: dict[bytes, tuple[list[tuple[int, Part]], list[str], bool]] = {}
        self._skew = limits.skew // MICROSECOND

    def trim(self, limit: int = 12_000) -> None:
        """Drop the older half once there are too many."""
        met: list[dict[Any, Any]] = [
            self._parts, self._facets, self._texts, self._lists, self._spaces,
        ]  # fmt: skip
        for held in met:
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
        members = decode_members(raw)
        if compact:
            once(members, len(raw))
        time = self._moment(members["eventTime"], now)
        whole: dict[str, Any] = {}
        datasets: list[tuple[int, Part]] = []
        run = job = None
        tainted = odd = False
        for key, value in members.items():
            if len(value) == 4 and value == NULL:
                continue
            if key == "inputs" or key == "outputs":  # noqa: PLR1714
                direction = INPUT if key == "inputs" else OUTPUT
                sides, whole[key], odd = self._list(value, key, direction, compact)
                datasets += sides
            elif key == "run":
                run = self.part(value, key, compact)
                whole[key], odd = run.hash, run.tainted
            elif key == "job":
                job = self.part(value, key, compact)
                whole[key], odd = job.hash, job.tainted
            elif key == "dataset":
                part = self.part(value, key, compact)
                whole[key], odd = part.hash, part.tainted
                datasets.append((NEITHER, part))
            elif key == "eventType" or key == "eventTime":  # noqa: PLR1714
                whole[key] = value
                continue
            else:
                whole[key], odd = self.text(key, value)
            tainted = tainted or odd
        if job is None:
            if run is not None or len(datasets) != 1 or datasets[0][0] != NEITHER:
                raise OddError
        elif "dataset" in whole:
            datasets = [pair for pair in datasets if pair[0] != NEITHER]
        kind = Kind.DATASET if job is None else Kind.RUN if run else Kind.JOB
        sent = bytes(whole.get("eventType", b'"OTHER"'))
        event_type = _TYPES.get(sent) or _type(sent)
        digest = sha256(_encode(whole)).digest()
        return Prepared(kind, event_type, time, raw, digest, run, job, datasets, tainted)

    def _moment(self, raw: msgspec.Raw, now: datetime | None) -> int:
        time = _time(raw)
        if time.tzinfo is None:
            raise OddError
        found = micros(time)
        latest = clock.time_ns() // 1000 if now is None else micros(now)
        if not 0 <= found <= latest + self._skew:
            raise OddError
        return found

    def _list(
        self, raw: msgspec.Raw, path: str, direction: int, compact: bool
    ) -> tuple[list[tuple[int, Part]], list[str], bool]:
        digest = sha256(raw).digest() + (b"i" if direction == INPUT else b"o")
        found = self._lists.get(digest)
        if found is None:
            parts = self.datasets(raw, path, compact)
            sides = [(direction, part) for part in parts]
            found = sides, [part.hash for part in parts], any(part.tainted for part in parts)
            self._lists[digest] = found
        return found

    def _whole(self, event: Event) -> Prepared:
        """An event that only the lenient reader understands."""
        datasets = [
            (side, Part("", safe(d.namespace, d.name), self.given(d.facets, f"{path}[{i}].facets"), []))
            for side, path, items in ((INPUT, "inputs", event.inputs), (OUTPUT, "outputs", event.outputs))
            for i, d in enumerate(items)
        ]  # fmt: skip
        run, job, dataset = event.run, event.job, event.dataset
        if dataset is not None:
            facets = self.given(dataset.facets, "dataset.facets")
            datasets.append((NEITHER, Part("", safe(dataset.namespace, dataset.name), facets, [])))
        return Prepared(
            event.kind,
            event.type,
            event.time,
            event.raw,
            event.hash,
            Part("", run.runId.bytes, self.given(run.facets, "run.facets"), []) if run else None,
            Part("", safe(job.namespace, job.name), self.given(job.facets, "job.facets"), []) if job else None,
            datasets,
            secrets.suspicious(event.raw),
        )  # fmt: skip
