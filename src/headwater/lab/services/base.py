"""What a service of the lab is, and what it may use."""

from __future__ import annotations

import json
import os
import signal
import ssl
from abc import ABC, abstractmethod
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, ClassVar

import httpx

from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.files.artifacts import lock
from headwater.lab.files.cache import write_atomically
from headwater.lab.files.ivy import pyspark_jar, pyspark_jars
from headwater.lab.java import find_java
from headwater.lab.ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import psutil

    from headwater.lab.files.artifacts import Artifact
    from headwater.lab.files.cache import Cache
    from headwater.lab.home import Home
    from headwater.lab.java import Java
    from headwater.lab.process import Command

PROBE_SECONDS = 5.0
# Probes are plain HTTP. Without a context of its own, every probe would first read the authorities of
# the world: 20 ms of CPU, several times a second while a lab starts.
_PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
LAUNCHERS = resources.files("headwater.lab") / "launchers"

# The lab's services are small and many: a quick start and little memory matter, peak speed does not.
JVM_FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xss512k",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
)


class LabContext:
    """A lab's home, cache and Java, as its services see them."""

    def __init__(self, home: Home, cache: Cache) -> None:
        self.home = home
        self.cache = cache
        self.server_more = process.Command([])
        """Further arguments and variables of the lineage server, while a story starts it with them."""

    @cached_property
    def java(self) -> Java:
        return find_java()

    def port(self, name: str) -> int:
        return self.home.port(name)

    def url(self, name: str, path: str = "") -> str:
        return f"http://{LOOPBACK}:{self.port(name)}{path}"

    def write(self, name: str, lines: Mapping[str, object] | Iterable[str]) -> Path:
        """Write a configuration file that only its owner can read."""
        if hasattr(lines, "items"):
            lines = [f"{key}={_escaped(str(value))}" for key, value in lines.items()]
        path = self.home.conf(name)
        write_atomically(path, ("\n".join(lines) + "\n").encode(), 0o600)
        return path

    def jars(self, need: str) -> list[Path]:
        return [self.cache.path(artifact) for artifact in lock().bundle(need)]

    def run_java(
        self,
        service: str,
        *arguments: str,
        classpath: Iterable[Path],
        heap: int,
        flags: Iterable[str] = (),
    ) -> list[str]:
        """A JVM's command line; the long part goes to a file, so that `ps` stays readable."""
        options = [
            *JVM_FLAGS,
            f"-Xmx{heap}m",
            f"-Djava.io.tmpdir={self.home.root / 'tmp'}",
            f"-XX:ErrorFile={self.home.logs / (service + '-crash.log')}",
            *flags,
            "-cp",
            os.pathsep.join(map(str, classpath)),
        ]
        path = self.write(f"{service}.args", [_quoted(option) for option in options])
        return [str(self.java.executable), f"@{path}", *arguments]

    def run_source(
        self,
        service: str,
        source: str,
        *arguments: str,
        classpath: Iterable[Path],
        heap: int,
        flags: Iterable[str] = (),
    ) -> list[str]:
        """A JVM that compiles one small class with the compiler inside PySpark and runs it."""
        path = self.home.conf(source)
        write_atomically(path, (LAUNCHERS / source).read_bytes())
        compiler = [pyspark_jar("janino"), pyspark_jar("commons-compiler")]
        main = ["org.codehaus.janino.SimpleCompiler", str(path), path.stem]
        return self.run_java(
            service,
            *main,
            *arguments,
            classpath=[*compiler, *classpath],
            heap=heap,
            flags=flags,
        )

    def run(self, service: str, argv: Sequence[str]) -> None:
        """Run a tool that makes a service's storage."""
        done = process.run(argv, home=self.home.root, cwd=self.home.data(service))
        if done.returncode:
            output = (done.stderr or done.stdout).strip()
            raise HeadwaterError(f"the storage of {service} could not be made: {output}")

    def pyspark_classpath(self) -> list[Path]:
        return [pyspark_jars() / "*"]


class Service(ABC):
    """One real component: how it is prepared, started, probed and used."""

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[bool] = False
    stop_signal: ClassVar[int] = signal.SIGTERM
    stop_seconds: ClassVar[float] = 6.0
    bundles: ClassVar[tuple[str, ...]] = ()
    """Names of what it needs from the lock besides its own."""
    ports: ClassVar[tuple[str, ...]] = ()
    """Names of the ports it binds, the one clients use first; by default its own name."""

    def port_names(self) -> tuple[str, ...]:
        return self.ports or (self.name,)

    @abstractmethod
    def version(self) -> str:
        """The version of the component itself."""

    def prepare(self, lab: LabContext) -> None:  # noqa: B027
        """Write configuration and make storage; done before every start, so it must be repeatable."""

    @abstractmethod
    def command(self, lab: LabContext) -> Command:
        """How it is started."""

    @abstractmethod
    def ready(self, lab: LabContext) -> bool:
        """A real call that a client would make; an error counts as not ready."""

    def started(self, lab: LabContext) -> None:  # noqa: B027
        """What must be there before others use it; done once it is ready."""

    def remains(self, home: Home) -> list[psutil.Process]:
        """Processes without the lab's mark that a killed server may leave behind."""
        return []

    def page(self, lab: LabContext) -> str | None:
        """Where a person watches it, if it has such a page."""
        return None

    @abstractmethod
    def env(self, lab: LabContext) -> dict[str, str]:
        """What a client needs."""


def answers(
    url: str, auth: httpx.Auth | None = None, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """GET from a service on this machine, whatever proxy the environment names."""
    return httpx.get(
        url, timeout=PROBE_SECONDS, trust_env=False, verify=_PLAIN, auth=auth, headers=headers
    )


def version_of(name: str) -> str:
    return lock().version_of(name)


def only(artifacts: list[Artifact]) -> Artifact:
    (artifact,) = artifacts
    return artifact


def _escaped(value: str) -> str:
    """A value for a properties file, which Java reads as Latin-1 with the escapes of JSON."""
    return json.dumps(value)[1:-1]


def _quoted(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
