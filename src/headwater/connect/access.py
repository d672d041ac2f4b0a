"""Where a service answers, what it wants to see first, and the kinds of trouble with it."""

from __future__ import annotations

import ssl
from enum import Enum

import msgspec

from headwater.errors import HeadwaterError
from headwater.lineage.naming import redact

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Trouble(str, Enum):
    """What kind of thing went wrong with a request."""

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


class ConnectError(HeadwaterError):
    """Connect did not do or did not answer what was asked; `said` is its own word on it."""

    def __init__(
        self, trouble: Trouble, message: str, *, hint: str | None = None, said: str = ""
    ) -> None:
        super().__init__(redact(message), hint=hint)
        self.trouble = trouble
        self.said = said


class Access(msgspec.Struct, frozen=True):
    """Where a Connect cluster answers, and what it wants to see first."""

    urls: tuple[str, ...]
    username: str = ""
    password: str = ""
    token: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: bool = True
    timeout: float = 10.0

    def __repr__(self) -> str:
        return f"Access({', '.join(redact(url) for url in self.urls)})"


def kind_of(error: Exception) -> Trouble:
    """Whether a request failed for the sake of a certificate, or since nobody answered."""
    text = str(error).upper()
    return Trouble.TLS if "SSL" in text or "CERTIFICATE" in text else Trouble.UNREACHABLE


def tls_context(access: Access) -> ssl.SSLContext | bool:
    """How to check the other side's certificate, and which one to show it."""
    if not any(url.lower().startswith("https") for url in access.urls):
        return True
    try:
        context = ssl.create_default_context(cafile=access.ca or None)
        if access.cert:
            context.load_cert_chain(access.cert, access.key or None)
    except (OSError, ssl.SSLError) as error:
        raise ConnectError(
            Trouble.TLS, f"certificates: {error}", hint="check ca, cert and key"
        ) from None
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
