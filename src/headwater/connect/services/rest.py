"""Connect's REST interface: one request a poll for all connectors, and errors by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from headwater.connect.model import ConnectorStatus, Task
from headwater.connect.services.endpoint import (
    NOT_CONNECT,
    ConnectError,
    Endpoint,
    ProblemKind,
    kind_of,
)
from headwater.connect.services.http_client import (
    Answer,
    AnswerTooLargeError,
    ask,
    client,
    has_control,
    one_line,
)
from headwater.lineage.conversion import converter
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

WHERE = "say where Connect is: --url or CONNECT_URL"
CLOUD = "api.confluent.cloud"
# Kafka's names have at most 249 characters; a connector with more topics is not one.
MAX_NAME = 1_000
MAX_TOPICS = 10_000
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_listing = msgspec.json.Decoder(dict[str, msgspec.Raw])
_names = msgspec.json.Decoder(list[str])
_topics = converter(dict[str, dict[str, list[str]]])


class Info(msgspec.Struct, frozen=True):
    """What is known of a connector beside its state."""

    name: str
    type: str
    config: dict[str, str]


class ConnectorEntry(msgspec.Struct, frozen=True):
    """One connector as a poll shows it."""

    info: Info
    status: ConnectorStatus


_TaskId = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class _Part(msgspec.Struct):
    id: _TaskId = 0
    state: str = ""
    worker_id: str | None = None
    version: str | None = None
    trace: str | None = None
    msg: str | None = None


class _Status(msgspec.Struct):
    connector: _Part
    tasks: list[_Part] = []
    name: str = ""
    type: str | None = None


class _Setting(msgspec.Struct):
    config: str
    value: str | None = None


class _Planned(msgspec.Struct):
    task: _TaskId


class _Info(msgspec.Struct):
    config: dict[str, str | None] | list[_Setting]
    name: str = ""
    type: str | None = None
    tasks: list[_Planned] | None = None


class _Entry(msgspec.Struct):
    status: _Status
    info: _Info


_entry = msgspec.json.Decoder(_Entry)


def read_entry(name: str, raw: bytes | msgspec.Raw) -> ConnectorEntry:
    """One connector out of a poll's answer; raises ConnectError when it is not one."""
    try:
        found = _entry.decode(raw)
    except _UNREADABLE as error:
        raise ConnectError(ProblemKind.GARBAGE, f"{one_line(name)}: {error}") from None
    settings = found.info.config
    if isinstance(settings, list):
        config = {item.config: item.value or "" for item in settings}
    else:
        config = {key: value or "" for key, value in settings.items()}
    kind = (found.info.type or found.status.type or "").lower()
    connector, tasks = found.status.connector, found.status.tasks
    return ConnectorEntry(
        Info(name, kind if kind in ("source", "sink") else "", config),
        ConnectorStatus(
            one_line(connector.state.upper()),
            one_line(connector.worker_id or ""),
            one_line(connector.version or ""),
            connector.trace or connector.msg or "",
            tuple(
                Task(
                    t.id,
                    one_line(t.state.upper()),
                    one_line(t.worker_id or ""),
                    one_line(t.version or ""),
                    t.trace or t.msg or "",
                )
                for t in sorted(tasks, key=lambda t: t.id)
            ),
            tuple(sorted(one.task for one in found.info.tasks or ())),
        ),
    )


