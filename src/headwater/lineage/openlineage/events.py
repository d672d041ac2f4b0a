"""OpenLineage events, read leniently and written strictly.

`read` takes the bytes a producer sent and answers an `Event`, or raises `EventError`
with one `EventProblem` for each field that is wrong. Facets stay raw bytes until someone asks.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

import msgspec

from headwater.lineage.moments import EPOCH, from_micros, iso, micros
from headwater.lineage.openlineage.checks import (
    EventError,
    EventProblem,
    Limits,
    check_size,
    check_text,
    check_values,
    lowered,
    refuse,
)
from headwater.lineage.openlineage.envelope import (
    Event,
    EventDataset,
    EventJob,
    EventKind,
    EventRun,
    EventType,
    Facets,
)
from headwater.lineage.openlineage.hashing import FACET_MEMBERS, canonical, identity, part_hash
from headwater.lineage.openlineage.repairs import repair

__all__ = [
    "FACET_MEMBERS",
    "Event",
    "EventDataset",
    "EventError",
    "EventJob",
    "EventKind",
    "EventProblem",
    "EventRun",
    "EventType",
    "Facets",
    "Limits",
    "canonical",
    "check_size",
    "check_text",
    "check_values",
    "from_micros",
    "identity",
    "iso",
    "micros",
    "part_hash",
    "read",
]


class _Envelope(msgspec.Struct):
    eventTime: datetime  # noqa: N815
    eventType: str | None = None  # noqa: N815
    producer: str | None = None
    schemaURL: str | None = None  # noqa: N815
    run: EventRun | None = None
    job: EventJob | None = None
    dataset: EventDataset | None = None
    inputs: list[EventDataset] | None = None
    outputs: list[EventDataset] | None = None


_decoder = msgspec.json.Decoder(_Envelope)
_plain = msgspec.json.Decoder()
_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>.*?)`)?$", re.DOTALL)
_MISSING = re.compile(r"^Object missing required field `(?P<field>\w+)`$")


def read(raw: bytes, *, limits: Limits | None = None, now: datetime | None = None) -> Event:
    """The event in `raw`, whatever its producer's age and habits.

    What Marquez forgives is mended, `assumed` gives the reasons, and `raw` is then the mended
    event. Raises EventError when the envelope cannot be understood or a limit is passed.
    """
    limits = limits or Limits()
    check_values(raw, limits)
    try:
        value = _plain.decode(raw)
    except RecursionError:
        refuse("$", f"nested deeper than {limits.depth} levels")
    except msgspec.DecodeError as error:
        refuse("$", _syntax(str(error)))
    except UnicodeDecodeError:
        refuse("$", "a string holds text that is not valid Unicode")
    if type(value) is not dict:
        refuse("$", "an event is a JSON object")
    check_size(raw, value, limits)
    check_text(raw, value)
    value, assumed = repair(value)
    if assumed:
        raw = canonical(value)
    event = _checked(_envelope(raw, value), raw, identity(value), limits, now)
    event.assumed = assumed
    return event


def _syntax(message: str) -> str:
    if "truncated" in message:
        return "the JSON ends too early"
    if "surrogate" in message or "utf-8" in message.lower():
        return "a string holds text that is not valid Unicode"
    return lowered(message)


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
        refuse("eventTime", f"not an RFC 3339 time: {time[:64]!r}")
    missing = _MISSING.match(what)
    if missing:
        refuse(f"{path}.{missing['field']}".lstrip("."), "is missing")
    raise EventError([EventProblem(path or "$", lowered(what.replace("`", "")))])


def _checked(
    envelope: _Envelope, raw: bytes, digest: bytes, limits: Limits, now: datetime | None
) -> Event:
    problems: list[EventProblem] = []
    run, job, dataset = envelope.run, envelope.job, envelope.dataset
    kind = EventKind.RUN if run else EventKind.DATASET if dataset and not job else EventKind.JOB
    if run is None and job is None and dataset is None:
        problems.append(EventProblem("run", "an event needs a run and a job, a job, or a dataset"))
    if run and not job:
        problems.append(EventProblem("job", "is missing"))
    time = _time_of(envelope, limits, now, problems)
    inputs, outputs = envelope.inputs or [], envelope.outputs or []
    if job:
        _check_named("job", job, limits, problems)
    if dataset:
        _check_named("dataset", dataset, limits, problems)
    for side, items in (("inputs", inputs), ("outputs", outputs)):
        if len(items) > limits.datasets:
            text = f"{len(items)} datasets, more than the limit of {limits.datasets}"
            problems.append(EventProblem(side, text))
        for i, item in enumerate(items):
            _check_named(f"{side}[{i}]", item, limits, problems)
    if problems:
        raise EventError(problems[:100])
    return Event(
        kind=kind,
        type=EventType((envelope.eventType or "OTHER").upper()),
        time=time,
        producer=envelope.producer or "",
        run=run,
        job=job,
        dataset=dataset if kind is EventKind.DATASET else None,
        inputs=inputs,
        outputs=outputs,
        raw=raw,
        hash=digest,
    )


def _time_of(
    envelope: _Envelope, limits: Limits, now: datetime | None, problems: list[EventProblem]
) -> int:
    latest = (now or datetime.now(timezone.utc)) + limits.skew
    if not EPOCH <= envelope.eventTime <= latest:
        problems.append(EventProblem("eventTime", "lies before 1970 or in the future"))
        return 0
    return micros(envelope.eventTime)


def _check_named(
    path: str, item: EventJob | EventDataset, limits: Limits, problems: list[EventProblem]
) -> None:
    for field in ("namespace", "name"):
        value: str = getattr(item, field)
        if not value:
            problems.append(EventProblem(f"{path}.{field}", "is empty"))
        elif (size := len(value.encode())) > limits.name:
            text = f"{size} bytes, more than the limit of {limits.name}"
            problems.append(EventProblem(f"{path}.{field}", text))
