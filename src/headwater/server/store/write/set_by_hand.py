"""What people set on a job or a dataset by hand: it stays, whatever its producer reports later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.facets import ABOUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.server.store.entities import Held
    from headwater.server.store.write.session import WriteSession

__all__ = ["DESCRIBES", "description"]

DESCRIBES = (ABOUT, "documentation")
"""The facets that describe a job or a dataset; the first that has a description counts."""


def description(session: WriteSession, held: Mapping[str, Held]) -> str | None:
    """What a job or a dataset is for: as set by people, else as its producer reports."""
    for name in DESCRIBES:
        number = held[name][0] if name in held else 0
        read = known.read(session.body(number), known.DocumentationFacet) if number else None
        if read is not None and read.description:
            return read.description
    return None
