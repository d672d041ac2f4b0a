"""Where events go: the destinations that openlineage-python's configuration names."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from headwater.emit.transports import FileTransport, RefusedError, carrier
from headwater.errors import UsageError
from headwater.lineage.naming import redact
from headwater.lineage.secrets import clean_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["Destination", "RefusedError", "destinations"]

_URL = re.compile(
    r"([a-z][a-z0-9+.\-]*://)([^\s\"'<>;/?]*)([^\s\"'<>;?]*)([^\s\"'<>;]*)", re.IGNORECASE
)


class Destination:
    """One place that events go to, with a name that is stable as long as its address is."""

    def __init__(
        self, name: str, shown: str, send: Callable[[bytes], None], transport: Any
    ) -> None:
        self.name = name
        self.shown = shown
        self.send = send
        self.transport = transport

    def flush(self) -> None:
        """Make sure that what was sent is there to stay."""
        if isinstance(self.send, FileTransport):
            self.send.flush()

    @property
    def is_http(self) -> bool:
        """Whether events go to a server by HTTP."""
        return getattr(self.transport, "kind", "") == "http"

    @property
    def server(self) -> tuple[str, Mapping[str, str]] | None:
        """The base URL and headers of an HTTP destination, for what is not lineage."""
        if not self.is_http:
            return None
        bearer = self.transport.config.auth.get_bearer()
        headers = {**self.transport.config.custom_headers}
        if bearer:
            headers["Authorization"] = bearer
        return self.transport.url, headers

    def close(self) -> None:
        """Let go of connections."""
        self.transport.close(1.0)


def destinations(config: Mapping[str, Any] | None = None) -> list[Destination]:
    """Every destination that openlineage-python's own configuration, or `config`, names.

    A composite transport is taken apart, so that one that is down does not cost the others.
    """
    from openlineage.client import OpenLineageClient

    wanted = {"transport": dict(config)} if config else None
    try:
        with _environment_kept():
            transport = OpenLineageClient(config=wanted).transport
    except Exception as error:
        raise UsageError(
            f"the OpenLineage transport is not configured correctly: {redact(str(error))}",
            hint="set OPENLINEAGE_URL, OPENLINEAGE_CONFIG or OPENLINEAGE__TRANSPORT__*",
        ) from error
    found = [_destination(leaf) for leaf in _leaves(transport)]
    for at, one in enumerate(found):
        if any(other.name == one.name for other in found[:at]):
            one.name = f"{one.name}#{at}"
    return found


@contextmanager
def _environment_kept() -> Iterator[None]:
    """The client notes what it read under other names in the environment, an API key too.

    The job's children would inherit that, and a second client would add it to its own.
    """
    before = set(os.environ)
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("OPENLINEAGE__")]:
            if name not in before:
                del os.environ[name]


def _leaves(transport: Any) -> list[Any]:
    if getattr(transport, "kind", "") != "composite":
        return [transport]
    if not transport.config.continue_on_success:
        return [transport]
    return [leaf for child in transport.transports for leaf in _leaves(child)]


def _destination(transport: Any) -> Destination:
    kind = getattr(transport, "kind", "") or type(transport).__name__
    if kind == "async_http":
        transport, kind = _plain_http(transport), "http"
    _keep_wrapped_to_their_addresses(transport)
    shown = _shown(kind, transport)
    digest = hashlib.sha256(_identity(kind, shown, transport).encode()).hexdigest()[:12]
    return Destination(f"{kind}:{digest}", shown, carrier(kind, transport), transport)


def _identity(kind: str, shown: str, transport: Any) -> str:
    """The text that two transports share exactly when they lead to the same place."""
    if kind == "file":
        path = str(transport.config.log_file_path)
        return f"file {path if '://' in path else Path(path).absolute()}"
    if kind == "http":
        return " ".join((shown, *_hidden_places(urljoin(transport.url, transport.endpoint))))
    if kind in ("kafka", "msk-iam", "console", "noop"):
        return shown
    # Where another kind leads is in its configuration; a secret may change and the place stay.
    config = getattr(transport, "config", None)
    fields = {str(key): str(value) for key, value in _fields(config).items()}
    if not fields:
        return shown
    places = [place for value in fields.values() for place in _hidden_places(value)]
    return " ".join((shown, json.dumps(clean_value(fields), sort_keys=True), *places))


def _hidden_places(text: str) -> list[str]:
    """The addresses in a text whose host or path is masked when shown, as the path of a webhook is.

    Two that are shown alike then lead to different places. A login and a token in a query do not tell
    them apart: they may change and the place stay.
    """
    found = []
    for scheme, authority, path, query in _URL.findall(text):
        host = authority.rpartition("@")[2]
        if redact(f"{scheme}{host}{path}") != f"{scheme}{host}{path}":
            found.append(f"{scheme}{host}{path}{redact(query)}")
    return found


def _fields(config: Any) -> Mapping[str, Any]:
    names: Iterable[str] = getattr(type(config), "__slots__", ()) or vars(config or object)
    return {name: getattr(config, name) for name in names if hasattr(config, name)}


def _shown(kind: str, transport: Any) -> str:
    if kind == "http":
        return redact(f"http {urljoin(transport.url, transport.endpoint)}")
    if kind in ("kafka", "msk-iam"):
        servers = transport.kafka_config.config.get("bootstrap.servers", "")
        return f"kafka {servers} {transport.topic}"
    if kind == "file":
        return f"file {transport.config.log_file_path}"
    return f"{kind} {transport.name or ''}".strip()


def _keep_wrapped_to_their_addresses(transport: Any) -> None:
    """Let the HTTP transports inside another one follow no redirect, and wait for each answer."""
    from openlineage.client.transport import Transport

    if getattr(transport, "kind", "") == "datadog":
        transport.async_http = transport.http  # it would make one for events that its rules name
    for name, value in list(vars(transport).items()):
        if isinstance(value, Transport):
            setattr(transport, name, _kept(value))
        elif isinstance(value, list):
            value[:] = [_kept(one) if isinstance(one, Transport) else one for one in value]


def _kept(transport: Any) -> Any:
    if getattr(transport, "kind", "") == "async_http":
        transport = _plain_http(transport)
    session = getattr(transport, "session", None)
    if session is not None:
        session.max_redirects = 0
    _keep_wrapped_to_their_addresses(transport)
    return transport


def _plain_http(transport: Any) -> Any:
    # The outbox waits for each answer itself; a transport that answers before would lose events.
    # Closed, since a thread of its own imports its client, and goes on for nothing.
    transport.close(0.0)
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    config = transport.config
    names = ("url", "endpoint", "timeout", "verify", "auth", "compression", "custom_headers")
    return HttpTransport(HttpConfig(**{n: getattr(config, n) for n in names if hasattr(config, n)}))
