"""Asking a lineage server something, or to do something: where it is, who asks, and what goes wrong."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003  (typer reads the annotation)
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import typer

import headwater
from headwater.cli.options import given
from headwater.cli.output import AsJson, escape, out
from headwater.errors import HeadwaterError, NotFoundError, UsageError
from headwater.lineage.url_paths import path_of

if TYPE_CHECKING:
    import httpx

__all__ = [
    "ResolvedName",
    "ServerClient",
    "ServerOptions",
    "ServerPlace",
    "name_in",
    "read_token",
]

SERVER = "http://127.0.0.1:5000"
SECONDS = 600
NODE = re.compile(
    r"(?:dataset|job):(?:arn:[^:]*:[^:]*:[^:]*:[^:/]*|[\w+.-]+://(?:\[[^\]]*\])?[^:]*(?::\d+(?:,[^:]*:\d+)*)?"
    r"|[^:]*):(.+)",
    re.DOTALL,
)
NO_ROUTE = "HTTP 404 Not Found"


@dataclass(frozen=True)
class ServerPlace:
    """Which server is asked, and by whom."""

    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            help="Where the server answers.",
            envvar="OPENLINEAGE_URL",
            show_default=SERVER,
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="A file with the token; else in $HEADWATER_TOKEN."),
    ] = None

    def server(self, *, seconds: float = SECONDS) -> ServerClient:
        """The server that is asked, and how long an answer may take."""
        url = (
            SERVER if self.url is None else given(self.url, "--url", f"{SERVER} without it").strip()
        )
        if self.token_file is not None:
            token: str | None = read_token(self.token_file)
        else:
            token = (os.environ.get("HEADWATER_TOKEN") or "").strip() or None
        return ServerClient(url, token, seconds)


@dataclass(frozen=True)
class ServerOptions(ServerPlace):
    """Which server is asked and by whom, and how the answer is printed."""

    as_json: AsJson = False


def read_token(file: Path) -> str:
    """The first token of a file."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the token file: {error}") from error
    tokens = [text for line in lines if (text := line.strip()) and not text.startswith("#")]
    if not tokens:
        raise UsageError(f"the token file {file} holds no token")
    if not (tokens[0].isascii() and tokens[0].isprintable()):
        # No header can carry it, and the client's error would quote it.
        raise UsageError(f"the token in {file} holds characters that no token has")
    return tokens[0]


class ResolvedName(NamedTuple):
    """A dataset, or one of its columns, as the server calls it."""

    namespace: str
    name: str
    field: str
    node: str
    store: str = ""
    others: tuple[str, ...] = ()
    """What else the text may have been meant to name."""

    @property
    def place(self) -> str:
        """Where it is: its namespace and the kind of store that holds it."""
        known = self.store and self.store != self.namespace
        return f"{self.namespace}, {self.store}" if known else self.namespace

    def print_others(self) -> None:
        """Print what else the text may have been meant to name."""
        if self.others:
            out.print(f"[yellow]also:[/] {escape(', '.join(self.others))}", soft_wrap=True)


def name_in(node: str) -> str:
    """The name in the id of a dataset or a job, without its namespace.

    Both may hold colons. A namespace has one behind its scheme and one before its port, so what
    follows those is the name. In doubt too much is shown rather than a part of a name.
    """
    found = NODE.match(node)
    return found[1] if found else node


