"""A schema registry with Confluent's API: the newest schema of a subject, remembered and re-read."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from headwater.connect.services.endpoint import (
    ConnectError,
    Endpoint,
    ProblemKind,
    kind_of,
)
from headwater.connect.services.http_client import AnswerTooLargeError, ask, client
from headwater.lineage.naming import redact
from headwater.lineage.schema import (
    Schema,
    SchemaError,
    read_avro,
    read_json_schema,
    read_protobuf,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_T = TypeVar("_T")

FRESH = 20.0
# Subjects are listed again in every poll, so that a new one is reported within it; listing them may
# take one part in so many of the time.
LISTED = 1.0
LISTING_SHARE = 20
LONGEST_WAIT = 60.0
MAX_REFERENCES = 100
# A registry of a hundred thousand subjects lists them in less.
MAX_BYTES = 16_000_000


class RegistryError(ConnectError):
    """The registry does not answer now; its last answers still hold."""


class RegisteredSchema(msgspec.Struct, frozen=True):
    """The newest version of a subject; a schema that cannot be read is None."""

    subject: str
    version: int
    id: int
    schema: Schema | None
    problem: str = ""


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _SchemaAnswer(msgspec.Struct, rename="camel"):
    schema: str
    version: int = 0
    id: int = 0
    subject: str = ""
    schema_type: str | None = None
    references: list[_Reference] | None = None


_answer = msgspec.json.Decoder(_SchemaAnswer)
_names = msgspec.json.Decoder(list[str])


class _CachedSchema:
    __slots__ = ("at", "found")

    def __init__(self, found: RegisteredSchema | None, at: float) -> None:
        self.found = found
        self.at = at


class SchemaRegistry:
    """One registry. Safe to ask from several threads."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.url = endpoint.urls[0].rstrip("/")
        self.shown = redact(self.url)
        self.problem = ""
        self._clock = clock
        self._lock = threading.RLock()
        self._known: dict[str, _CachedSchema] = {}
        self._pinned: dict[tuple[str, int], _SchemaAnswer] = {}
        self._subjects: frozenset[str] = frozenset()
        self._list_at = float("-inf")
        self._wait, self._until = 1.0, float("-inf")
        accept = "application/vnd.schemaregistry.v1+json, application/json"
        self._http = client(endpoint, accept, connect_seconds=3.0, transport=transport)

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def subjects(self) -> Collection[str]:
        """Every subject, as of this poll."""
        with self._lock:
            began = self._clock()
            if began >= self._list_at:
                answer = self._get("/subjects")
                self._subjects = frozenset(self._decode(answer, _names) if answer else ())
                ended = self._clock()
                self._list_at = ended + max(LISTED, LISTING_SHARE * (ended - began))
            return self._subjects

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest version of a subject, at most some seconds old; None when there is none.

        A subject that does not exist is asked for in each poll.

        Raises RegistryError when the registry cannot be asked and never answered before.
        """
        with self._lock:
            known = self._known.get(subject)
            if known and known.found and self._clock() - known.at < FRESH:
                return known.found
            try:
                found = self._latest(subject, known.found if known else None)
            except RegistryError:
                if known:
                    return known.found
                raise
            self._known[subject] = _CachedSchema(found, self._clock())
            return found

    def _latest(self, subject: str, before: RegisteredSchema | None) -> RegisteredSchema | None:
        if subject not in self.subjects():
            return None
        answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        if answer is None:
            return None
        found = self._decode(answer, _answer)
        if before and (before.version, before.id) == (found.version, found.id):
            return before
        return self._read(subject, found)

    def _read(self, subject: str, answer: _SchemaAnswer) -> RegisteredSchema:
        schema, problem = None, ""
        try:
            references = self._references(answer)
            if answer.schema_type == "PROTOBUF":
                schema = read_protobuf(answer.schema, references)
            elif answer.schema_type == "JSON":
                schema = read_json_schema(answer.schema, references)
            else:
                schema = read_avro(answer.schema, references)
        except SchemaError as error:
            problem = str(error)
        return RegisteredSchema(subject, answer.version, answer.id, schema, problem)

    def _references(self, answer: _SchemaAnswer) -> dict[str, str]:
        """The schemas it builds on, each after those that it builds on itself."""
        found: dict[str, str] = {}
        asked: set[str] = set()

        def collect(of: _SchemaAnswer) -> None:
            for reference in of.references or ():
                if reference.name in asked or len(asked) >= MAX_REFERENCES:
                    continue
                asked.add(reference.name)
                inner = self._version(reference.subject, reference.version)
                if inner is not None:
                    collect(inner)
                    found[reference.name] = inner.schema

        collect(answer)
        return found

    def _version(self, subject: str, version: int) -> _SchemaAnswer | None:
        pinned = self._pinned.get((subject, version))
        if pinned is None:
            answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            if answer is None:
                return None
            pinned = self._pinned[subject, version] = self._decode(answer, _answer)
        return pinned

    def _get(self, path: str) -> bytes | None:
        if self._clock() < self._until:
            raise RegistryError(ProblemKind.UNREACHABLE, self.problem)
        try:
            answer = ask(self._http, "GET", self.url + path, max_bytes=MAX_BYTES)
        except AnswerTooLargeError as error:
            raise self._failed(ProblemKind.GARBAGE, f"gave {error}") from None
        except httpx.HTTPError as error:
            raise self._failed(kind_of(error), f"cannot be reached: {error}") from None
        if answer.status_code == 404:
            self._fine()
            return None
        if answer.status_code in (401, 403):
            raise self._failed(ProblemKind.AUTH, f"answered {answer.status_code}")
        if not answer.is_success:
            raise self._failed(ProblemKind.SERVER, f"answered {answer.status_code}")
        self._fine()
        return answer.content

    def _decode(self, body: bytes, decoder: msgspec.json.Decoder[_T]) -> _T:
        try:
            return decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._failed(ProblemKind.GARBAGE, "answered something unexpected") from None

    def _failed(self, trouble: ProblemKind, text: str) -> RegistryError:
        self._until = self._clock() + self._wait
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        error = RegistryError(trouble, f"schema registry {self.shown} {text}")
        self.problem = error.message
        return error

    def _fine(self) -> None:
        self._wait, self._until, self.problem = 1.0, float("-inf"), ""
