"""OpenLineage events, read leniently and written strictly.

`read` takes the bytes a producer sent and answers an `Event`, or raises `EventError`
with one `Problem` for each field that is wrong. Facets stay raw bytes until someone asks.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Dataset",
    "Event",
    "EventError",
    "EventType",
    "Job",
    "Kind",
    "Limits",
    "Problem",
    "Run",
    "canonical",
    "check_size",
    "check_text",
    "from_micros",
    "identity",
    "iso",
    "micros",
    "part_hash",
    "read",
    "write",
]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
FACET_MEMBERS = ("facets", "inputFacets", "outputFacets")


class Kind(str, Enum):
    """Which of OpenLineage's three events this is."""

    RUN = "RunEvent"
    JOB = "JobEvent"
    DATASET = "DatasetEvent"


class EventType(str, Enum):
    """What a run event says about its run."""

    START = "START"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    ABORT = "ABORT"
    FAIL = "FAIL"
    OTHER = "OTHER"


class Problem(msgspec.Struct, frozen=True):
    """One thing wrong with one field of what was sent."""

    field: str
    problem: str


class EventError(ValueError):
    """What was sent is not an event; `problems` says why, field by field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.problem}" for p in problems))
        self.problems = problems


class Limits(msgspec.Struct, frozen=True):
    """How large one event may be before it is refused."""

    depth: int = 64
    members: int = 25_000
    name: int = 4_096
    skew: timedelta = timedelta(days=1)


Facets = dict[str, msgspec.Raw]


class Dataset(msgspec.Struct):
    """A dataset as one event names it."""

    namespace: str
    name: str
    facets: Facets | None = None
    inputFacets: Facets | None = None  # noqa: N815
    outputFacets: Facets | None = None  # noqa: N815


class Job(msgspec.Struct):
    """A job as one event names it."""

    namespace: str
    name: str
    facets: Facets | None = None


class Run(msgspec.Struct):
    """A run as one event names it."""

    runId: UUID  # noqa: N815
    facets: Facets | None = None


class _Envelope(msgspec.Struct):
    eventTime: datetime  # noqa: N815
    eventType: str | None = None  # noqa: N815
    producer: str | None = None
    schemaURL: str | None = None  # noqa: N815
    run: Run | None = None
    job: Job | None = None
    dataset: Dataset | None = None
    inputs: list[Dataset] | None = None
    outputs: list[Dataset] | None = None


class Event(msgspec.Struct):
    """One event: its envelope decoded, its facets raw, its identity known."""

    kind: Kind
    type: EventType
    time: int
    producer: str
    run: Run | None
    job: Job | None
    dataset: Dataset | None
    inputs: list[Dataset]
    outputs: list[Dataset]
    raw: bytes
    hash: bytes

    @property
    def datasets(self) -> list[Dataset]:
        """Every dataset the event names."""
        return [*self.inputs, *self.outputs, *([self.dataset] if self.dataset else [])]


_decoder = msgspec.json.Decoder(_Envelope)
_plain = msgspec.json.Decoder()
_sorted = msgspec.json.Encoder(order="sorted")
_time = msgspec.json.Decoder(datetime)
_NOT_BRACKETS = bytes(c for c in range(256) if c not in b"[]{}")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*?)`)?$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<field>\w+)`$")
_LOOSE_ZONE = re.compile(r"([+-]\d\d)(\d\d)?$")


def micros(moment: datetime) -> int:
    """A moment as whole microseconds since 1970, the unit every store keeps."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(value: int) -> datetime:
    """The moment that `micros` made into a number."""
    return EPOCH + value * MICROSECOND


def iso(value: int) -> str:
    """A moment in microseconds as RFC 3339 text in UTC."""
    return from_micros(value).isoformat().replace("+00:00", "Z")


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


