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
