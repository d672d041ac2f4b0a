"""Where events and what they amount to are kept: SQLite or PostgreSQL."""

from headwater.server.store.database import StoreError, StoreUnavailableError
from headwater.server.store.store import Receipt, Store, open_store

__all__ = ["Receipt", "Store", "StoreError", "StoreUnavailableError", "open_store"]
