"""Events read into what the projection needs, each run, job and dataset of them once only.

Most producers write compact JSON with the members that OpenLineage names, and few escapes. Such a
part is decoded in one go; any other is read step by step. Runs, jobs and datasets come again and
again byte for byte, so each is known by the digest of its bytes.
"""

from __future__ import annotations

import time as clock
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, UnsetType

from headwater.lineage import secrets
from headwater.lineage.moments import MICROSECOND
from headwater.lineage.openlineage.checks import refuse
from headwater.lineage.openlineage.events import (
    FACET_MEMBERS,
    EventError,
    EventKind,
    EventType,
    Limits,
    check_values,
    micros,
    part_hash,
    read,
)
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.write.incoming.facet_reader import (
    NULL,
    FacetReader,
    NotCompactError,
    decode_items,
    decode_members,
    once,
)
from headwater.server.store.write.incoming.name_limits import further_datasets, too_long
from headwater.server.store.write.incoming.prepared import (
    NEITHER,
    EventPart,
    Facet,
    PreparedEvent,
    safe,
)

if TYPE_CHECKING:
    from headwater.lineage.openlineage.events import Event, Facets

__all__ = ["EventReader"]

FACET_BYTES = 32 * 1024 * 1024
"""Bytes of facets after which the cache is emptied: a few could be as large as many."""
Sent = dict[str, Raw]
Held = list[tuple[str, Facet]]
_List = tuple[list[tuple[int, EventPart]], list[str], bool, int]
"""A list of inputs or outputs: its parts, their hashes, whether a credential may be in them, and how
many datasets their facets name."""


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    """A job or a dataset."""

    namespace: str
    name: str
    facets: Sent | UnsetType = UNSET
    inputFacets: Sent | UnsetType = UNSET  # noqa: N815
    outputFacets: Sent | UnsetType = UNSET  # noqa: N815


class _Run(msgspec.Struct, forbid_unknown_fields=True):
    runId: str  # noqa: N815
    facets: Sent | UnsetType = UNSET


