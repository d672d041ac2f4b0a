"""What an attacker needs: raw connections, and how much a server has spent."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.integration.server.conftest import Process

MB = 1024 * 1024


class Attacked(Protocol):
    """A server in a process of its own."""

    @property
    def port(self) -> int: ...
    @property
    def process(self) -> Any: ...


def first_quick(values: Iterable[Any]) -> list[Any]:
    """The cases of a test, of which the first alone is in the quick run."""
    first, *others = values
    return [first, *(pytest.param(other, marks=pytest.mark.full) for other in others)]


class Cost:
    """The memory that a server takes at most, and its CPU, within a block."""

    def __init__(self, server: Attacked) -> None:
        self._process = psutil.Process(server.process.pid)
        self._before = self._process.memory_info().rss
        self._cpu = self._used()
        self.megabytes = 0.0
        self.seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _used(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            grown = (self._process.memory_info().rss - self._before) / MB
            self.megabytes = max(self.megabytes, grown)

    def __enter__(self) -> Cost:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.seconds = self._used() - self._cpu


@contextlib.contextmanager
def connected(server: Attacked, sent: bytes = b"") -> Iterator[socket.socket]:
    """A connection on which something was sent, as far as the server took it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(sent)
        yield connection


def answer(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection, or its first part."""
    found = b""
    with contextlib.suppress(OSError):
        while part := connection.recv(65_536):
            found += part
            if b"\r\n\r\n" in found:
                break
    return found


def ended(connection: socket.socket, seconds: float) -> bool:
    """Whether the server closes a connection in time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(server: Process) -> bool:
    """Whether the server says that it is well."""
    return httpx.get(f"{server.url}/api/v2/health", timeout=60).status_code == 200
