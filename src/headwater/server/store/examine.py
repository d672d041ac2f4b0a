"""The parts of an event in whatever form, and their facets, each facet read and checked once.

Facets come again and again byte for byte. Each is known by the digest of its bytes, so that only
what has not been met before is decoded.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headwater.lineage import facets as known
from headwater.lineage import secrets
from headwater.lineage.events import (
    FACET_MEMBERS,
    EventError,
    Limits,
    Problem,
    canonical,
    check_size,
    check_text,
    part_hash,
)
from headwater.server.store.parts import Facet, Part, safe

if TYPE_CHECKING:
    from headwater.lineage.events import Facets

__all__ = ["NULL", "Examined", "OddError", "decode_items", "decode_members", "once"]

decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_plain = msgspec.json.Decoder().decode
_uuid = msgspec.json.Decoder(UUID).decode
_encode = msgspec.json.Encoder(order="sorted").encode
NULL = b"null"
_PLAIN = ("schema", "columnLineage", "lineage")
"""Facets whose keys are names of columns or fixed: no value of theirs is a secret for its key."""
TEXT = 512
"""Longer texts are not remembered."""


class OddError(Exception):
    """The event takes the slow way: it has spaces, escapes, or something wrong with it."""


class Examined:
    """Reads parts step by step, whatever their form; keeps the facets and texts met so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._facets: dict[bytes, Facet] = {}
        self._texts: dict[bytes, tuple[Any, bool]] = {}

    def text(self, key: str, raw: msgspec.Raw) -> tuple[Any, bool]:
        """Any other member, held to the limits, and whether a credential may be in it."""
        text = bytes(raw)
        found = self._texts.get(text)
        if found is None:
            found = self._other(key, text), secrets.suspicious(text)
            if len(text) <= TEXT and type(found[0]) is str and key != "runId":
                self._texts[text] = found
        return found

    def given(self, facets: Facets | None, path: str) -> list[tuple[str, Facet]]:
        """The facets of a part that only the lenient reader understands."""
        found = []
        for name, raw in (facets or {}).items():
            problem = known.problems(name, raw)
            if problem:
                raise EventError([Problem(f"{path}.{name}", problem)])
            found.append((name, self._facet(name, raw)))
        return [pair for pair in found if pair[1].body != NULL]

    def _examine(self, raw: msgspec.Raw, path: str, compact: bool) -> Part:
        members = decode_members(raw)
        if compact:
            once(members, len(raw))
        whole: dict[str, Any] = {}
        facets: list[tuple[str, Facet]] = []
        side: list[tuple[str, Facet]] = []
        tainted = False
        known_as: Any
        io = "inputFacets" if path == "inputs" else "outputFacets"
        for key, value in members.items():
            if len(value) == 4 and value == NULL:
                continue
            if key in FACET_MEMBERS:
                sent = decode_members(value)
                if compact:
                    once(sent, len(value))
                hashes: dict[str, str] = {}
                whole[key] = hashes
                held = facets if key == "facets" else side if key == io else None
                for name, body in sent.items():
                    facet = self._facet(name, body)
                    hashes[name] = facet.hex
                    if facet.tainted:
                        tainted = True
                    if held is not None and facet.body != NULL:
                        held.append((name, facet))
            else:
                whole[key], odd = self.text(key, value)
                tainted = tainted or odd
        if path == "run":
            known_as = _uuid(members["runId"]).bytes
        else:
            space, own = whole["namespace"], whole["name"]
            longest = self.limits.name
            if not (
                type(space) is str and type(own) is str
                and 0 < len(space) <= longest and 0 < len(own) <= longest
            ):  # fmt: skip
                raise OddError
            known_as = safe(space, own)
        return Part(part_hash(_encode(whole)), known_as, facets, side, tainted)

    def _facet(self, name: str, raw: msgspec.Raw) -> Facet:
        digest = sha256(raw).digest()
        facet = self._facets.get(digest)
        if facet is None:
            text = bytes(raw)
            value = _plain(text)
            if type(value) is not dict and value is not None:
                raise OddError
            sources = None
            if name == "columnLineage":
                sources = _sources(value) if value is not None else None
            elif known.problems(name, raw):
                raise OddError
            check_size(text, value, self.limits)
            body = canonical(value)
            if len(body) != len(text) or b"\\" in text:
                check_text(text, value)
            found = sha256(body)
            deleted = value is not None and value.get("_deleted") is True
            odd = secrets.suspicious(text, keys=name not in _PLAIN)
            facet = Facet(found.digest(), found.hexdigest(), body, deleted, odd, sources=sources)
            self._facets[digest] = facet
        return facet

    def _other(self, key: str, text: bytes) -> Any:
        decoded = _plain(text)
        if type(decoded) is not str or len(decoded) + 2 != len(text):
            check_size(text, decoded, self.limits)
            check_text(text, decoded)
            if key in ("producer", "schemaURL") and type(decoded) is not str:
                raise OddError
        return decoded


def _sources(value: dict[str, Any]) -> set[tuple[str, str]]:
    return known.sources(msgspec.convert(value, known.ColumnLineage))


def once(members: dict[str, msgspec.Raw], size: int) -> None:
    """Make sure no key was lost to repetition: in compact JSON the lengths add up."""
    held = 1 + sum(map(len, members)) + sum(map(len, members.values())) + 4 * len(members)
    if size != held and (size != 2 or members):
        raise OddError