class ConnectRest:
    """A Connect cluster, asked through whichever of its workers answers."""

    def __init__(self, endpoint: Endpoint, *, transport: httpx.BaseTransport | None = None) -> None:
        self.endpoint = endpoint
        self.urls = [url.rstrip("/") for url in endpoint.urls]
        self.cloud = any(urlsplit(url).hostname == CLOUD for url in self.urls)
        self._at = 0
        self._no_topics = self.cloud
        self._passwords: dict[str, frozenset[str]] = {}
        self._http = client(endpoint, transport=transport)

    @property
    def shown(self) -> str:
        """The address in use, fit for a log."""
        return redact(self.urls[self._at])

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def root(self) -> dict[str, str]:
        """Version, commit and Kafka cluster id; empty on a managed cluster, which has no such page."""
        if self.cloud:
            return {}
        found = self._json("GET", "/")
        if not isinstance(found, dict) or "version" not in found:
            raise self._garbage("its front page has no version of Kafka")
        return {str(key): one_line(str(value)) for key, value in found.items()}

    def unhealthy(self) -> str | None:
        """Why `/health` (Kafka 3.9 and later) fails; None when it does not, or is not there."""
        if self.cloud:
            return None
        try:
            self._send("GET", "/health")
        except ConnectError as error:
            if error.trouble is ProblemKind.MISSING:
                return None
            if error.trouble in (ProblemKind.SERVER, ProblemKind.TIMEOUT, ProblemKind.STARTING):
                return error.message
            raise
        return None

    def poll(self) -> dict[str, msgspec.Raw]:
        """Every connector with its configuration and state, undecoded, by one request."""
        expand = "expand=info,status,id" if self.cloud else "expand=status&expand=info"
        body = self._send("GET", f"/connectors?{expand}", listing=True).content
        try:
            found = _listing.decode(body)
        except _UNREADABLE:
            found = self._one_by_one(body)
        # Connect itself takes no other name.
        return {n: raw for n, raw in found.items() if not has_control(n) and len(n) <= MAX_NAME}

    def _one_by_one(self, body: bytes) -> dict[str, msgspec.Raw]:
        # Connect before 2.3 knows no `expand` and answers with a list of names.
        try:
            names = _names.decode(body)
        except _UNREADABLE:
            start = redact(body[:80].decode(errors="replace"))
            raise self._garbage(f"not a list of connectors: {start!r}") from None
        found = {}
        for name in names:
            at = f"/connectors/{quote(name, safe='')}"
            try:
                both = {"info": self._json("GET", at), "status": self._json("GET", f"{at}/status")}
            except ConnectError as error:
                if error.trouble is ProblemKind.MISSING:
                    continue
                raise
            found[name] = msgspec.Raw(msgspec.json.encode(both))
        return found

    def entry(self, name: str) -> ConnectorEntry:
        """One connector, asked for alone."""
        at = f"/connectors/{quote(name, safe='')}"
        both = {"info": self._json("GET", at), "status": self._json("GET", f"{at}/status")}
        return read_entry(name, msgspec.json.encode(both))

    def exists(self, name: str) -> bool:
        """Whether Connect has the connector; raises ConnectError when it does not answer."""
        try:
            self._json("GET", f"/connectors/{quote(name, safe='')}")
        except ConnectError as error:
            if error.trouble is ProblemKind.MISSING and name in error.answer:
                return False
            raise
        return True

    def topics(self, name: str) -> tuple[str, ...] | None:
        """The topics a connector has used since it was made; None where Connect has no such route."""
        if self._no_topics:
            return None
        try:
            found = self._json("GET", f"/connectors/{quote(name, safe='')}/topics")
        except ConnectError as error:
            if error.trouble in (ProblemKind.MISSING, ProblemKind.REFUSED):
                self._no_topics = error.trouble is ProblemKind.MISSING and name not in error.answer
                return None
            raise
        try:
            topics = _topics(found)
        except msgspec.ValidationError:
            raise ConnectError(ProblemKind.GARBAGE, f"{name}: topics not understood") from None
        listed = topics.get(name, {}).get("topics", ())
        if len(listed) > MAX_TOPICS:
            raise ConnectError(ProblemKind.GARBAGE, f"{name}: {len(listed)} topics are too many")
        return tuple(sorted(topic for topic in listed if not has_control(topic)))

    def plugins(self, *, connectors_only: bool = True) -> list[dict[str, str]]:
        """The plug-ins that the worker has."""
        only = str(connectors_only).lower()
        found = self._json("GET", f"/connector-plugins?connectorsOnly={only}")
        listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        return [one for one in listed if isinstance(one.get("class"), str)]

    def passwords(self, connector_class: str) -> frozenset[str]:
        """The keys that a plug-in declares to be passwords, as far as the worker lists them."""
        if connector_class not in self._passwords:
            found: Any = []
            try:
                at = f"/connector-plugins/{quote(connector_class, safe='')}/config"
                found = self._json("GET", at) if connector_class and not self.cloud else []
            except ConnectError:
                return frozenset()
            self._passwords[connector_class] = frozenset(
                str(key.get("name"))
                for key in (found if isinstance(found, list) else [])
                if isinstance(key, dict) and key.get("type") == "PASSWORD"
            )
        return self._passwords[connector_class]

    def validate(self, config: Mapping[str, str]) -> dict[str, Any]:
        """The plug-in's validation of a configuration."""
        kind = quote(config.get("connector.class", ""), safe="")
        at = f"/connector-plugins/{kind}/config/validate"
        found = self._json("PUT", at, dict(config))
        if not isinstance(found, dict):
            raise ConnectError(ProblemKind.GARBAGE, f"{self.shown}: a validation not understood")
        return found

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Make a connector, or give it another configuration."""
        self._send("PUT", f"/connectors/{quote(name, safe='')}/config", dict(config))

    def act(self, name: str, action: str) -> None:
        """Pause, resume, stop, restart or delete a connector."""
        at = f"/connectors/{quote(name, safe='')}"
        calls = {
            "pause": ("PUT", f"{at}/pause"),
            "resume": ("PUT", f"{at}/resume"),
            "stop": ("PUT", f"{at}/stop"),
            "restart": ("POST", f"{at}/restart?includeTasks=true"),
            "delete": ("DELETE", at),
        }
        self._send(*calls[action])

    def _json(self, method: str, path: str, body: object = None) -> Any:
        answer = self._send(method, path, body)
        try:
            return msgspec.json.decode(answer.content)
        except _UNREADABLE:
            raise self._garbage(
                f"{path.partition('?')[0]} answered something that is not JSON"
            ) from None

    def _garbage(self, what: str) -> ConnectError:
        return ConnectError(ProblemKind.GARBAGE, f"{self.shown}: {what}: {NOT_CONNECT}")

    def _send(
        self, method: str, path: str, body: object = None, *, listing: bool = False
    ) -> Answer:
        first: ConnectError | None = None
        for _ in self.urls:
            try:
                return self._once(method, path, body, listing)
            except ConnectError as error:
                if error.trouble not in (
                    ProblemKind.UNREACHABLE,
                    ProblemKind.TIMEOUT,
                    ProblemKind.TLS,
                ):
                    raise
                first = first or error
                self._at = (self._at + 1) % len(self.urls)
        assert first is not None
        raise first

    def _once(self, method: str, path: str, body: object, listing: bool) -> Answer:
        try:
            answer = ask(self._http, method, self.urls[self._at] + path, json=body)
        except AnswerTooLargeError as error:
            raise ConnectError(ProblemKind.GARBAGE, f"{self.shown}: {error}") from None
        except httpx.TimeoutException:
            raise ConnectError(
                ProblemKind.TIMEOUT, f"{self.shown} does not answer in time", hint=WHERE
            ) from None
        except httpx.TransportError as error:
            text = str(error)
            if kind_of(error) is ProblemKind.TLS:
                raise ConnectError(
                    ProblemKind.TLS, f"{self.shown}: {text}", hint="check ca, cert and key"
                ) from None
            raise ConnectError(
                ProblemKind.UNREACHABLE, f"{self.shown} cannot be reached: {text}", hint=WHERE
            ) from None
        if answer.is_success:
            return answer
        raise _refusal(self.shown, path, answer, listing)


def _refusal(shown: str, path: str, answer: Answer, listing: bool) -> ConnectError:
    code = answer.status_code
    try:
        message = str(msgspec.json.decode(answer.content).get("message", ""))
    except (*_UNREADABLE, AttributeError):
        message = answer.reason_phrase
    text = f"{shown}: {path.partition('?')[0]} answered {code}: {one_line(message, 400)}"
    if code in (401, 403, 407):
        return ConnectError(ProblemKind.AUTH, text, hint="check the user, password or token")
    if code == 409:
        return ConnectError(ProblemKind.REBALANCE, text, hint="a rebalance passes: try again")
    if code in (404, 405, 501):
        kind = ProblemKind.STARTING if listing else ProblemKind.MISSING
        return ConnectError(kind, text, hint=NOT_CONNECT, answer=message)
    if code == 503 and "start" in message.lower():
        return ConnectError(ProblemKind.STARTING, text)
    return ConnectError(ProblemKind.SERVER if code >= 500 else ProblemKind.REFUSED, text)
