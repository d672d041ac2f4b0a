"""What a tool is: a name, a route of the server, its parameters, and how the answer is shortened."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from headwater.errors import NotFoundError, UsageError
from headwater.lineage.url_paths import path_part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.cli.server.client import ServerClient

__all__ = ["Tool", "ToolParameter"]

LONGEST = 4_000
"""Characters of a text that an assistant may send."""
CANDIDATES = 20


@dataclass(frozen=True)
class ToolParameter:
    """A parameter of a tool, by its JSON schema.

    One that names a dataset or a job is looked up first; what is found fills the route.
    """

    name: str
    about: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False
    names: Literal["dataset", "job", ""] = ""
    sent: str = ""
    """What the route calls it, if not the same."""
    read: Callable[[str], str | None] | None = None
    """Turns what an assistant writes into what the route takes."""

    @property
    def declared(self) -> dict[str, Any]:
        """Its JSON schema, with a bound on texts."""
        bound = {"maxLength": LONGEST} if self.schema.get("type") == "string" else {}
        return {**self.schema, **bound, "description": self.about}


@dataclass(frozen=True)
class Tool:
    """A question that an assistant may ask.

    `route` and `page` are templates: `{namespace}`, `{name}` and `{field}` are those of what was
    looked up, `{node}` and `{dataset}` its ids with and without the column, any other is a parameter.
    Members of the query whose value is empty are left out. A POST sends them as its body.
    """

    name: str
    about: str
    route: str
    parameters: tuple[ToolParameter, ...]
    shorten: Callable[[dict[str, Any]], dict[str, Any]]
    page: str = "/datasets/{namespace}/{name}"
    sought: str = ""
    """The parameter with the search text: where nothing matches, the nearest names are listed."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its parameters."""
        return {
            "type": "object",
            "properties": {one.name: one.declared for one in self.parameters},
            "required": [one.name for one in self.parameters if one.required],
            "additionalProperties": False,
        }

    def ask(self, server: ServerClient, given: Mapping[str, Any]) -> dict[str, Any]:
        """The shortened answer to a question, with the address of the page that shows it."""
        known: dict[str, Any] = {}
        sent: dict[str, Any] = {}
        for one in self.parameters:
            value = given.get(one.name)
            if value is not None and one.read is not None:
                value = one.read(str(value))
            if value is None:
                continue
            if one.names:
                find = _find_dataset if one.names == "dataset" else _find_job
                known |= find(server, str(value))
            else:
                known[one.name] = value
                sent[one.sent or one.name] = value
        method, _, address = self.route.partition(" ")
        path, _, query = address.partition("?")
        at = _filled(path, known, path_part)
        inside = {name for _, name, _, _ in Formatter().parse(path) if name}
        asked = {name: value for name, value in sent.items() if name not in inside}
        members = {**_members(query, known, str), **asked}
        found = server.post(at, members) if method == "POST" else server.get(at, **members)
        short = self.shorten(found)
        if self.sought and not any(short.values()):
            server.find(str(given[self.sought]))  # raises, with the nearest names
        return {**short, "page": server.url + self._address(known)}

    def _address(self, known: Mapping[str, Any]) -> str:
        path, _, query = self.page.partition("?")
        members = _members(query, known, _encoded)
        asked = "&".join(f"{name}={value}" for name, value in members.items())
        return _filled(path, known, path_part) + (f"?{asked}" if asked else "")


def _encoded(value: str) -> str:
    return quote(value, safe="")


def _filled(template: str, known: Mapping[str, Any], written: Callable[[str], str]) -> str:
    """A template with what is known, as it is written there; what is not is empty."""
    values = {name: written(str(value)) for name, value in known.items()}
    return template.format_map(defaultdict(str, values))


def _members(query: str, known: Mapping[str, Any], written: Callable[[str], str]) -> dict[str, str]:
    pairs = [part.partition("=") for part in query.split("&") if part]
    found = {name: _filled(value, known, written) for name, _, value in pairs}
    return {name: value for name, value in found.items() if value}


def _find_dataset(server: ServerClient, typed: str) -> dict[str, str]:
    found = server.find(typed)
    dataset = f"dataset:{found.namespace}:{found.name}"
    return {**found._asdict(), "dataset": dataset}


def _find_job(server: ServerClient, typed: str) -> dict[str, str]:
    """The one job of a name, with or without its namespace."""
    wanted = typed.removeprefix("job:").strip()
    # A search knows names alone, and either part may hold colons.
    near: list[dict[str, Any]] = []
    for text in dict.fromkeys((wanted, wanted.rpartition(":")[2])):
        if text:
            near += server.get("/api/v2/search", q=text, kind="job", limit=100)["results"]
    names = {f"{one['namespace']}:{one['name']}": one for one in near}
    fits = [name for name, one in names.items() if wanted in (name, one["name"])]
    if len(fits) > 1 and wanted not in names:
        raise UsageError(f"{typed!r} can be any of {len(fits)} jobs", names=fits[:CANDIDATES])
    if not fits:
        raise NotFoundError(f"no job is called {typed!r}", names=list(names)[:5])
    one = names.get(wanted) or names[fits[0]]
    return {
        "namespace": one["namespace"],
        "name": one["name"],
        "node": f"job:{one['namespace']}:{one['name']}",
    }
