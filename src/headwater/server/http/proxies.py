"""The headers that a reverse proxy in front of the server adds, and when they are trusted.

Anyone can send these headers: they count only in requests that come from the address of a proxy that the
server is configured to trust.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, NamedTuple

from headwater.errors import UsageError
from headwater.server.http import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Header = tuple[bytes, bytes]

__all__ = ["Credential", "Person", "Proxies", "read_root_path"]

LONGEST = 256
"""Characters of a person's name."""


class Person(NamedTuple):
    """Somebody whom a trusted proxy has signed in."""

    name: str


Credential = bytes | Person | None
"""Who asks: what `Authorization` holds, or a person; None where a request has neither."""


class Proxies:
    """The proxies that are trusted, and what their headers mean."""

    def __init__(self, trusted: Iterable[str] = (), user_header: str | None = None) -> None:
        self._networks = [_network(text) for text in trusted]
        self._user_header = user_header.lower().encode("latin-1") if user_header else None
        self._peers: dict[str, bool] = {}
        if user_header and not self._networks:
            raise UsageError(
                "--user-header is believed of trusted proxies alone, and none is given",
                hint="--trusted-proxies ADDRESS",
            )
        if user_header and not re.fullmatch(r"[A-Za-z0-9-]+", user_header):
            raise UsageError(f"--user-header {user_header!r} is not the name of a header")
        if user_header and user_header.lower() in ("authorization", "host"):
            raise UsageError(f"--user-header {user_header}: clients send this header themselves")

    @property
    def sign_in(self) -> bool:
        """Whether a proxy signs people in."""
        return self._user_header is not None

    def trusts(self, peer: str) -> bool:
        """Whether this is the address of a trusted proxy."""
        if not self._networks:
            return False
        if peer not in self._peers:
            if len(self._peers) > 1_000:
                self._peers.clear()
            self._peers[peer] = self._is_trusted(peer)
        return self._peers[peer]

    def client(self, peer: str, headers: Sequence[Header]) -> str:
        """The address that a request comes from, behind however many trusted proxies.

        Each proxy adds whom it was asked by at the end of the list, so it is read from there: what
        stands before the first address that is not trusted was written by whoever has that address.
        """
        if not self.trusts(peer):
            return peer
        listed = b",".join(v for k, v in headers if k == b"x-forwarded-for").decode("latin-1")
        found = peer
        for part in reversed(listed.split(",")):
            address = _address(part)
            if address is None:
                break
            found = str(address)
            if not self._is_trusted(found):
                break
        return found

    def credential(self, peer: str, headers: Sequence[Header]) -> Credential:
        """Who asks: by a token, which goes before, or as a person whom a trusted proxy names."""
        authorization = None
        for key, value in headers:
            if key == b"authorization":
                authorization = value
                break
        if self._user_header is None or not self.trusts(peer):
            return authorization
        # A proxy that asks for a password itself may hand that on; it is none of our tokens.
        if authorization is not None and authorization[:7].lower() == b"bearer ":
            return authorization
        people = [value for key, value in headers if key == self._user_header]
        if not people:
            return authorization
        name = people[0].decode("utf-8", "replace").strip()
        if len(people) > 1 or len(name) > LONGEST:
            # A proxy that adds its header beside one of the client's would let anyone be anybody.
            raise HttpError(401, "the proxy names more than one person, or none that can be")
        return Person(name) if name else authorization

    def _is_trusted(self, peer: str) -> bool:
        address = _address(peer)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


def read_root_path(text: str | None) -> str:
    """The path below which a proxy serves the server: `/lineage`, or empty."""
    path = (text or "").strip().rstrip("/")
    if path and not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", path):
        raise UsageError(f"--root-path {text!r} is not a path", hint="such as /lineage")
    if path.split("/")[1:2] == ["api"]:
        raise UsageError("--root-path cannot begin with /api, where the server's own API is")
    return path


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise UsageError(
            f"--trusted-proxies {text!r} is not an address",
            hint="such as 10.0.0.7 or 10.0.0.0/24; names are not looked up",
        ) from None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address in `10.0.0.1`, `10.0.0.1:80` or `[::1]:80`; one of IPv4 however it is written."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
