"""Objects of the driver's JVM, read with as few calls as can be."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NUMBER = re.compile(r"#(\d+)")


class JvmSession:
    """The driver's Spark session while one plan is read, and the problems met on the way."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm  # noqa: SLF001
        self.problems: dict[str, None] = {}
        self._mapper: Any = None
        self._settings: dict[str, str] = {}

    def problem(self, text: str) -> None:
        """Report once what could not be found out."""
        self.problems[text] = None

    def setting(self, key: str) -> str:
        """A setting of the session, or nothing."""
        if key not in self._settings:
            try:
                self._settings[key] = self.spark.conf.get(key, None) or ""
            except Exception:  # noqa: BLE001
                self._settings[key] = ""
        return self._settings[key]

    def hadoop_setting(self, key: str) -> str:
        """A setting of the Hadoop configuration that Spark runs with, or nothing."""
        return self.spark._jsc.hadoopConfiguration().get(key) or ""  # noqa: SLF001

    def json(self, plan: Any) -> str:
        """A plan's `toJSON`; the kernel acknowledges at once, which makes long answers faster."""
        with suppress(Exception):
            client = self.spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # noqa: SLF001
            wire = client.get_thread_connection().socket
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        text: str = plan.toJSON()
        return text

    def mapping(self, given: Any) -> dict[str, str]:
        """A Java or Scala map of strings, in one or two calls."""
        if given is None:
            return {}
        if hasattr(given, "keys") and not hasattr(given, "getClass"):
            return {str(key): str(value) for key, value in given.items()}
        name = given.getClass().getName()
        if given.isEmpty():
            return {}
        if name.endswith("CaseInsensitiveStringMap"):
            given = given.asCaseSensitiveMap()
        elif name.endswith("CaseInsensitiveMap"):
            given = self.jvm.scala.collection.JavaConverters.mapAsJavaMap(given.originalMap())
        elif name.startswith("scala."):
            given = self.jvm.scala.collection.JavaConverters.mapAsJavaMap(given)
        if self._mapper is None:
            self._mapper = self.jvm.com.fasterxml.jackson.databind.ObjectMapper()
        raw = msgspec.json.decode(self._mapper.writeValueAsString(given))
        return {key: str(value) for key, value in raw.items() if value is not None}


def kind(given: Any) -> str:
    """The name of an object's class without its package; inner classes keep the outer's."""
    name: str = given.getClass().getName()
    return name[name.rfind(".") + 1 :]


def class_name(given: Any) -> str:
    """The full name of an object's class."""
    name: str = given.getClass().getName()
    return name


def seq(given: Any, most: int = 10_000) -> list[Any]:
    """A Scala sequence as a list, up to a length: each element costs a call."""
    return [given.apply(place) for place in range(min(given.size(), most))]


def option(given: Any) -> Any:
    """What a Scala option holds, or None."""
    return given.get() if given is not None and given.isDefined() else None


def option_text(given: Any) -> str | None:
    """What a Scala option holds as a text, or None, in one call."""
    text = str(given.toString())
    return text[len("Some(") : -1] if text.startswith("Some(") else None


def attempt(given: Any, *names: str) -> Any:
    """The first of these methods that the object has, called; None when it has none of them."""
    for name in names:
        with suppress(Exception):
            return getattr(given, name)()
    return None


def hidden(given: Any, name: str) -> Any:
    """A private field, by reflection; Scala may have put its class before the name."""
    one = given.getClass()
    while one is not None:
        for field in one.getDeclaredFields():
            found = field.getName()
            if found == name or found.endswith(f"$${name}"):
                field.setAccessible(True)
                return field.get(given)
        one = one.getSuperclass()
    return None


def numbers(output: str, names: list[str]) -> list[int]:
    """The numbers of attributes in `List(id#1L, a b#2)`, given their names in order."""
    at = output.find("(") + 1
    found: list[int] = []
    for name in names:
        start = output.find(name, at)
        match = _NUMBER.match(output, start + len(name)) if start >= 0 else None
        if match is None:
            return []
        found.append(int(match[1]))
        at = match.end()
    return found
