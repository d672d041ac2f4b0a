"""Requests that a page of another site makes a browser send (CSRF): they may change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from headwater.server.http import HttpError

if TYPE_CHECKING:
    from headwater.server.http.hosts import Hosts

__all__ = ["refuse_foreign"]

JSON = b"application/json"
OWN = (b"same-origin", b"none")
FORMS = (b"text/plain", b"multipart/form-data")
"""What a form of another site can send without asking first, and no client of ours does."""


def refuse_foreign(
    hosts: Hosts,
    host: bytes | None,
    site: bytes | None,
    origin: bytes | None,
    content_type: bytes | None,
) -> None:
    """Refuse a change that the page of another site asks for; raises 403, or 415 for a form.

    `Sec-Fetch-Site` has it where a browser sends it: to https and to localhost. Elsewhere `Origin`
    must name the host that was asked, or one that the server goes by.
    """
    if (
        content_type is not None
        and content_type != JSON
        and content_type.partition(b";")[0].strip().lower() in FORMS
    ):
        raise HttpError(415, "send application/json")
    if site is not None:
        if site not in OWN:
            raise HttpError(403, "a page of another site may not change anything here")
    elif origin is not None and not _same(hosts, host, origin):
        raise HttpError(403, "a page of another site may not change anything here (Origin)")


def _same(hosts: Hosts, host: bytes | None, origin: bytes) -> bool:
    text = origin.decode("latin-1").strip().lower()
    try:
        found = urlsplit(text)
        name = found.hostname or ""
        _ = found.port  # raises where it is no number: `http://localhost:5000.example.com`
    except ValueError:
        return False
    asked = (host or b"").decode("latin-1").strip().lower()
    return found.netloc == asked or hosts.named(name)
