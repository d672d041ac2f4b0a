"""Fields and schemas: the one shape that every format is read into."""

from __future__ import annotations

import hashlib
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
R = TypeVar("R")

MAX_DEPTH = 32
MAX_FIELDS = 20_000
ELEMENT = "_element"


class SchemaError(ValueError):
    """A schema that cannot be read; the message names the field where reading stopped."""


class Field(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field, with the fields inside it.

    A record is a `struct`. An array of records has the one child `_element`, a map of records the
    children `key` and `value`. `nullable` is None where the format does not say.
    """

    name: str
    type: str = ""
    description: str = ""
    fields: tuple[Field, ...] = ()
    nullable: bool | None = None
    default: bool = False
    aliases: tuple[str, ...] = ()


class Schema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a record; a schema that is no record has a `type` other than `struct`."""

    fields: tuple[Field, ...] = ()
    type: str = "struct"
    description: str = ""

    @property
    def is_record(self) -> bool:
        """Whether the schema has fields of its own rather than being one value."""
        return self.type == "struct"

    @property
    def version(self) -> str:
        """A hash of names, types and nullability: the order of fields and their texts are free."""
        text = f"{self.type}{_canonical(self.fields)}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def columns(self, *, containers: bool = False) -> tuple[Field, ...]:
        """The leaves as fields with dotted names, with the records around them when asked."""
        return tuple(_flat(self.fields, "", containers))

    def field(self, path: str) -> Field | None:
        """The column with that dotted name, container or leaf."""
        return next((f for f in self.columns(containers=True) if f.name == path), None)


def bounded(read: Callable[P, R]) -> Callable[P, R]:
    """Turn a recursion that Python ends into an error of ours."""

    @wraps(read)
    def reader(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return read(*args, **kwargs)
        except RecursionError:
            raise SchemaError("schema: types are nested too deeply to be read") from None

    return reader


class Budget:
    """Counts fields and depth, so that a hostile schema ends in an error and not in an outage."""

    def __init__(self, depth: int = MAX_DEPTH, count: int = MAX_FIELDS) -> None:
        self.depth = depth
        self.count = count

    def take(self, path: tuple[str, ...]) -> None:
        """Account for one field at that path."""
        self.count -= 1
        if self.count < 0:
            raise SchemaError(f"{shown(path)}: the schema has more than {MAX_FIELDS} fields")
        if len(path) > self.depth:
            raise SchemaError(f"{shown(path)}: fields are nested deeper than {self.depth} levels")


def shown(path: tuple[str, ...]) -> str:
    """A path for an error message, cut to a readable length."""
    text = ".".join(path) or "schema"
    return text if len(text) <= 200 else f"{text[:100]}...{text[-80:]}"


def unique(fields: list[Field]) -> tuple[Field, ...]:
    """Keep one field of each name: the first, or a later one that knows the type when it did not."""
    kept: dict[str, Field] = {}
    for field in fields:
        seen = kept.get(field.name)
        if seen is None or (not seen.type and field.type):
            kept[field.name] = field
    return tuple(kept.values())


def container(name: str, kind: str, children: tuple[Field, ...], **more: bool | None) -> Field:
    """An array or map field: children stay only where they have fields, else the type has it all."""
    if any(child.fields or child.type in ("struct", "union") for child in children):
        return Field(name, kind, fields=children, nullable=more.get("nullable"))
    inner = ",".join(child.type or "unknown" for child in children)
    return Field(name, f"{kind}<{inner}>", nullable=more.get("nullable"))


def _flat(fields: tuple[Field, ...], prefix: str, containers: bool) -> Iterator[Field]:
    for field in fields:
        path = f"{prefix}{field.name}"
        inner = field.fields
        while len(inner) == 1 and inner[0].name == ELEMENT:
            inner = inner[0].fields
        if containers or not inner:
            yield msgspec.structs.replace(field, name=path, fields=())
        yield from _flat(inner, f"{path}.", containers)


def _canonical(fields: tuple[Field, ...]) -> str:
    parts = (
        f"{len(f.name)}:{f.name}{len(f.type)}:{f.type}{f.nullable}{_canonical(f.fields)}"
        for f in sorted(fields, key=lambda f: f.name)
    )
    return f"({','.join(parts)})"


def decode_json(schema: object) -> Any:
    """JSON text or bytes as Python values; values that are decoded already pass through."""
    if not isinstance(schema, (str, bytes)):
        return schema
    try:
        return msgspec.json.decode(schema)
    except RecursionError:
        raise SchemaError("schema: the JSON is nested too deeply to be read") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise SchemaError(f"schema: not JSON that can be read: {error}") from None


def string(value: object) -> str:
    """The value when it is a string, else nothing."""
    return value if isinstance(value, str) else ""
