"""Whether events are, to the letter, as OpenLineage's typed classes and the schemas of our own facets say."""

from __future__ import annotations

import json
import types
from datetime import datetime
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import attr
from jsonschema import Draft202012Validator
from openlineage.client import generated
from openlineage.client.generated import base

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SCHEMAS = Path(__file__).parents[1] / "docs" / "facets"
FACETS = (
    base.RunFacet, base.JobFacet, base.DatasetFacet, base.InputDatasetFacet, base.OutputDatasetFacet
)  # fmt: skip
ALWAYS = {"_producer", "_schemaURL", "producer", "schemaURL", "eventType"}
"""Keys that the classes fill in by themselves, and an event has to have."""


def check(events: Iterable[dict[str, Any]]) -> None:
    """Fail with what is wrong, each problem once."""
    found = list(dict.fromkeys(problem for event in events for problem in problems(event)))
    assert found == [], "\n".join(found[:40])


def problems(event: dict[str, Any]) -> Iterator[str]:
    """What of an event breaks a class or a schema, each with the place."""
    kind = base.RunEvent if "run" in event else base.JobEvent if "job" in event else base.DatasetEvent  # fmt: skip
    yield from _typed(event, kind, "")
    try:
        if datetime.fromisoformat(event["eventTime"].replace("Z", "+00:00")).tzinfo is None:
            yield "/eventTime: no time zone"
        if kind is base.RunEvent:
            UUID(event["run"]["runId"])
    except (KeyError, ValueError) as error:
        yield f"/: {error!r}"
    if not event.get("schemaURL", "").endswith(f"OpenLineage.json#/$defs/{kind.__name__}"):
        yield f"/schemaURL: {event.get('schemaURL')}"


def _typed(value: Any, kind: Any, at: str) -> Iterator[str]:
    origin, arms = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        found = [list(_typed(value, arm, at)) for arm in arms if arm is not type(None)]
        if all(found):
            yield from min(found, key=len)
    elif origin is Literal:
        if value not in arms:
            yield f"{at}: {value!r} is none of {arms}"
    elif origin in (list, dict):
        yield from _inside(value, origin, arms[-1], at)
    elif attr.has(kind):
        yield from _object(value, kind, at)
    elif kind is not Any:
        yield from _plain(value, kind, at)


def _inside(value: Any, holder: Any, kind: Any, at: str) -> Iterator[str]:
    if not isinstance(value, holder):
        yield f"{at}: no {holder.__name__}"
        return
    each: Iterable[tuple[Any, Any]] = value.items() if holder is dict else enumerate(value)
    for name, one in each:
        how = _facet if kind in FACETS else _typed
        yield from how(one, kind, f"{at}/{name}")


def _plain(value: Any, kind: Any, at: str) -> Iterator[str]:
    if issubclass(kind, Enum):
        fits = value in {one.value for one in kind}
    elif kind in (int, float):
        fits = isinstance(value, (int, kind)) and not isinstance(value, bool)
    else:
        fits = isinstance(value, kind)
    if not fits:
        yield f"{at}: {value!r} is no {kind.__name__}"


def _object(value: Any, kind: Any, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: no object"
        return
    hints = _hints(kind)
    for field in attr.fields(kind):
        if field.name in value:
            yield from _typed(value[field.name], hints[field.name], f"{at}/{field.name}")
        elif field.default is attr.NOTHING or field.name in ALWAYS:
            yield f"{at}: {field.name} is missing"
    for name in value.keys() - {field.name for field in attr.fields(kind)}:
        yield f"{at}: {kind.__name__} has no {name}"


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _facet(value: Any, place: type, at: str) -> Iterator[str]:
    name = at.rpartition("/")[2]
    if not isinstance(value, dict):
        yield f"{at}: no object"
        return
    url = value.get("_schemaURL", "")
    if name.startswith("headwater_"):
        yield from _own(name, value, url, at)
        return
    known = _classes().get(url)
    if known is None:
        yield f"{at}: no class has the schema {url}"
    elif not issubclass(known, place):
        yield f"{at}: a {known.__name__} is no {place.__name__}"
    elif name.replace("_", "").lower() not in known.__name__.lower():
        yield f"{at}: a {known.__name__}"
    else:
        yield from _typed(value, known, at)


def _own(name: str, value: dict[str, Any], url: str, at: str) -> Iterator[str]:
    file = SCHEMAS / f"{name}.json"
    if not file.is_file():
        yield f"{at}: no schema in docs/facets"
        return
    if not value.get("_producer") or url != _schema(name)["$id"]:
        yield f"{at}: _producer {value.get('_producer')!r}, _schemaURL {url!r}"
    for part in _parts(name):
        for error in Draft202012Validator(part).iter_errors(value):
            yield f"{at}/{'/'.join(map(str, error.path))}: {error.message[:200]}"
    said = {field for part in _parts(name) for field in part.get("properties", {})}
    for field in value.keys() - said - {"_producer", "_schemaURL", "_deleted"}:
        yield f"{at}: the schema has no {field}"


@cache
def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return found


@cache
def _parts(name: str) -> list[dict[str, Any]]:
    """What the schema of a facet of ours says of it, without what every facet of OpenLineage has."""
    schema = _schema(name)
    reference = schema.get("properties", {}).get(name, {}).get("$ref", "")
    if reference.startswith("#/$defs/"):
        schema = schema["$defs"][reference.rpartition("/")[2]]
    rest = {key: value for key, value in schema.items() if key != "allOf"}
    return [rest, *(part for part in schema.get("allOf", ()) if "$ref" not in part)]


@cache
def _classes() -> dict[str, type]:
    """The client's classes of facets by the address of their schema."""
    modules = [
        import_module(f"{generated.__name__}.{path.stem}")
        for path in Path(generated.__path__[0]).glob("*.py")
    ]
    return {
        found._get_schema(): found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, base.BaseFacet)
    }
