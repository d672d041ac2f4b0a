"""Tables of Iceberg REST catalogs, loaded in the background so that a slow catalog delays no poll."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, wait
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from headwater.connect.derive.metadata import CatalogTable
from headwater.errors import HeadwaterError, missing_package
from headwater.lineage.naming import redact
from headwater.lineage.schema import Field, Schema, iceberg_table
from headwater.lineage.schema.model import ELEMENT, container

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A column that is added to a table must be reported within a minute.
FRESH = 20.0
# A table that is created must be reported by the poll that follows.
ABSENT = 1.0
RETRY = 30.0
PATIENCE = 3.0
REFRESH = 0.5
LOADERS = 2
# What a client needs to find a table; keys for the files themselves are never sent.
NEEDED = ("uri", "type", "warehouse", "token", "credential", "scope", "oauth2-server-uri", "prefix")
SECRET = ("token", "credential")
# Iceberg's type names that mean another type in other systems.
TYPES = {"timestamp": "timestamp_ntz", "timestamptz": "timestamp", "binary": "bytes"}


Client = frozenset[tuple[str, str]]
Key = tuple[Client, str]


class CatalogError(HeadwaterError):
    """A catalog that should know a table cannot be asked now."""


class _CachedTable:
    __slots__ = ("answered", "found", "until")

    def __init__(self, found: CatalogTable | None, answered: bool, until: float) -> None:
        self.found = found
        self.answered = answered
        self.until = until


class _Loaders:
    """Threads of one catalog: while it hangs others are asked, and no program waits for them."""

    def __init__(self, load: Callable[[Key, str], None]) -> None:
        self._tasks: SimpleQueue[tuple[Future[None], Key, str] | None] = SimpleQueue()
        self._load = load
        for _ in range(LOADERS):
            threading.Thread(target=self._work, name="catalog", daemon=True).start()

    def ask(self, key: Key, uri: str) -> Future[None]:
        asked: Future[None] = Future()
        self._tasks.put((asked, key, uri))
        return asked

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for _ in range(LOADERS):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._load(*task[1:])
            task[0].set_result(None)


class Catalogs:
    """Iceberg REST catalogs; an answer is remembered, a failure is asked again after a while."""

    def __init__(self) -> None:
        self._loaders: dict[str, _Loaders] = {}
        self._slow: set[str] = set()
        self._lock = threading.Lock()
        self._clients: dict[Client, Any] = {}
        self._known: dict[Key, _CachedTable] = {}
        self._asked: dict[Key, Future[None]] = {}
        self._problems: dict[str, str] = {}

    @property
    def problem(self) -> str:
        """What is wrong with the catalogs now."""
        return "; ".join(list(self._problems.values()))

    def table(self, catalog: Mapping[str, str], name: str) -> CatalogTable | None:
        """The table as last seen; None when there is none, or no REST catalog.

        Raises CatalogError when the catalog does not answer and never did.
        """
        uri = catalog.get("uri", "")
        kind = catalog.get("type", "") or ("rest" if uri.startswith("http") else "")
        if kind.lower() != "rest" or not uri.startswith("http") or "${" in uri:
            return None
        if any("${" in catalog.get(key, "") for key in SECRET):
            return None  # only the worker knows how to get in
        client = frozenset((k, v) for k, v in catalog.items() if k in NEEDED and "${" not in v)
        key = (client, name)
        # Loading the library takes a second of CPU: not the catalog's time, and a program that ends
        # meanwhile in a thread of ours would be aborted by the library's own.
        with suppress(ImportError):
            import_module("pyiceberg.catalog.rest")
        with self._lock:
            known = self._known.get(key)
            if known and time.monotonic() < known.until:
                return self._answer(known, uri)
            asked = self._asked.get(key)
            # Who asks first waits a little; of the others none waits for one that is slow.
            patience = 0.0 if known or uri in self._slow else PATIENCE
            if asked is None:
                if uri not in self._loaders:
                    self._loaders[uri] = _Loaders(self._load)
                asked = self._asked[key] = self._loaders[uri].ask(key, uri)
                patience = REFRESH if known else patience
        wait([asked], patience)
        with self._lock:
            if not known and self._asked.get(key) is asked:
                self._slow.add(uri)
                problem = f"Iceberg catalog {redact(uri)}: no answer within {PATIENCE:g} s"
                self._problems.setdefault(uri, problem)
            return self._answer(self._known.get(key), uri)

    def _load(self, key: Key, uri: str) -> None:
        before, now = self._known.get(key), time.monotonic
        try:
            found = self._ask(*key)
        except Exception as error:  # noqa: BLE001
            reason = redact(str(error) or type(error).__name__)[:300]
            problem = f"Iceberg catalog {redact(uri)}: {reason}"
            known = _CachedTable(
                before.found if before else None, bool(before and before.answered), now() + RETRY
            )
        else:
            problem = ""
            known = _CachedTable(found, True, now() + (FRESH if found else ABSENT))
        with self._lock:
            self._slow.discard(uri)
            self._problems.pop(uri, None)
            if problem:
                self._problems[uri] = problem
            self._known[key] = known
            self._asked.pop(key, None)

    def _answer(self, known: _CachedTable | None, uri: str) -> CatalogTable | None:
        if known is None or not known.answered:
            raise CatalogError(self._problems.get(uri) or f"Iceberg catalog {redact(uri)} is slow")
        return known.found

    def _ask(self, catalog: Client, name: str) -> CatalogTable | None:
        try:
            from pyiceberg.catalog.rest import RestCatalog
            from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
        except ModuleNotFoundError as error:
            problem = missing_package(error.name, "connect")
            raise CatalogError(f"{problem.message}: {problem.hint}") from error

        client = self._clients.get(catalog)
        if client is None:
            # A table's history may be long, and is not asked for.
            client = RestCatalog("headwater", **dict(catalog), **{"snapshot-loading-mode": "refs"})
            self._clients[catalog] = client
        try:
            metadata = client.load_table(name).metadata
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        fields = tuple(_field(field) for field in metadata.schema().fields)
        highest = max(schema.schema_id for schema in metadata.schemas)
        origin = iceberg_table(str(metadata.table_uuid), metadata.current_schema_id, highest)
        return CatalogTable(str(metadata.location), Schema(fields), origin)

    def close(self) -> None:
        """Ask no more."""
        for loaders in self._loaders.values():
            loaders.close()


def _field(field: Any, name: str = "") -> Field:
    """A column of an Iceberg table with the type names that all our schemas use."""
    return _typed(name or field.name, field.field_type, not field.required, field.doc or "")


def _typed(name: str, kind: Any, nullable: bool, doc: str = "") -> Field:
    if kind.is_struct:
        inner = tuple(_field(field) for field in kind.fields)
        return Field(name, "struct", doc, inner, nullable)
    if hasattr(kind, "element_type"):
        item = _typed(ELEMENT, kind.element_type, not kind.element_required)
        return container(name, "array", (item,), nullable=nullable)
    if hasattr(kind, "value_type"):
        pair = (
            _typed("key", kind.key_type, False),
            _typed("value", kind.value_type, not kind.value_required),
        )
        return container(name, "map", pair, nullable=nullable)
    text = str(kind).replace(", ", ",")
    return Field(name, TYPES.get(text, text), doc, nullable=nullable)
