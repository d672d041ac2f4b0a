"""Connect's REST interface: one request for everything, and errors that say what kind they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from headwater.connect.access import LOOPBACK, Access, ConnectError, Trouble, kind_of, tls_context
from headwater.connect.answers import Entry, read_entry
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

CLOUD = "api.confluent.cloud"
_listing = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Connect:
    """A Connect cluster, spoken to through whichever of its workers answers."""

    def __init__(self, access: Access, *, transport: httpx.BaseTransport | None = None) -> None:
        self.access = access
        self.urls = [url.rstrip("/") for url in access.urls]
        self.cloud = any(urlsplit(url).hostname == CLOUD for url in self.urls)
        self._at = 0
        self._no_topics = self.cloud
        self._passwords: dict[str, frozenset[str]] = {}
        auth = httpx.BasicAuth(access.username, access.password) if access.username else None
        headers = {"Accept": "application/json"}
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        self._http = httpx.Client(
            auth=auth,
            headers=headers,
            timeout=httpx.Timeout(access.timeout, connect=min(5.0, access.timeout)),
            verify=tls_context(access),
            trust_env=not all(urlsplit(url).hostname in LOOPBACK for url in self.urls),
            transport=transport,
        )

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
            raise ConnectError(Trouble.GARBAGE, f"{self.shown}: this is not Kafka Connect")
        return {str(key): str(value) for key, value in found.items()}

    def unhealthy(self) -> str | None:
        """Why the worker cannot be believed, or None when it can be, or does not say."""
        if self.cloud:
            return None
        try:
            self._send("GET", "/health")
        except ConnectError as error:
            if error.trouble is Trouble.MISSING:
                return None
            if error.trouble in (Trouble.SERVER, Trouble.TIMEOUT, Trouble.STARTING):
                return error.message
            raise
        return None

    def poll(self) -> dict[str, msgspec.Raw]:
        """Every connector with its configuration and state, undecoded, by one request."""
        expand = "expand=info,status,id" if self.cloud else "expand=status&expand=info"
        body = self._send("GET", f"/connectors?{expand}", listing=True).content
        try:
            return _listing.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._one_by_one(body)

    def _one_by_one(self, body: bytes) -> dict[str, msgspec.Raw]:
        # Connect before 2.3 knows no `expand` and answers with a list of names.
        try:
            names = msgspec.json.decode(body, type=list[str])
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = redact(body[:80].decode(errors="replace"))
            raise ConnectError(
                Trouble.GARBAGE, f"{self.shown}: not a list of connectors: {said!r}"
            ) from None
        found = {}
        for name in names:
            at = f"/connectors/{quote(name, safe='')}"
            try:
                both = {"info": self._json("GET", at), "status": self._json("GET", f"{at}/status")}
            except ConnectError as error:
                if error.trouble is Trouble.MISSING:
                    continue
                raise
            found[name] = msgspec.Raw(msgspec.json.encode(both))
        return found

    def entry(self, name: str) -> Entry:
        """One connector, asked for alone."""
        at = f"/connectors/{quote(name, safe='')}"
        both = {"info": self._json("GET", at), "status": self._json("GET", f"{at}/status")}
        return read_entry(name, msgspec.json.encode(both))

    def exists(self, name: str) -> bool:
        """Whether Connect knows the connector, by its own word; raises when it does not say."""
        try:
            self._send("GET", f"/connectors/{quote(name, safe='')}")
        except ConnectError as error:
            if error.trouble is Trouble.MISSING and name in error.said:
                return False
            raise
        return True

    def topics(self, name: str) -> tuple[str, ...] | None:
        """The topics a connector has used since it was made; None where Connect cannot tell."""
        if self._no_topics:
            return None
        try:
            found = self._json("GET", f"/connectors/{quote(name, safe='')}/topics")
        except ConnectError as error:
            if error.trouble in (Trouble.MISSING, Trouble.REFUSED):
                self._no_topics = error.trouble is Trouble.MISSING and name not in error.said
                return None
            raise
        try:
            topics = msgspec.convert(found, dict[str, dict[str, list[str]]])
        except msgspec.ValidationError:
            raise ConnectError(Trouble.GARBAGE, f"{name}: topics not understood") from None
        return tuple(sorted(topics.get(name, {}).get("topics", ())))

    def plugins(self, *, connectors_only: bool = True) -> list[dict[str, str]]:
        """The plug-ins that the worker has."""
        only = str(connectors_only).lower()
        found: list[dict[str, str]] = self._json("GET", f"/connector-plugins?connectorsOnly={only}")
        return found

    def passwords(self, connector_class: str) -> frozenset[str]:
        """The keys that a plug-in declares to be passwords, as far as the worker tells."""
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
        """What the plug-in says of a configuration."""
        kind = quote(config.get("connector.class", ""), safe="")
        at = f"/connector-plugins/{kind}/config/validate"
        found: dict[str, Any] = self._json("PUT", at, dict(config))
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
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ConnectError(
                Trouble.GARBAGE, f"{self.shown}: {path} answered something that is not JSON"
            ) from None

    def _send(
        self, method: str, path: str, body: object = None, *, listing: bool = False
    ) -> httpx.Response:
        first: ConnectError | None = None
        for _ in self.urls:
            try:
                return self._once(method, path, body, listing)
            except ConnectError as error:
                if error.trouble not in (Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.TLS):
                    raise
                first = first or error
                self._at = (self._at + 1) % len(self.urls)
        assert first is not None
        raise first

    def _once(self, method: str, path: str, body: object, listing: bool) -> httpx.Response:
        try:
            answer = self._http.request(method, self.urls[self._at] + path, json=body)
        except httpx.TimeoutException:
            raise ConnectError(Trouble.TIMEOUT, f"{self.shown} does not answer in time") from None
        except httpx.TransportError as error:
            text = str(error)
            if kind_of(error) is Trouble.TLS:
                raise ConnectError(
                    Trouble.TLS, f"{self.shown}: {text}", hint="check ca, cert and key"
                ) from None
            raise ConnectError(
                Trouble.UNREACHABLE, f"{self.shown} cannot be reached: {text}"
            ) from None
        if answer.is_success:
            return answer
        raise _refusal(self.shown, path, answer, listing)


def _refusal(shown: str, path: str, answer: httpx.Response, listing: bool) -> ConnectError:
    code, said = answer.status_code, ""
    try:
        said = str(msgspec.json.decode(answer.content).get("message", ""))
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError):
        said = answer.reason_phrase
    text = f"{shown}: {path.partition('?')[0]} answered {code}: {said[:400]}"
    if code in (401, 403, 407):
        return ConnectError(Trouble.AUTH, text, hint="check the user, password or token")
    if code == 409:
        return ConnectError(Trouble.REBALANCE, text, hint="a rebalance passes: try again")
    if code in (404, 405, 501):
        return ConnectError(Trouble.STARTING if listing else Trouble.MISSING, text, said=said)
    if code == 503 and "start" in said.lower():
        return ConnectError(Trouble.STARTING, text)
    return ConnectError(Trouble.SERVER if code >= 500 else Trouble.REFUSED, text)
