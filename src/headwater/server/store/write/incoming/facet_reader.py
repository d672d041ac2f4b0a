"""The facets of events, each read and checked once.

Facets come again and again byte for byte. Each is known by the digest of its bytes, so that only
what has not been met before is decoded.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage import secrets
from headwater.lineage.conversion import converter
from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.events import (
    EventError,
    EventProblem,
    Limits,
    canonical,
    check_size,
    check_text,
)
from headwater.server.store.write.incoming.name_limits import (
    NAMING_FACETS,
    named_datasets,
    too_long,
    unfit_in_facet,
)
from headwater.server.store.write.incoming.prepared import Facet

if TYPE_CHECKING:
    from headwater.lineage.openlineage.events import Facets

__all__ = ["NULL", "FacetReader", "NotCompactError", "decode_items", "decode_members", "once"]

decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_plain = msgspec.json.Decoder().decode
_column_lineage = converter(known.ColumnLineageFacet)
NULL = b"null"
CHECKED = {name: name.encode() for name in ("schema", *NAMING_FACETS)}
"""Facets that are refused by what is in them."""
REMEMBERED = frozenset(("producer", "schemaURL", "namespace", "name"))
"""Members whose texts come again; what another one holds may be a secret because of its key."""
TEXT = 512
"""Longer texts are not remembered, longer facets only by their digest."""


class NotCompactError(Exception):
    """The event takes the slow way: it has spaces, escapes, or something wrong with it."""


class FacetReader:
    """Reads facets and the other members of an event; remembers those met before."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._facets: dict[bytes, Facet] = {}
        self.size = 0
        """Bytes of the facets met since the cache was last emptied."""
        self._texts: dict[bytes, tuple[Any, bool]] = {}

    @property
    def met(self) -> tuple[dict[bytes, Any], ...]:
        """What is remembered, to be kept within bounds."""
        return self._facets, self._texts

    def text(self, key: str, raw: msgspec.Raw) -> tuple[Any, bool]:
        """Any other member, held to the limits, and whether a credential may be in it."""
        text = bytes(raw)
        found = self._texts.get(text) if key in REMEMBERED else None
        if found is None:
            found = self._other(key, text), secrets.holds_secret(text, key)
            if len(text) <= TEXT and type(found[0]) is str and key in REMEMBERED:
                self._texts[text] = found
        return found

    def given(self, facets: Facets | None, path: str) -> list[tuple[str, Facet]]:
        """The facets of a part that only the lenient reader understands."""
        found = []
        for name, raw in (facets or {}).items():
            if problem := too_long(name, self.limits.name):
                raise EventError([EventProblem(path, f"a facet's name has {problem}")])
            problem = known.problems(name, raw)
            if problem:
                raise EventError([EventProblem(f"{path}.{name}", problem)])
            text = bytes(raw)
            value = _plain(text)
            unfit = unfit_in_facet(name, canonical(value), value, self.limits.name)
            if unfit is not None:
                raise EventError([EventProblem(f"{path}.{unfit.field}", unfit.problem)])
            found.append((name, self.facet(name, raw)))
        return [pair for pair in found if pair[1].body != NULL]

    def facet(self, name: str, raw: msgspec.Raw) -> Facet:
        """A facet by its bytes; raises NotCompactError where the slow way must say what is wrong."""
        text = bytes(raw)
        key = text if len(text) <= TEXT else sha256(text).digest()
        if name in CHECKED:  # the same bytes under another name were held to other checks
            key += CHECKED[name]
        facet = self._facets.get(key)
        if facet is None:
            value = _plain(text)
            if type(value) is not dict and value is not None:
                raise NotCompactError
            sources = None
            if name == "columnLineage":
                sources = _sources(value) if value is not None else None
            elif known.problems(name, raw):
                raise NotCompactError
            check_size(text, value, self.limits)
            body = canonical(value)
            if unfit_in_facet(name, body, value, self.limits.name):
                raise NotCompactError
            if len(body) != len(text) or text.find(b"\\") >= 0:
                check_text(text, value)
            found = sha256(body)
            deleted = value is not None and value.get("_deleted") is True
            odd = secrets.holds_secret(text)
            facet = Facet(found.digest(), found.hexdigest(), body, deleted, odd, sources=sources)
            if name in NAMING_FACETS:
                facet.names = len(named_datasets(value)) if sources is None else len(sources)
            self._facets[key] = facet
            self.size += len(body)
        return facet

    def _other(self, key: str, text: bytes) -> Any:
        decoded = _plain(text)
        if type(decoded) is not str or len(decoded) + 2 != len(text):
            check_size(text, decoded, self.limits)
            check_text(text, decoded)
            if key in ("producer", "schemaURL") and type(decoded) is not str:
                raise NotCompactError
        return decoded


def _sources(value: dict[str, Any]) -> set[tuple[str, str]]:
    return known.sources(_column_lineage(value))


def once(members: dict[str, msgspec.Raw], size: int) -> None:
    """Make sure no key was lost to repetition: in compact JSON the lengths add up."""
    held = 1 + sum(map(len, members)) + sum(map(len, members.values())) + 4 * len(members)
    if size != held and (size != 2 or members):
        raise NotCompactError