class ServerClient:
    """A lineage server by its URL."""

    def __init__(self, url: str, token: str | None = None, seconds: float = SECONDS) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._seconds = seconds

    @property
    def has_token(self) -> bool:
        """Whether it is asked with a token."""
        return self._token is not None

    @property
    def url(self) -> str:
        """Where it answers, without the password that its URL may hold."""
        parts = urlsplit(self._url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """What the server answers; parameters that are None are left out."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self._ask("GET", path, query=given)

    def get_text(self, path: str, **query: object) -> str:
        """The same where the server answers with a document."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        response = self._send("GET", path, query=given)
        if response.is_error:
            self._answer(response)
        return response.text

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Have the server do something."""
        return self._ask("POST", path, body=body)

    def find(self, typed: str, *, at: str | None = None, since: str | None = None) -> ResolvedName:
        """The one dataset or column that a text names; raises with the candidates where it is not one.

        With `at` also a column that was there then; with `since`, at some time from then until `at`.
        """
        if not typed.strip():
            raise UsageError(
                "the name of the dataset is empty",
                hint="NAMESPACE:NAME, or NAME alone where it is the only one",
            )
        answer = self.get("/api/v2/names", q=typed, at=at, since=since)
        found = [
            ResolvedName(
                one["namespace"],
                one["name"],
                one.get("field", ""),
                one["node"],
                one.get("store", ""),
                tuple(_listed(answer.get("others", []))),
            )
            for one in answer["matches"]
        ]
        if len(found) > 1:
            raise UsageError(
                f"{typed!r} can be any of {len(found)}{' or more' if answer['truncated'] else ''}",
                hint=f"say which: {', '.join(_listed(answer['matches']))}",
                names=_listed(answer["matches"]),
            )
        return found[0]

    def find_dataset(
        self, typed: str, hint: str = "its dataset: {namespace}:{name}"
    ) -> ResolvedName:
        """The one dataset that a text names; refuses a column, for which its dataset would answer."""
        found = self.find(typed)
        if found.field:
            raise UsageError(
                f"{found.name}.{found.field} is a column", hint=hint.format(**found._asdict())
            )
        return found

    def page(self, *parts: str) -> str:
        """An address of the server's page."""
        return f"{self.url}{path_of(*parts)}"

    def print_page(self, *parts: str) -> None:
        """Print an address of the page; a person may follow it, a pipe need not carry it."""
        if out.is_terminal:
            address = self.page(*parts)
            out.print(f"[dim]the page:[/] [link={address}]{address}[/link]", soft_wrap=True)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        return self._answer(self._send(method, path, query=query, body=body))

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: dict[str, Any] | None = None,
    ) -> httpx.Response:
        import httpx

        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            return httpx.request(
                method,
                self._url + path,
                params=query,
                json=body,
                headers=headers,
                timeout=self._seconds,
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HeadwaterError(
                f"{self.url} does not answer: {error}",
                hint="say where the server is: --url or OPENLINEAGE_URL; start one: headwater server",
            ) from error

    def _answer(self, response: httpx.Response) -> dict[str, Any]:
        try:
            answer = response.json()
        except ValueError:
            answer = None
        message = answer.get("message") if isinstance(answer, dict) else None
        if not isinstance(answer, dict) or (response.is_error and not isinstance(message, str)):
            raise HeadwaterError(
                f"{self.url} does not answer as Headwater does: HTTP {response.status_code}",
                hint="say where the server is: --url or OPENLINEAGE_URL",
            )
        if not response.is_error:
            return answer
        raise self._refusal(response.status_code, str(message), answer.get("nearest"))

    def _refusal(self, code: int, message: str, nearest: Any) -> HeadwaterError:
        if code in (401, 403):
            hint = "a token that may do this: --token-file FILE or HEADWATER_TOKEN"
            return HeadwaterError(f"{self.url} refused: {message}", hint=hint)
        if code == 404 and message == NO_ROUTE:
            return HeadwaterError(
                f"{self.url} does not know this question: it is older than this command"
                f" (headwater {headwater.__version__})",
                hint="update the server",
            )
        if code == 404:
            near = _listed(nearest) if isinstance(nearest, list) else []
            nearby = f"near it: {', '.join(near)}" if near else None
            return NotFoundError(message, hint=nearby, names=near)
        return UsageError(message) if code in (400, 422) else HeadwaterError(message)


def _listed(names: list[dict[str, Any]]) -> list[str]:
    # A tag is in no namespace.
    texts = [
        (f"{one['namespace']}:" if one["namespace"] else "")
        + one["name"]
        + (f".{one['field']}" if one.get("field") else "")
        for one in names
    ]
    # Columns of several datasets can have one text: their ids differ.
    return [
        one["node"] if texts.count(text) > 1 and "node" in one else text
        for one, text in zip(names, texts, strict=True)
    ]
