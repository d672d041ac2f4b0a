"""Every store by its key and by the schemes of its namespaces."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from . import databases, documents, files, messaging, services, warehouses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .store import Store

_ALL = (
    *databases.SPECIFIED,
    *warehouses.SPECIFIED,
    *files.SPECIFIED,
    *messaging.SPECIFIED,
    *databases.OURS,
    *warehouses.OURS,
    *documents.OURS,
    *messaging.OURS,
    *files.OURS,
    *services.OURS,
)

STORES: Mapping[str, Store] = MappingProxyType({store.key: store for store in _ALL})

SCHEMES: Mapping[str, Store] = MappingProxyType(
    {
        **{alias: store for store in reversed(_ALL) for alias in store.schemes},
        **{store.scheme: store for store in reversed(_ALL)},
    }
)


def table() -> str:
    """The published table of names as Markdown: OpenLineage's stores first, then our own."""
    spec = [_row(store) for store in _ALL if not store.ours]
    ours = [f"{_row(store)} {store.why} |" for store in _ALL if store.ours]
    return "\n".join(
        [
            "### Named by OpenLineage",
            "",
            "| store | key | namespace | name | default port | also read as |",
            "|---|---|---|---|---|---|",
            *spec,
            "",
            "### Named by us",
            "",
            "| store | key | namespace | name | default port | also read as | why |",
            "|---|---|---|---|---|---|---|",
            *ours,
            "",
        ]
    )


def _row(store: Store) -> str:
    port = str(store.port) if store.port else ""
    if port and "port" not in store.fields:
        port += ", not written"
    aliases = ", ".join(f"`{alias}`" for alias in store.schemes)
    cells = (store.title, f"`{store.key}`", f"`{store.namespace}`", f"`{store.name}`")
    return f"| {' | '.join((*cells, port, aliases))} |".replace("|  |", "| |").replace(
        "|  |", "| |"
    )
