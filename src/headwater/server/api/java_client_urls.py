"""Texts that Marquez's Java client can read: one that it cannot read fails its whole list."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import quote

__all__ = ["to_uri", "to_url"]

_HOST = r"(?:[^/?#\[\]@\s]*@)?[^/?#\[\]@:\s]*(?::[0-9]{0,5})?"
_URL = re.compile(rf"(?:(?:https?|ftp)://{_HOST}(?:[/?#].*)?|file:(?:/(?!/)|///).*)", re.IGNORECASE)
_LEGAL = "_.!~*'();:@&=+$,/?-"
_CHARS = rf"(?:[A-Za-z0-9{_LEGAL}]|[^\x00-\xa0\s]|%[0-9A-Fa-f]{{2}})*"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:(?!$|#)"
_URI = re.compile(rf"(?:{_SCHEME}|(?![^/?#]*:))(?!//(?:[?#]|$)){_CHARS}(?:#{_CHARS})?")
_IPV6 = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\[\]@]*@)?)\[([0-9A-Fa-f:]+)\](?=[:/?#]|$)")


def to_url(text: str | None) -> str | None:
    """The text if `java.net.URL` takes it: a scheme it knows, and a port that is a number."""
    return text if text and _URL.fullmatch(_without_ipv6(text)) else None


def to_uri(text: str) -> str:
    """The text as `java.net.URI` takes it: characters that it does not know are quoted."""
    if _URI.fullmatch(_without_ipv6(text)):
        return text
    quoted = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", quote(text, safe=_LEGAL + "%#"))
    return quoted if _URI.fullmatch(quoted) else quote(text, safe="")


def _without_ipv6(text: str) -> str:
    """The text with a plain name as its host where that is an IPv6 address in brackets."""
    found = _IPV6.match(text)
    if not found:
        return text
    try:
        IPv6Address(found[2])
    except AddressValueError:
        return text
    return f"{found[1]}host{text[found.end() :]}"
