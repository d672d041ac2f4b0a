"""Where an Iceberg catalog keeps a table, asked in the background so that nobody waits for it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

log = logging.getLogger(__name__)

FRESH = 300.0
RETRY = 30.0
PATIENCE = 3.0
# What a client needs to find a table; keys for the files themselves are never sent.
NEEDED = ("uri", "type", "warehouse", "token", "credential", "scope", "oauth2-server-uri", "prefix")


class Catalogs:
    """Iceberg REST catalogs; an answer is remembered, a failure is asked again after a while."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="catalog")
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[str | None, float]] = {}
        self._asked: dict[tuple[str, str], Future[str | None]] = {}
        self._said: set[str] = set()

    def location(self, catalog: Mapping[str, str], table: str) -> str | None:
        """The table's location, as far as it is known by now."""
        uri = catalog.get("uri", "")
        kind = catalog.get("type", "") or ("rest" if uri.startswith("http") else "")
        if kind.lower() != "rest" or not uri.startswith("http") or "${" in uri:
            return None
        key = (uri, table)
        with self._lock:
            found, until = self._known.get(key, (None, 0.0))
            if time.monotonic() < until:
                return found
            asked = self._asked.get(key)
            if asked is None:
                kept = {k: v for k, v in catalog.items() if k in NEEDED and "${" not in v}
                asked = self._asked[key] = self._pool.submit(self._ask, kept, table)
        try:
            answer = asked.result(PATIENCE if until == 0.0 else 0.01)
        except TimeoutError:
            return found
        except Exception as error:  # noqa: BLE001
            self._say(uri, error)
            answer, wait = found, RETRY
        else:
            wait = FRESH if answer else RETRY
        with self._lock:
            self._asked.pop(key, None)
            self._known[key] = (answer, time.monotonic() + wait)
        return answer

    def _ask(self, catalog: Mapping[str, str], table: str) -> str | None:
        from pyiceberg.catalog.rest import RestCatalog
        from pyiceberg.exceptions import NoSuchTableError

        client = RestCatalog("headwater", **dict(catalog))
        try:
            return str(client.load_table(table).metadata.location)
        except NoSuchTableError:
            return None

    def _say(self, uri: str, error: Exception) -> None:
        if uri not in self._said:
            self._said.add(uri)
            log.warning("Iceberg catalog %s: %s", redact(uri), redact(str(error))[:300])

    def close(self) -> None:
        """Ask no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
