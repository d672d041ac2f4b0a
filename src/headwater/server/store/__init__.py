"""Where events, and the projection computed from them, are kept: SQLite or PostgreSQL."""

from headwater.server.store.database import (
    StoreError,
    StoreUnavailableError,
    UnstorableError,
)
from headwater.server.store.store import Receipt, Store, open_store

__all__ = [
    "Receipt",
    "Store",
    "StoreError",
    "StoreUnavailableError",
    "UnstorableError",
    "open_store",
]
