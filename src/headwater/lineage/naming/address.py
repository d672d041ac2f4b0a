"""Hosts and ports: the first of a list, without user, password, path or query."""

from __future__ import annotations

import re
from typing import NamedTuple

WEB_PORTS = {"http": 80, "https": 443}

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.\-_]*://")
_NEXT_URL = re.compile(r",\s*(?=[A-Za-z][A-Za-z0-9+.\-_]*://)")
_HOST = re.compile(r"^(?:[^\W]|[.\-])+$")
_IPV6 = re.compile(r"^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[\w.\-]+)?$")
_REDSHIFT = re.compile(
    r"^([a-z0-9\-]+)\.[a-z0-9]+\.([a-z0-9\-]+)\.redshift(?:-serverless)?\.amazonaws\.com"
)
_MQ_PORT = re.compile(r"^(.+)\((\d+)\)$")


class NamingError(ValueError):
    """An address from which no dataset name can be made; the message never holds credentials."""


class Address(NamedTuple):
    """A host, lower-case and bracketed when IPv6, and its port when one is known."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def strip_scheme(text: str) -> str:
    """Drop every leading `scheme://`; `SASL_SSL://` and a doubled scheme go too."""
    while match := _SCHEME.match(text):
        text = text[match.end() :]
    return text


def first_url(text: str) -> str:
    """The first of several whole URLs in one list."""
    return _NEXT_URL.split(text, maxsplit=1)[0]


def split_authority(text: str, *, at_in_path: bool = False) -> tuple[str, str]:
    """Split `user:password@host:port/rest` into the bare authority and the rest.

    A password may hold `/`, `?`, `#` or a comma although it should be encoded, so an `@` after the
    first of those still ends the user part, unless `at_in_path` is set: paths may hold an `@`.
    """
    end = min((i for i in map(text.find, "/?#;") if i >= 0), default=len(text))
    head, rest = _bare_list(text[:end]), text[end:]
    readable = _is_address(head)
    if "@" in rest and not (at_in_path and readable):
        query = re.search(r"[?;][\w.\-]+=", rest) if readable else None
        cut = rest.rfind("@", 0, query.start() if query else len(rest))
        if cut >= 0:
            return split_authority(rest[cut + 1 :], at_in_path=True)
    return head, rest


def first(text: str, default_port: int | None = None) -> Address:
    """The first host of a list such as `SASL_SSL://u:p@a:9093,b:9093/path?x=y`."""
    text = first_url(text.strip().strip("\"'"))
    authority, _ = split_authority(strip_scheme(text).lstrip("/"))
    web = WEB_PORTS.get(text.partition("://")[0].lower())
    return parse(authority.split(",", 1)[0], web or default_port)


def parse(text: str, default_port: int | None = None) -> Address:
    """Read one `host`, `host:port`, `[v6]:port`, bare v6 or IBM MQ's `host(port)`."""
    text = text.strip()
    if match := _MQ_PORT.match(text):
        text = f"{match[1]}:{match[2]}"
    host, port = _split_port(text)
    if host.startswith("["):
        if not host.endswith("]") or not _IPV6.match(host[1:-1]):
            raise NamingError("the address holds an IPv6 host that is not closed or not valid")
    elif not host or not _HOST.match(host):
        raise NamingError("the address holds no host name that can be read")
    return Address(host.lower(), port_number(port) if port else default_port)


def port_number(text: str) -> int:
    """A port as a number, or an error that does not repeat the text."""
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
        raise NamingError("the address has a port that is not a number from 1 to 65535")
    return int(text)


def snowflake(text: str) -> str:
    """The account of a Snowflake address: no suffix, no private link, hyphens for underscores."""
    host = re.sub(r"\.snowflakecomputing\.(?:com|cn)$", "", first(text).host)
    return host.removesuffix(".privatelink").replace("_", "-")


def duckdb(path: str) -> str:
    """What DuckDB calls the database in a file: `shop` for `/data/shop.v2.duckdb`."""
    if path.startswith(":memory:"):
        return path.removeprefix(":memory:") or "memory"
    return re.split(r"[/:\\]", path)[-1].partition(".")[0]


def redshift(place: Address) -> Address:
    """`cluster.id.region.redshift.amazonaws.com` shortened to cluster and region."""
    match = _REDSHIFT.match(place.host)
    host = f"{match[1]}.{match[2]}" if match else place.host
    return Address(host, place.port or 5439)


def _split_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, bracket, tail = text.partition("]")
        if tail and not tail.startswith(":"):
            raise NamingError("the address has text after its IPv6 host")
        return host + bracket, tail[1:]
    if text.count(":") > 1:
        if not _IPV6.match(text):
            raise NamingError("the address has more than one port")
        return f"[{text}]", ""
    host, _, port = text.partition(":")
    return host, port


def _is_address(text: str) -> bool:
    try:
        parse(text.split(",", 1)[0])
    except NamingError:
        return False
    return True


def _bare_list(authority: str) -> str:
    chunks = authority.split(",")
    users = [chunk.rpartition("@")[0] for chunk in chunks if "@" in chunk]
    if len(set(users)) > 1 or "@" not in chunks[0]:
        # A comma or an @ inside the password: only what follows the last @ is surely no secret.
        return authority.rpartition("@")[2]
    return ",".join(chunk.rpartition("@")[2] for chunk in chunks)
