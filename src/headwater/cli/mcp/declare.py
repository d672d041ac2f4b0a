"""What a tool is: a name, a route of the server, its parameters, and how the answer is shortened."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from headwater.cli.questions.times import BEGINNING
from headwater.errors import NotFoundError, UsageError
from headwater.lineage.url_paths import path_of, path_part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.cli.server.client import ResolvedName, ServerClient

__all__ = ["Tool", "ToolParameter"]

LONGEST = 4_000
"""Characters of a text that an assistant may send."""
CANDIDATES = 20
MOMENTS = ("at", "from", "to")
"""Parameters that say when a column is to have been there."""
NOW: Mapping[str, str] = {}


@dataclass(frozen=True)
class ToolParameter:
    """A parameter of a tool, by its JSON schema.

    One that names a dataset or a job is looked up first; what is found fills the route.
    """

    name: str
    about: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False
    names: Literal["dataset", "column", "job", ""] = ""
    """What is looked up; for `column` a dataset or a column, and `dataset` refuses columns."""
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
    page: str | Callable[[Mapping[str, Any], dict[str, Any]], str] = "/datasets/{namespace}/{name}"
    """Or a function of what is known and of the answer."""
    check: Callable[[Mapping[str, Any]], None] | None = None
    """Refuses parameters that exclude each other."""
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
        for name, value in given.items():
            if isinstance(value, str) and not value.strip():
                raise UsageError(f"{name} is empty")
        if self.check is not None:
            self.check(given)
        known: dict[str, Any] = {}
        sent: dict[str, Any] = {}
        values = [
            (one, value) for one in self.parameters if (value := _read(one, given)) is not None
        ]
        moments = {one.name: str(value) for one, value in values if one.name in MOMENTS}
        if any(one.name == "from" for one in self.parameters):
            moments.setdefault("from", BEGINNING)
        for one, value in values:
            if one.names == "column":
                known |= _find_column(server, str(value), moments)
            elif one.names:
                known |= FIND[one.names](server, str(value))
            else:
                known[one.name] = value
                sent[one.sent or one.name] = value
        method, _, address = self.route.partition(" ")
        path, _, query = address.partition("?")
        at = _filled(path, known, path_part)
        inside = {name for _, name, _, _ in Formatter().parse(path) if name}
        # A query knows true and false as JSON writes them.
        asked = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in sent.items()
            if name not in inside
        }
        members = {**_members(query, known, str), **asked}
        found = server.post(at, members) if method == "POST" else server.get(at, **members)
        short = self.shorten(found)
        if self.sought and not short["matches"]:
            _refuse_unknown(server, str(given[self.sought]), str(given.get("kind", "")))
        return {**short, "page": server.url + self._address(known, found)}

    def _address(self, known: Mapping[str, Any], found: dict[str, Any]) -> str:
        if not isinstance(self.page, str):
            return self.page(known, found)
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


def _read(one: ToolParameter, given: Mapping[str, Any]) -> Any:
    value = given.get(one.name)
    return value if value is None or one.read is None else one.read(str(value))


def _find_dataset(server: ServerClient, typed: str) -> dict[str, Any]:
    return _as_known(server.find_dataset(typed))


def _find_column(
    server: ServerClient, typed: str, moments: Mapping[str, str] = NOW
) -> dict[str, Any]:
    at = moments.get("at", moments.get("to"))
    return _as_known(server.find(typed, at=at, since=moments.get("from")))


def _as_known(found: ResolvedName) -> dict[str, Any]:
    dataset = f"dataset:{found.namespace}:{found.name}"
    return {**found._asdict(), "dataset": dataset}


def _find_job(server: ServerClient, typed: str) -> dict[str, Any]:
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
    one = names.get(wanted) or (names[fits[0]] if fits else _job_node(server, wanted))
    return {
        "namespace": one["namespace"],
        "name": one["name"],
        "node": f"job:{one['namespace']}:{one['name']}",
    }


def _job_node(server: ServerClient, wanted: str) -> dict[str, Any]:
    """The job of an id, which many jobs of like names kept from being found; raises with the nearest."""
    try:
        found = server.get("/api/v2/trace", node=f"job:{wanted}", depth=1)
    except NotFoundError as error:
        raise NotFoundError(f"no job is called {wanted!r}", names=error.names) from None
    first = found["rows"][0]["node"]
    return next(node for node in found["nodes"] if node["id"] == first)


def _refuse_unknown(server: ServerClient, text: str, kind: str) -> None:
    """Refuse a text that nothing of a kind has in its name, with the names most like it."""
    near: list[str] = []
    asked: dict[str, Callable[[ServerClient, str], Mapping[str, Any]]] = {
        "dataset": _find_column,
        "job": _job_node,
        "tag": lambda server, tag: server.get(path_of("api", "v2", "tags", tag)),
    }
    for one in ("dataset" if kind == "column" else kind,) if kind else ("dataset", "job"):
        try:
            found = asked[one](server, text)
            near += [f"{found['namespace']}:{found['name']}"] if "name" in found else []
        except (NotFoundError, UsageError) as error:
            near += error.names
    raise NotFoundError(f"no {kind or 'name'} holds {text!r}", names=near[:CANDIDATES])


FIND = {"dataset": _find_dataset, "job": _find_job}
