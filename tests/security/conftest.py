"""The server as an attacker, or an unlucky client, meets it."""

from __future__ import annotations

from tests.integration.server.conftest import (
    client,
    launch,
    pytest_collection_modifyitems,
    store,
    store_url,
)

__all__ = ["client", "launch", "pytest_collection_modifyitems", "store", "store_url"]
