"""The server as a client may ask it: settings, tables and explain texts, never an action."""

from __future__ import annotations

import inspect
import logging
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.spark.remote.messages import given, plan_of, with_statement

if TYPE_CHECKING:
    from collections.abc import Iterator

KEPT_SECONDS = 60.0
CONNECT_SECONDS = 2.0
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_DETAILS = "# Detailed Table Information"


class Asking(threading.local):
    """Whether this thread asks for itself, so that nothing it does is told."""

    deep = 0


ASKING = Asking()


class Hush(logging.Filter):
    """Keeps PySpark from logging what the server refuses us: the program did not ask for it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not ASKING.deep

    def __enter__(self) -> None:
        for logger in _loggers():
            logger.addFilter(self)

    def __exit__(self, *_: object) -> None:
        for logger in _loggers():
            logger.removeFilter(self)


def _loggers() -> list[logging.Logger]:
    try:
        from pyspark.logger import PySparkLogger
    except ImportError:
        return []
    # They must come to be as what PySpark expects them to be.
    return [PySparkLogger.getLogger(name) for name in _LOGGERS]


@contextmanager
def asking() -> Iterator[None]:
    """What happens inside is ours, not the program's."""
    ASKING.deep += 1
    try:
        yield
    finally:
        ASKING.deep -= 1


class Table(NamedTuple):
    """A table as the server describes it."""

    location: str
    provider: str
    type: str


class Server:
    """One session's server; what it said of tables is kept until something may have changed."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark
        self._settings: dict[str, str] = {}
        self._tables: dict[str, tuple[float, Table | None]] = {}
        self._schemas: dict[str, tuple[float, dict[str, Any]]] = {}

    def forget(self) -> None:
        """A command may have changed what there is."""
        self._settings.clear()
        self._tables.clear()
        self._schemas.clear()

    def answers(self) -> bool:
        """Whether somebody listens at the server's address.

        A call would not say it: the client tries again for minutes before it gives up.
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
                with asking():
                    self._settings[key] = self.spark.conf.get(key, None) or ""
            except Exception:  # noqa: BLE001
                self._settings[key] = ""
        return self._settings[key]

    def current(self) -> list[str]:
        """The catalog and the namespace in which short names are looked up."""
        with asking():
            catalog = self.spark.catalog
            return [str(catalog.currentCatalog()), *str(catalog.currentDatabase()).split(".")]

    def table(self, parts: list[str]) -> Table | None:
        """A table by the parts of its name, or None when there is none that can be described."""
        name = quoted(parts)
        kept = self._tables.get(name)
        if kept is None or time.monotonic() - kept[0] > KEPT_SECONDS:
            there = self._describe(name) if self._exists(name) else None
            kept = self._tables[name] = (time.monotonic(), there)
        return kept[1]

    def _exists(self, name: str) -> bool:
        """Whether a table is there; asked first, since a server logs what it cannot describe."""
        try:
            with asking():
                return bool(self.spark.catalog.tableExists(name))
        except Exception:  # noqa: BLE001
            return False

    def _describe(self, name: str) -> Table | None:
        try:
            with asking():
                rows = self.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        except Exception:  # noqa: BLE001
            return None
        told: dict[str, str] = {}
        details = False
        for row in rows:
            details = details or row[0] == _DETAILS
            if details:
                told.setdefault(str(row[0]), str(row[1]))
        return Table(told.get("Location", ""), told.get("Provider", ""), told.get("Type", ""))

    def columns(self, parts: list[str]) -> dict[str, Any] | None:
        """The types of a table's columns by name, in order."""
        name = quoted(parts)
        kept = self._schemas.get(name)
        if kept is None or time.monotonic() - kept[0] > KEPT_SECONDS:
            if self.table(parts) is None:
                return None
            try:
                with asking():
                    schema = self.spark.table(name).schema
            except Exception:  # noqa: BLE001
                return None
            kept = self._schemas[name] = (time.monotonic(), types_of(schema))
        return kept[1]

    def relation_columns(self, relation: Any) -> dict[str, Any]:
        """The types of a relation's columns by name."""
        return types_of(self.schema(relation))

    def schema(self, relation: Any) -> Any:
        """The schema of a relation of the client's plan."""
        with asking():
            return self.spark.client.schema(plan_of(relation))

    def explain(self, relation: Any) -> str:
        """The extended explain of a relation of the client's plan."""
        with asking():
            text: str = self.spark.client.explain_string(plan_of(relation), "extended")
            return text

    def explain_sql(self, message: Any, statement: str) -> str:
        """The extended explain of a statement, which is not run."""
        text = f"EXPLAIN EXTENDED {statement}"
        with asking():
            if not given(message):
                return str(self.spark.sql(text).collect()[0][0])
            return self._explain_given(message, text)

    def _explain_given(self, message: Any, text: str) -> str:
        """The explain of a statement with parameters or over frames, which go along with it."""
        client = self.spark.client
        told = client.execute_command(with_statement(message, text))[1]["sql_command_result"]
        # What is observed on the way is asked for from 4.0 on.
        wanted = len(inspect.signature(client.to_table).parameters)
        observed: list[dict[str, Any]] = [{}] if wanted > 1 else []
        table = client.to_table(plan_of(told), *observed)[0]
        return str(table.column(0)[0].as_py())


class World:
    """One reading's access to a server, and the problems it met."""

    jvm = None

    def __init__(self, server: Server) -> None:
        self.server = server
        self.topics: frozenset[str] = frozenset()
        """Topics that a query was seen to read, for what a pattern stands for."""
        self.problems: dict[str, None] = {}

    def problem(self, text: str) -> None:
        """Note once what could not be told."""
        self.problems[text] = None

    def setting(self, key: str) -> str:
        """A setting of the session, or nothing."""
        return self.server.setting(key)

    @property
    def spark(self) -> Any:
        """A stand-in for the parts of a session that a client does not have."""
        return _NoContext


class _NoContext:
    """Where settings of Hadoop would be: a client cannot see them."""

    class _jsc:  # noqa: N801
        @staticmethod
        def hadoopConfiguration() -> dict[str, str]:  # noqa: N802
            return {}


def quoted(parts: list[str]) -> str:
    """A table's name for a statement."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def types_of(schema: Any) -> dict[str, Any]:
    """The types of a schema's columns by name, as Spark's JSON has them."""
    return {field.name: field.dataType.jsonValue() for field in schema.fields}
