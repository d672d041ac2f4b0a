"""Objects of the driver's JVM, read with as few calls as can be."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from headwater.emit import internal_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Texts = list[Any]

_NUMBER = re.compile(r"#(\d+)")
_STEP = re.compile(r"(\w+)(?:\((\d+)\))?")
_SOURCE = Path(__file__).with_name("JvmReader.java")
_readers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


class PlanJson(NamedTuple):
    """A plan as JSON, and whether it may have queries inside of its expressions."""

    text: str
    inner: bool


class JvmSession:
    """The driver's Spark session while one plan is read, and the problems met on the way."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.jvm: Any = spark._jvm  # noqa: SLF001
        self.problems: dict[str, None] = {}
        self.execution: Any = None
        """What is being read, which may be of another session of the program."""
        self._mapper: Any = None
        self._settings: dict[str, str] = {}
        self._reader = jvm_reader(spark)

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

    @property
    def current_database(self) -> str:
        """The database in which the session of an execution looks up short names."""
        path = "sparkSession.sessionState.catalog.getCurrentDatabase"
        found = self.texts(self.execution, path)[0] if self.execution is not None else None
        return str(found or self.spark.catalog.currentDatabase())

    def hadoop_setting(self, key: str) -> str:
        """A setting of the Hadoop configuration that Spark runs with, or nothing."""
        return self.spark._jsc.hadoopConfiguration().get(key) or ""  # noqa: SLF001

    def json(self, plan: Any, limit: int) -> PlanJson | None:
        """A plan as `toJSON` has it; None for one of more nodes than the limit."""
        with suppress(Exception):
            # The kernel acknowledges at once, which makes long answers faster.
            client = self.spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # noqa: SLF001
            wire = client.get_thread_connection().socket
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if self._reader is None:
            return None if plan.apply(limit) is not None else PlanJson(plan.toJSON(), inner=True)
        text = self._reader.plan(plan, limit)
        if text is None:
            return None
        inner, _, body = str(text).partition("\n")
        return PlanJson(body, inner != "0")

    def texts(self, given: Any, *paths: str) -> Texts:
        """What each path of methods leads to as a text, in one call; None where it leads nowhere.

        An option on the way is what it holds; a step may have a number as its argument.
        """
        if self._reader is None:
            return [_text(_follow(given, path)) for path in paths]
        found: Texts = msgspec.json.decode(self._reader.texts(given, "\n".join(paths)))
        return found

    def static(self, owner: str, method: str, *given: Any) -> Any:
        """What a static method answers; a class by its name alone takes a call for each part of it."""
        from py4j.java_gateway import JavaClass

        client = self.spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # noqa: SLF001
        return getattr(JavaClass(owner, client), method)(*given)

    def counts(
        self, execution: Any, limit: int, written: tuple[str, ...], scanned: tuple[str, ...]
    ) -> tuple[Texts, list[Texts], list[Texts]]:
        """What the plan of an execution has counted: of its root, of its children, of its leaves.

        Nothing where Spark would have to be asked for each of them.
        """
        if self._reader is None:
            return [None] * len(written), [], []
        text = self._reader.counts(execution, limit, "\n".join(written), "\n".join(scanned))
        found: tuple[Texts, list[Texts], list[Texts]] = msgspec.json.decode(text)
        return found

    def default_location(self, quoted: str) -> str:
        """Where Spark's own catalog puts a table that has no location of its own."""
        session = self.spark._jsparkSession  # noqa: SLF001
        if self._reader is not None:
            return str(self._reader.defaultLocation(session, quoted))
        state = session.sessionState()
        identifier = state.sqlParser().parseTableIdentifier(quoted)
        return str(state.catalog().defaultTablePath(identifier).toString())

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


def jvm_reader(spark: SparkSession) -> Any:
    """The `JvmReader` of this JVM, or None where it cannot be had: then Spark is asked step by step."""
    # Once for each JVM, whatever contexts it has: py4j keeps methods by the name of their class.
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    if gateway not in _readers:
        _readers[gateway] = _compiled(spark)
    return _readers[gateway]


@internal_errors.log_and_ignore("compiling the reader of plans (reading them takes more time)")
def _compiled(spark: SparkSession) -> Any:
    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()  # type: ignore[union-attr]  # noqa: SLF001
    compiler.setParentClassLoader(spark._jsparkSession.getClass().getClassLoader())  # noqa: SLF001
    compiler.cook(_SOURCE.read_text())
    reader = compiler.getClassLoader().loadClass("headwater.JvmReader").newInstance()
    for name in ("plan", "texts", "counts", "defaultLocation"):
        unconverted(getattr(reader, name))
    return reader


def unconverted(method: Any) -> None:
    """Let py4j give a method its arguments as they are: objects of the JVM, numbers and texts.

    It asks each of its converters about each argument otherwise, which takes as long as the call.
    An object keeps its methods, so once is enough for each of them.
    """
    method.converters = None


def _follow(given: Any, path: str) -> Any:
    for step, number in _STEP.findall(path):
        try:
            given = getattr(given, step)(*([int(number)] if number else []))
            if _is_java(given) and class_name(given) in ("scala.Some", "scala.None$"):
                given = option(given)
        except Exception:  # noqa: BLE001
            return None
        if given is None:
            return None
    return given


def _text(given: Any) -> Any:
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, bool):
        return str(given).lower()
    if not _is_java(given):
        return str(given)
    name = class_name(given)
    if name.startswith("["):
        return [str(one) for one in given]
    if name.startswith("scala.collection.") and "Map" not in name:
        return str(given.mkString("\x01")).split("\x01") if given.size() else []
    return str(given.toString())


def _is_java(given: Any) -> bool:
    from py4j.java_gateway import JavaObject

    return isinstance(given, JavaObject)


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