def check_text(raw: bytes, value: Any) -> None:
    """Refuse repeated keys and NUL characters in JSON that was decoded to `value`."""
    if b"\\" in raw and b"\\u" in raw:
        _check_escapes(raw, value)
        return
    body = canonical(value)
    # Without escapes, JSON that comes back with all its colons has lost no repeated key.
    if len(raw) != len(body) and raw.count(b":") != body.count(b":"):
        _check_repeats(raw)


def read(raw: bytes, *, limits: Limits | None = None, now: datetime | None = None) -> Event:
    """The event in `raw`, whatever its producer's age and habits.

    Raises EventError when the envelope cannot be understood or a limit is passed.
    """
    limits = limits or Limits()
    try:
        value = _plain.decode(raw)
    except RecursionError:
        _refuse("$", f"nested deeper than {limits.depth} levels")
    except msgspec.DecodeError as error:
        _refuse("$", _syntax(str(error)))
    except UnicodeDecodeError:
        _refuse("$", "a string holds text that is not valid Unicode")
    if type(value) is not dict:
        _refuse("$", "an event is a JSON object")
    check_size(raw, value, limits)
    check_text(raw, value)
    envelope = _envelope(raw, value)
    return _checked(envelope, raw, identity(value), limits, now)


def write(event: Any) -> bytes:
    """The bytes of an openlineage-python event, as its own serialiser orders them."""
    from openlineage.client.serde import Serde

    return Serde.to_json(event).encode()


def _refuse(field: str, problem: str) -> NoReturn:
    raise EventError([Problem(field, problem)]) from None


def _syntax(message: str) -> str:
    if "truncated" in message:
        return "the JSON ends too early"
    if "surrogate" in message or "utf-8" in message.lower():
        return "a string holds text that is not valid Unicode"
    return message[:1].lower() + message[1:]


