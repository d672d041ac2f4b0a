"""Where a service answers and how to log in to it, and the kinds of errors of its requests."""

from __future__ import annotations

import ssl
from enum import Enum
from urllib.parse import urlsplit

import msgspec

from headwater.errors import HeadwaterError
from headwater.lineage.naming import redact

PORTS = {"http": 80, "https": 443}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class ProblemKind(str, Enum):
    """The kind of problem with a request."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS = "tls"
    AUTH = "auth"
    REBALANCE = "rebalance"
    STARTING = "starting"
    SERVER = "server"
    GARBAGE = "garbage"
    MISSING = "missing"
    REFUSED = "refused"
    UNHEALTHY = "unhealthy"


NOT_CONNECT = "is this the address of Kafka Connect's REST interface?"


class ConnectError(HeadwaterError):
    """A request failed; `answer` is the server's own message, if it sent one."""

    def __init__(
        self, trouble: ProblemKind, message: str, *, hint: str | None = None, answer: str = ""
    ) -> None:
        super().__init__(redact(message), hint=hint)
        self.trouble = trouble
        self.answer = answer


class Endpoint(msgspec.Struct, frozen=True):
    """Addresses of one service, with login and TLS settings."""

    urls: tuple[str, ...]
    username: str = ""
    password: str = ""
    token: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: bool = True
    timeout: float = 10.0

    @property
    def has_login(self) -> bool:
        """Whether it authenticates: by a user, a token or a certificate."""
        return bool(self.username or self.token or self.cert)

    def is_at(self, other: Endpoint) -> bool:
        """Whether the other's first address is one of its own, however it is spelled."""
        return _spelled(other.urls[0]) in map(_spelled, self.urls)

    def __repr__(self) -> str:
        return f"Endpoint({', '.join(redact(url) for url in self.urls)})"


def _spelled(url: str) -> tuple[str, str | None, int | None, str]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        port = None
    return parts.scheme, parts.hostname, port or PORTS.get(parts.scheme), parts.path.rstrip("/")


def kind_of(error: Exception) -> ProblemKind:
    """Whether a request failed because of a certificate, or because the server was not reached."""
    text = str(error).upper()
    return ProblemKind.TLS if "SSL" in text or "CERTIFICATE" in text else ProblemKind.UNREACHABLE


def tls_context(endpoint: Endpoint) -> ssl.SSLContext | bool:
    """How to check the other side's certificate, and which one to show it."""
    if not any(url.lower().startswith("https") for url in endpoint.urls):
        return True
    try:
        context = ssl.create_default_context(cafile=endpoint.ca or None)
        if endpoint.cert:
            context.load_cert_chain(endpoint.cert, endpoint.key or None)
    except (OSError, ssl.SSLError) as error:
        raise ConnectError(
            ProblemKind.TLS, f"certificates: {error}", hint="check ca, cert and key"
        ) from None
    if not endpoint.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
