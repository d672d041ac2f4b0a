"""Requests to a Spark Connect server: settings, tables, schemas and explain texts, never an action."""

from __future__ import annotations

import inspect
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.spark.remote.messages import has_parameters, plan_of, with_statement

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_SECONDS = 60.0
CONNECT_SECONDS = 2.0
_DETAILS = "# Detailed Table Information"
_PARTITIONS = "# Partition"


class OwnRequests(threading.local):
    """Whether this thread makes requests of Headwater's own, which are not reported."""

    depth = 0


OWN = OwnRequests()


@contextmanager
def own_requests() -> Iterator[None]:
    """Mark the requests made inside as Headwater's own."""
    OWN.depth += 1
    try:
        yield
    finally:
        OWN.depth -= 1


class ConnectTable(NamedTuple):
    """A table as the server describes it."""

    location: str
    provider: str
    type: str
    partitioned: bool = False


class ConnectServer:
    """One session's server; descriptions of tables are cached until a command may have changed them."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._settings: dict[str, str] = {}
        self._tables: dict[str, tuple[float, ConnectTable | None]] = {}
        self._schemas: dict[str, tuple[float, dict[str, Any]]] = {}

    def clear_cache(self) -> None:
        """Forget tables and settings: a command may have changed them."""
        self._settings.clear()
        self._tables.clear()
        self._schemas.clear()

    def answers(self) -> bool:
        """Whether the server's address accepts connections.

        A request would not show it: the client retries for minutes before it gives up.
        """
        try:
            host, _, port = str(self.spark.client._builder.endpoint).rpartition(":")  # noqa: SLF001
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
                return True
        except OSError:
            return False
        except Exception:  # noqa: BLE001
            return True

    def setting(self, key: str) -> str:
        """A setting of the session, or nothing."""
        if key not in self._settings:
            try:
                with own_requests():
                    self._settings[key] = self.spark.conf.get(key, None) or ""
            except Exception:  # noqa: BLE001
                self._settings[key] = ""
        return self._settings[key]

    def current(self) -> list[str]:
        """The catalog and the namespace in which short names are looked up."""
        with own_requests():
            catalog = self.spark.catalog
            return [str(catalog.currentCatalog()), *str(catalog.currentDatabase()).split(".")]

    def table(self, parts: list[str]) -> ConnectTable | None:
        """A table by the parts of its name, or None when there is none that can be described."""
        name = quoted(parts)
        cached = self._tables.get(name)
        if cached is None or time.monotonic() - cached[0] > CACHE_SECONDS:
            table = self._describe(name) if self._exists(name) else None
            cached = self._tables[name] = (time.monotonic(), table)
        return cached[1]

    def _exists(self, name: str) -> bool:
        """Whether a table exists; asked first, since a server logs what it cannot describe."""
        try:
            with own_requests():
                return bool(self.spark.catalog.tableExists(name))
        except Exception:  # noqa: BLE001
            return False

    def _describe(self, name: str) -> ConnectTable | None:
        try:
            with own_requests():
                rows = self.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        except Exception:  # noqa: BLE001
            return None
        details: dict[str, str] = {}
        in_details = partitioned = False
        for row in rows:
            partitioned = partitioned or str(row[0]).startswith(_PARTITIONS)
            in_details = in_details or row[0] == _DETAILS
            if in_details:
                details.setdefault(str(row[0]), str(row[1]))
        return ConnectTable(
            details.get("Location", ""),
            details.get("Provider", ""),
            details.get("Type", ""),
            partitioned,
        )

    def columns(self, parts: list[str]) -> dict[str, Any] | None:
        """The types of a table's columns by name, in order."""
        name = quoted(parts)
        cached = self._schemas.get(name)
        if cached is None or time.monotonic() - cached[0] > CACHE_SECONDS:
            if self.table(parts) is None:
                return None
            try:
                with own_requests():
                    schema = self.spark.table(name).schema
            except Exception:  # noqa: BLE001
                return None
            cached = self._schemas[name] = (time.monotonic(), types_of(schema))
        return cached[1]

    def relation_columns(self, relation: Any) -> dict[str, Any]:
        """The types of a relation's columns by name."""
        return types_of(self.schema(relation))

    def schema(self, relation: Any) -> Any:
        """The schema of a relation of the client's plan."""
        with own_requests():
            return self.spark.client.schema(plan_of(relation))

    def explain(self, relation: Any) -> str:
        """The extended explain of a relation of the client's plan."""
        with own_requests():
            text: str = self.spark.client.explain_string(plan_of(relation), "extended")
            return text

    def explain_sql(self, message: Any, statement: str) -> str:
        """The extended explain of a statement, which is not run."""
        text = f"EXPLAIN EXTENDED {statement}"
        with own_requests():
            if not has_parameters(message):
                return str(self.spark.sql(text).collect()[0][0])
            return self._explain_with_parameters(message, text)

    def _explain_with_parameters(self, message: Any, text: str) -> str:
        """The explain of a statement with parameters or over frames, which go along with it."""
        client = self.spark.client
        result = client.execute_command(with_statement(message, text))[1]["sql_command_result"]
        # From 4.0 on the method takes observations too.
        wanted = len(inspect.signature(client.to_table).parameters)
        observed: list[dict[str, Any]] = [{}] if wanted > 1 else []
        table = client.to_table(plan_of(result), *observed)[0]
        return str(table.column(0)[0].as_py())


class RemoteSession:
    """A session of Spark Connect while one plan is read, and the problems met on the way."""

    jvm = None

    def __init__(self, server: ConnectServer) -> None:
        self.server = server
        self.topics: frozenset[str] = frozenset()
        """Topics that a query was seen to read, which are what its pattern stands for."""
        self.problems: dict[str, None] = {}

    def problem(self, text: str) -> None:
        """Note once what could not be read."""
        self.problems[text] = None

    def setting(self, key: str) -> str:
        """A setting of the session, or nothing."""
        return self.server.setting(key)

    def hadoop_setting(self, key: str) -> str:
        """Nothing: a client cannot see the server's Hadoop configuration."""
        return ""


def quoted(parts: list[str]) -> str:
    """A table's name for a statement."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def types_of(schema: Any) -> dict[str, Any]:
    """The types of a schema's columns by name, as Spark's JSON has them."""
    return {field.name: field.dataType.jsonValue() for field in schema.fields}
