"""Which host names a server answers to.

A page of another site can have its own name resolve to this machine and so reach a server that
listens here alone (DNS rebinding); its requests still carry that site's name as their host.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from headwater.server.http import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Hosts", "is_loopback"]

REMEMBERED = 64


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Hosts:
    """Lets requests pass that name this server; without any names, all of them."""

    def __init__(self, names: Iterable[str] | None = None) -> None:
        self._names = None if names is None else {name.lower().rstrip(".") for name in names}
        self._seen: set[bytes] = set()

    @classmethod
    def of(cls, bound: str, allowed: Iterable[str]) -> Hosts:
        """The names for a server bound to an address, with those that were allowed besides."""
        extra = list(allowed)
        return cls([bound, *extra]) if extra or is_loopback(bound) else cls()

    def named(self, host: str) -> bool:
        """Whether this is one of the names the server was configured with."""
        return self._names is not None and host in self._names

    def check(self, header: bytes | None) -> None:
        """Let a request pass by its `Host`, or raise 403."""
        if self._names is None or header is None or header in self._seen:
            return
        host = _name(header.decode("latin-1"))
        if host not in self._names and not is_loopback(host):
            raise HttpError(403, "the Host header is not one of this server's (see --allowed-host)")
        if len(self._seen) < REMEMBERED:
            self._seen.add(header)


def _name(host: str) -> str:
    """The host without its port: `localhost:5000`, `[::1]:5000`."""
    host = host.strip().lower()
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
    else:
        name, colon, rest = host.partition(":")
        name, rest = name.rstrip("."), colon + rest
    return name if not rest or (rest[0] == ":" and rest[1:].isdigit()) else host