class _Usual(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A run event with the members that nearly all of them have."""

    eventTime: Raw  # noqa: N815
    eventType: Raw  # noqa: N815
    producer: Raw
    schemaURL: Raw  # noqa: N815
    run: Raw
    job: Raw
    inputs: Raw
    outputs: Raw


_usual = msgspec.json.Decoder(_Usual).decode
_USUAL = 1 + sum(len(member) + 4 for member in _Usual.__struct_fields__)
_named = msgspec.json.Decoder(_Named).decode
_alone = msgspec.json.Decoder(tuple[_Named]).decode
"""A list of one dataset, as most lists of outputs are."""
_run = msgspec.json.Decoder(_Run).decode
_encode = msgspec.json.Encoder(order="sorted").encode
_NAMED = len('{"namespace":"","name":""}')
_RUN = len('{"runId":""}')
_OTHERWISE = (NotCompactError, msgspec.DecodeError)
_PATHS = {"run": b"r", "job": b"j", "dataset": b"d", "inputs": b"i", "outputs": b"o"}
"""What else a part is known by: a facet of an input is none of an output."""
_uuid = msgspec.json.Decoder(UUID).decode
_plain = msgspec.json.Decoder().decode
_time = msgspec.json.Decoder(datetime).decode
_SEPARATOR, _DATE_END = ord("T"), len('"2026-01-01')
_type = msgspec.json.Decoder(EventType).decode
_TYPES = {f'"{kind.value}"'.encode(): kind for kind in EventType}
_DATASET_KIND, _RUN_KIND, _JOB_KIND = EventKind.DATASET, EventKind.RUN, EventKind.JOB
_REASONS = (
    NotCompactError, msgspec.DecodeError, EventError, KeyError, RecursionError, UnicodeDecodeError,
)  # fmt: skip


class EventReader:
    """Reads events from their bytes; keeps the parts and facets met so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._facets = FacetReader(limits)
        self._parts: dict[bytes, EventPart] = {}
        self._names: dict[str, bool] = {}
        """Names, of facets too, and whether a credential is in them."""
        self._odd_name = self._names.get
        self._lists: dict[bytes, _List] = {}
        self._skew = limits.skew // MICROSECOND

    def trim(self, limit: int = 12_000) -> None:
        """Drop the older half once there are too many."""
        met: list[dict[Any, Any]] = [
            self._parts, self._lists, self._names, *self._facets.met,
        ]  # fmt: skip
        if self._facets.size > FACET_BYTES:
            for held in met:
                held.clear()
            self._facets.size = 0
        for held in met:
            if len(held) > limit:
                for key in list(held)[: limit // 2]:
                    del held[key]

    def prepare(self, raw: bytes, *, now: datetime | None = None) -> PreparedEvent:
        """Read one event; raises EventError, with every problem found, when it must be refused."""
        check_values(raw, self.limits)
        found, limit = self._prepare(raw, now), self.limits.datasets
        # Most events name few, and of most of the others each facet names the same.
        if found.names > limit and (count := further_datasets(_plain(found.raw))) > limit:
            text = f"names {count} datasets beside its inputs and outputs"
            refuse("event", f"{text}, more than the limit of {limit}")
        return found

    def _prepare(self, raw: bytes, now: datetime | None) -> PreparedEvent:
        for read_compact in (self._usual, self._compact):
            try:
                found = read_compact(raw, now)
            except _REASONS:
                continue
            return found if not found.tainted else self._cleaned(found, now)
        # The lenient reader reports what is wrong; what is merely spaced out is taken as it is.
        event = read(raw, limits=self.limits, now=now)
        try:
            found = self._event(event.raw, now, compact=False)
        except _REASONS:
            found = self._whole(event)
        found.assumed = event.assumed
        return found if not found.tainted else self._cleaned(found, now)

    def _cleaned(self, found: PreparedEvent, now: datetime | None) -> PreparedEvent:
        """The event again, without the credentials that were found in it."""
        raw = secrets.clean(found.raw)
        if raw == found.raw:
            return found
        try:
            cleaned = self._event(raw, now, compact=False)
        except _REASONS:
            cleaned = self._whole(read(raw, limits=self.limits, now=now))
        cleaned.assumed = found.assumed
        return cleaned

    def _usual(self, raw: bytes, now: datetime | None) -> PreparedEvent:
        """What `_event` makes of a compact run event with the usual members, in half the time."""
        sent = _usual(raw)
        event_type = _TYPES.get(bytes(sent.eventType))
        size = (
            _USUAL + len(sent.eventTime) + len(sent.eventType) + len(sent.producer)
            + len(sent.schemaURL) + len(sent.run) + len(sent.job) + len(sent.inputs)
            + len(sent.outputs)
        )  # fmt: skip
        if event_type is None or size != len(raw):
            raise NotCompactError
        time = self._moment(sent.eventTime, now)
        inputs, input_hashes, odd_input, input_names = self._list(
            sent.inputs, "inputs", INPUT, True
        )
        outputs, output_hashes, odd_output, output_names = self._list(
            sent.outputs, "outputs", OUTPUT, True
        )
        run, job = self.part(sent.run, "run", True), self.part(sent.job, "job", True)
        producer, odd_producer = self._facets.text("producer", sent.producer)
        url, odd_url = self._facets.text("schemaURL", sent.schemaURL)
        whole = {
            "eventTime": sent.eventTime, "eventType": sent.eventType, "inputs": input_hashes,
            "job": job.hash, "outputs": output_hashes, "producer": producer, "run": run.hash,
            "schemaURL": url,
        }  # fmt: skip
        digest = sha256(_encode(whole)).digest()
        tainted = run.tainted or job.tainted or odd_input or odd_output or odd_producer or odd_url
        datasets = [*inputs, *outputs]
        return PreparedEvent(
            _RUN_KIND, event_type, time, raw, digest, run, job, datasets, tainted,
            names=input_names + output_names + run.names + job.names,
        )  # fmt: skip

    def _compact(self, raw: bytes, now: datetime | None) -> PreparedEvent:
        return self._event(raw, now, compact=True)

    def _event(self, raw: bytes, now: datetime | None, *, compact: bool) -> PreparedEvent:
        members = decode_members(raw)
        if compact:
            once(members, len(raw))
        time = self._moment(members["eventTime"], now)
        whole: dict[str, Any] = {}
        datasets: list[tuple[int, EventPart]] = []
        run = job = None
        tainted = odd = False
        names = 0
        for key, value in members.items():
            if len(value) == 4 and value == NULL:
                continue
            if key == "inputs" or key == "outputs":  # noqa: PLR1714
                direction = INPUT if key == "inputs" else OUTPUT
                sides, whole[key], odd, some = self._list(value, key, direction, compact)
                datasets += sides
                names += some
            elif key == "run":
                run = self.part(value, key, compact)
                whole[key], odd = run.hash, run.tainted
                names += run.names
            elif key == "job":
                job = self.part(value, key, compact)
                whole[key], odd = job.hash, job.tainted
                names += job.names
            elif key == "dataset":
                part = self.part(value, key, compact)
                whole[key], odd = part.hash, part.tainted
                names += part.names
                datasets.append((NEITHER, part))
            elif key == "eventType" or key == "eventTime":  # noqa: PLR1714
                whole[key] = value
                continue
            else:
                whole[key], odd = self._facets.text(key, value)
            tainted = tainted or odd
        if job is None:
            if run is not None or len(datasets) != 1 or datasets[0][0] != NEITHER:
                raise NotCompactError
        elif "dataset" in whole:
            datasets = [pair for pair in datasets if pair[0] != NEITHER]
        kind = _DATASET_KIND if job is None else _RUN_KIND if run else _JOB_KIND
        sent = bytes(whole.get("eventType", b'"OTHER"'))
        event_type = _TYPES.get(sent) or _type(sent)
        digest = sha256(_encode(whole)).digest()
        return PreparedEvent(
            kind, event_type, time, raw, digest, run, job, datasets, tainted, names=names
        )

    def _moment(self, raw: msgspec.Raw, now: datetime | None) -> int:
        time = _time(raw)
        if time.tzinfo is None or memoryview(raw)[_DATE_END] != _SEPARATOR:
            raise NotCompactError
        try:
            found = micros(time)
        except ValueError:
            raise NotCompactError from None
        latest = clock.time_ns() // 1000 if now is None else micros(now)
        if not 0 <= found <= latest + self._skew:
            raise NotCompactError
        return found

    def _list(self, raw: msgspec.Raw, path: str, direction: int, compact: bool) -> _List:
        digest = sha256(raw).digest() + (b"i" if direction == INPUT else b"o")
        found = self._lists.get(digest)
        if found is None:
            parts = self.datasets(raw, path, compact)
            if len(parts) > self.limits.datasets:
                raise NotCompactError
            sides = [(direction, part) for part in parts]
            tainted, names = any(part.tainted for part in parts), sum(part.names for part in parts)
            if names > self.limits.datasets:  # each may name the same
                names = further_datasets({path: _plain(raw)})
            found = sides, [part.hash for part in parts], tainted, names
            self._lists[digest] = found
        return found

    def _whole(self, event: Event) -> PreparedEvent:
        """An event that only the lenient reader understands."""
        datasets = [
            (side, self._given(safe(d.namespace, d.name), d.facets, f"{path}[{i}]"))
            for side, path, items in ((INPUT, "inputs", event.inputs), (OUTPUT, "outputs", event.outputs))
            for i, d in enumerate(items)
        ]  # fmt: skip
        run, job, dataset = event.run, event.job, event.dataset
        if dataset is not None:
            key = safe(dataset.namespace, dataset.name)
            datasets.append((NEITHER, self._given(key, dataset.facets, "dataset")))
        of_run = self._given(run.runId.bytes, run.facets, "run") if run else None
        of_job = self._given(safe(job.namespace, job.name), job.facets, "job") if job else None
        parts = [part for part in (of_run, of_job) if part] + [part for _, part in datasets]
        return PreparedEvent(
            event.kind, event.type, event.time, event.raw, event.hash, of_run, of_job, datasets,
            secrets.holds_secret(event.raw), names=sum(part.names for part in parts),
        )  # fmt: skip

    def _given(self, key: Any, sent: Facets | None, path: str) -> EventPart:
        facets = self._facets.given(sent, f"{path}.facets")
        return EventPart("", key, facets, [], names=_count(facets, []))

    def part(self, raw: Raw, path: str, compact: bool) -> EventPart:
        """The run, job or dataset in `raw`; `path` is its place in the event."""
        key = sha256(raw).digest() + _PATHS[path]
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = self._part(raw, path, compact)
        return part

    def _part(self, raw: Raw, path: str, compact: bool) -> EventPart:
        try:
            part, size = self._one_run(_run(raw)) if path == "run" else self._one(_named(raw), path)
            if size == len(raw):
                return part
        except _OTHERWISE:
            pass
        return self._examine(raw, path, compact)

    def datasets(self, raw: Raw, path: str, compact: bool) -> list[EventPart]:
        """The parts of a list of inputs or outputs."""
        if path == "outputs":
            try:
                part, size = self._one(_alone(raw)[0], path)
                if size + 2 == len(raw):
                    return [part]
            except _OTHERWISE:
                pass
        items = decode_items(raw)
        if len(items) == 1:  # it comes again as the list that it is
            return [self._part(items[0], path, compact)]
        return [self.part(item, path, compact) for item in items]

    def _one(self, named: _Named, path: str) -> tuple[EventPart, int]:
        """A job or dataset, and how long it is if nothing of it was lost.

        A repeated key, an escape, a space or a letter that takes more than one byte makes what
        was sent longer than that.
        """
        space, own = named.namespace, named.name
        longest = self.limits.name
        if not (0 < len(space) <= longest and 0 < len(own) <= longest):
            raise NotCompactError
        tainted = self._odd(space) or self._odd(own)
        size = _NAMED + len(space) + len(own)
        whole: dict[str, Any] = {"namespace": space, "name": own}
        facets: Held = []
        io: Held = []
        names = 0
        if named.facets is not UNSET:
            length, odd, names = self._take(whole, "facets", named.facets, facets)
            size += length
            tainted = tainted or odd
        if named.inputFacets is not UNSET:
            held = io if path == "inputs" else []
            length, odd, more = self._take(whole, "inputFacets", named.inputFacets, held)
            size += length
            names += more if path == "inputs" else 0
            tainted = tainted or odd
        if named.outputFacets is not UNSET:
            held = [] if path == "inputs" else io
            length, odd, more = self._take(whole, "outputFacets", named.outputFacets, held)
            size += length
            names += 0 if path == "inputs" else more
            tainted = tainted or odd
        part = EventPart(part_hash(_encode(whole)), safe(space, own), facets, io, tainted, names)
        return part, size

    def _one_run(self, run: _Run) -> tuple[EventPart, int]:
        whole: dict[str, Any] = {"runId": run.runId}
        facets: Held = []
        size, tainted, names = _RUN + len(run.runId), False, 0
        if run.facets is not UNSET:
            length, tainted, names = self._take(whole, "facets", run.facets, facets)
            size += length
        known_as = msgspec.convert(run.runId, UUID).bytes
        return EventPart(part_hash(_encode(whole)), known_as, facets, [], tainted, names), size

    def _take(
        self, whole: dict[str, Any], key: str, sent: Sent, held: Held
    ) -> tuple[int, bool, int]:
        """Hold the facets of one member; how long it is, whether one holds a secret, what they name."""
        hashes: dict[str, str] = {}
        whole[key] = hashes
        size, tainted, names = len(key) + 5 + 4 * len(sent) + (not sent), False, 0
        read_facet, longest, odd_name = self._facets.facet, self.limits.name, self._odd_name
        for name, body in sent.items():
            length = len(name)
            if length > longest:
                raise NotCompactError
            facet = read_facet(name, body)
            hashes[name] = facet.hex
            size += length + len(body)
            if facet.tainted or (odd_name(name) is not False and self._odd(name)):
                tainted = True
            if facet.body != NULL:
                held.append((name, facet))
                names += facet.names
        return size, tainted, names

    def _odd(self, name: str) -> bool:
        """Whether a credential is in a name."""
        odd = self._names.get(name)
        if odd is None:
            odd = self._names[name] = secrets.holds_secret(name.encode())
        return odd

    def _examine(self, raw: msgspec.Raw, path: str, compact: bool) -> EventPart:
        members = decode_members(raw)
        if compact:
            once(members, len(raw))
        whole: dict[str, Any] = {}
        facets: list[tuple[str, Facet]] = []
        side: list[tuple[str, Facet]] = []
        tainted = False
        io = "inputFacets" if path == "inputs" else "outputFacets"
        for key, value in members.items():
            if len(value) == 4 and value == NULL:
                continue
            if key in FACET_MEMBERS:
                sent = decode_members(value)
                if compact:
                    once(sent, len(value))
                hashes: dict[str, str] = {}
                whole[key] = hashes
                held = facets if key == "facets" else side if key == io else None
                for name, body in sent.items():
                    if held is facets and too_long(name, self.limits.name):
                        raise NotCompactError
                    facet = self._facets.facet(name, body)
                    hashes[name] = facet.hex
                    if facet.tainted or self._odd(name):
                        tainted = True
                    if held is not None and facet.body != NULL:
                        held.append((name, facet))
            else:
                whole[key], odd = self._facets.text(key, value)
                tainted = tainted or odd
        known_as = _uuid(members["runId"]).bytes if path == "run" else self._key(whole)
        names = _count(facets, side)
        return EventPart(part_hash(_encode(whole)), known_as, facets, side, tainted, names)

    def _key(self, whole: dict[str, Any]) -> tuple[str, str]:
        """The namespace and name of a job or dataset."""
        space, own = whole["namespace"], whole["name"]
        for text in (space, own):
            if type(text) is not str or not text or too_long(text, self.limits.name):
                raise NotCompactError
        return safe(space, own)


def _count(facets: Held, io: Held) -> int:
    """How many datasets some facets name, the same in two of them counted twice."""
    return sum([facet.names for _, facet in facets]) + sum([facet.names for _, facet in io])
