"""One store: how its addresses become a namespace and its datasets a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from headwater.lineage.secrets import strip_query

from . import address
from .address import NamingError

_FIELD = re.compile(r"\{(\w+)\}")
_SUFFIX = re.compile(r"\{(\w+)\}(\.[a-z.]+)")
_PATH_FIELDS = frozenset({"path", "key"})
_HOST_FIELDS = frozenset({"host", "namenode"})


class DatasetName(NamedTuple):
    """What identifies a dataset everywhere: its namespace and its name in it."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Store:
    """A kind of store with its two templates; calling it with the parts gives a dataset name.

    `port` is the store's default: written out where the namespace has a `{port}`, left out where
    it has none. `schemes` are other spellings of the same scheme.
    """

    key: str
    title: str
    namespace: str
    name: str
    port: int | None = None
    schemes: tuple[str, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    ours: bool = False
    why: str = ""

    @property
    def scheme(self) -> str:
        """The scheme of the namespace, or the whole of it where it is a plain word."""
        return self.namespace.split(":", 1)[0]

    @property
    def name_fields(self) -> tuple[str, ...]:
        """The parts a dataset name is made of, outermost first."""
        return tuple(_FIELD.findall(self.name))

    @property
    def fields(self) -> tuple[str, ...]:
        """Every part the store can be called with."""
        return tuple(dict.fromkeys(_FIELD.findall(self.namespace + self.name)))

    def __call__(self, **parts: str | int | None) -> DatasetName:
        """Make the name from its parts; a missing part is an error that names it."""
        given = {key: str(value) for key, value in parts.items() if value not in (None, "")}
        if unknown := sorted(given.keys() - set(self.fields)):
            raise NamingError(
                f"{self.title} has no part {unknown[0]!r}; it has {', '.join(self.fields)}"
            )
        values = {**dict(self.defaults), **given}
        self._place(values)
        for field in self.fields:
            if field not in values:
                raise NamingError(f"{self.title}: {field} is needed to name a dataset")
        return DatasetName(_fill(self.namespace, values), _fill(self.name, values))

    def at(self, **parts: str | int | None) -> str:
        """The namespace alone, for callers that add the name themselves."""
        unnamed = dict.fromkeys(set(self.name_fields) - parts.keys(), "-")
        return self(**{**parts, **unnamed}).namespace

    def _place(self, values: dict[str, str]) -> None:
        written = "port" in self.fields
        given_port = values.get("port")
        for field in _HOST_FIELDS & values.keys():
            place = address.first(values[field])
            values[field] = place.host
            if place.port and written:
                values.setdefault("port", str(place.port))
            elif place.port and place.port != self.port:
                values[field] = str(place)
        if self.port and written:
            values.setdefault("port", str(self.port))
        if self.key == "snowflake" and "account" in values:
            values["account"] = address.snowflake(values["account"])
        if self.key == "redshift" and "amazonaws" in values.get("cluster", ""):
            cluster = address.redshift(address.first(values["cluster"]))
            values["cluster"], _, values["region"] = cluster.host.partition(".")
            values["port"] = given_port or str(cluster.port)
        for field in _PATH_FIELDS & values.keys():
            values[field] = strip_query(values[field])
        if self.key == "duckdb" and "path" in values:
            values.setdefault("database", address.duckdb(values["path"]))
        if self.key == "http":
            values["path"] = re.split("[?#]", values.get("path", "/"), maxsplit=1)[0] or "/"
        for field, suffix in _SUFFIX.findall(self.namespace):
            if field in values:
                values[field] = values[field].removesuffix(suffix)


def _fill(template: str, values: dict[str, str]) -> str:
    return _FIELD.sub(lambda match: values[match[1]], template)