def check_size(raw: bytes, value: Any, limits: Limits) -> None:
    """Hold a decoded value to the limits of depth and number; raises EventError."""
    brackets = raw.translate(None, _NOT_BRACKETS)
    for _ in range(limits.depth // 2):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets or (len(raw) > limits.members and raw.count(b",") >= limits.members):
        _walk(value, limits)


def _walk(value: Any, limits: Limits) -> None:
    level: list[tuple[str, Any]] = [("$", value)]
    for _ in range(limits.depth + 1):
        below: list[tuple[str, Any]] = []
        for path, item in level:
            if not isinstance(item, (dict, list)):
                continue
            if len(item) > limits.members:
                _refuse(path, f"{len(item)} members, more than the limit of {limits.members}")
            pairs = item.items() if isinstance(item, dict) else enumerate(item)
            below += [(_join(path, key), child) for key, child in pairs]
        level = [pair for pair in below if isinstance(pair[1], (dict, list))]
        if not level:
            return
    _refuse(level[0][0][:200], f"nested deeper than {limits.depth} levels")


def _join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return key if path == "$" else f"{path}.{key}"


def _check_escapes(raw: bytes, value: Any) -> None:
    _check_repeats(raw)
    stack: list[tuple[str, Any]] = [("$", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            if "\0" in item:
                _refuse(path, "holds a NUL character")
        elif isinstance(item, dict):
            if any("\0" in key for key in item):
                _refuse(path, "a key holds a NUL character")
            stack += [(_join(path, key), child) for key, child in item.items()]
        elif isinstance(item, list):
            stack += [(_join(path, key), child) for key, child in enumerate(item)]


def _check_repeats(raw: bytes) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            _refuse(twice, "the key stands twice in one object")
        return found

    json.loads(raw, object_pairs_hook=once)


def _envelope(raw: bytes, value: dict[str, Any]) -> _Envelope:
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError as error:
        found = _AT.match(str(error))
        assert found is not None
        path = (found["path"] or "").lstrip(".").replace("[...]", "[*]")
        what = found["what"]
    time = value.get("eventTime")
    if path == "eventTime" and isinstance(time, str):
        loose = _LOOSE_ZONE.sub(lambda m: f"{m[1]}:{m[2] or '00'}", time.strip())
        try:
            _time.decode(_sorted.encode(loose))
        except msgspec.ValidationError:
            _refuse("eventTime", f"not an RFC 3339 time: {time[:64]!r}")
        return _envelope(_sorted.encode({**value, "eventTime": loose}), {})
    missing = _MISSING.match(what)
    if missing:
        _refuse(f"{path}.{missing['field']}".lstrip("."), "is missing")
    _refuse(path or "$", what[:1].lower() + what[1:].replace("`", ""))


def _checked(
    envelope: _Envelope, raw: bytes, digest: bytes, limits: Limits, now: datetime | None
) -> Event:
    problems: list[Problem] = []
    run, job, dataset = envelope.run, envelope.job, envelope.dataset
    kind = Kind.RUN if run else Kind.DATASET if dataset and not job else Kind.JOB
    if run is None and job is None and dataset is None:
        problems.append(Problem("run", "an event needs a run and a job, a job, or a dataset"))
    if run and not job:
        problems.append(Problem("job", "is missing"))
    event_type = _type_of(envelope, problems)
    time = _time_of(envelope, limits, now, problems)
    inputs, outputs = envelope.inputs or [], envelope.outputs or []
    if run:
        _check_facets("run", run.facets, problems)
    if job:
        _check_named("job", job, limits, problems)
        _check_facets("job", job.facets, problems)
    if dataset:
        _check_dataset("dataset", dataset, limits, problems)
    for side, items in (("inputs", inputs), ("outputs", outputs)):
        for i, item in enumerate(items):
            _check_dataset(f"{side}[{i}]", item, limits, problems)
    if problems:
        raise EventError(problems[:100])
    return Event(
        kind=kind,
        type=event_type,
        time=time,
        producer=envelope.producer or "",
        run=run,
        job=job,
        dataset=dataset if kind is Kind.DATASET else None,
        inputs=inputs,
        outputs=outputs,
        raw=raw,
        hash=digest,
    )


def _type_of(envelope: _Envelope, problems: list[Problem]) -> EventType:
    if envelope.eventType is None:
        return EventType.OTHER
    try:
        return EventType(envelope.eventType.upper())
    except ValueError:
        known = ", ".join(EventType.__members__)
        problems.append(Problem("eventType", f"not one of {known}"))
        return EventType.OTHER


def _time_of(
    envelope: _Envelope, limits: Limits, now: datetime | None, problems: list[Problem]
) -> int:
    if envelope.eventTime.tzinfo is None:
        problems.append(Problem("eventTime", "has no time zone"))
        return 0
    latest = (now or datetime.now(timezone.utc)) + limits.skew
    if not EPOCH <= envelope.eventTime <= latest:
        problems.append(Problem("eventTime", "lies before 1970 or in the future"))
        return 0
    return micros(envelope.eventTime)


def _check_named(path: str, item: Job | Dataset, limits: Limits, problems: list[Problem]) -> None:
    for field in ("namespace", "name"):
        value: str = getattr(item, field)
        if not value:
            problems.append(Problem(f"{path}.{field}", "is empty"))
        elif len(value) > limits.name:
            text = f"{len(value)} characters, more than the limit of {limits.name}"
            problems.append(Problem(f"{path}.{field}", text))


def _check_dataset(path: str, item: Dataset, limits: Limits, problems: list[Problem]) -> None:
    _check_named(path, item, limits, problems)
    _check_facets(path, item.facets, problems)
    if item.inputFacets:
        _check_facets(path, item.inputFacets, problems, "inputFacets")
    if item.outputFacets:
        _check_facets(path, item.outputFacets, problems, "outputFacets")


def _check_facets(
    path: str, facets: Facets | None, problems: list[Problem], key: str = "facets"
) -> None:
    if not facets:
        return
    for name, raw in facets.items():
        text = bytes(raw)
        if text[:1] != b"{" and text != b"null":
            problems.append(Problem(f"{path}.{key}.{name}", "a facet is a JSON object"))
