from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROGRAM = (
    "import typer; from headwater.cli.server import register; app = typer.Typer();"
    " register(app); app()"
)


class Process:
    """`headwater server` as a process of its own."""

    def __init__(self, store: str, log: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = store
        self._log = log
        self._options = options
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", PROGRAM, "server", "--port", str(self.port)]
        environment = {k: v for k, v in os.environ.items() if k != "HEADWATER_TOKEN"}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--store", self.store, *self._options],
                stdout=log,
                stderr=log,
                env=environment,
            )
        deadline = time.monotonic() + 30
        while not self._ready():
            assert self.process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.05)

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/api/v2/health").status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(20)


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(store: str | None = None, *options: str) -> Process:
        url = store or f"sqlite:///{tmp_path}/headwater.db"
        started.append(Process(url, tmp_path / f"server{len(started)}.log", *options))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()
