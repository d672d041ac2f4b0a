"""Servers that start with a tenth of the CPU: forked from a process that has imported what they need.

Importing a server takes a second of CPU, and the tests start several hundred of them. Each is a process
of its own all the same, with its own command line, and can be killed like any other.
`tests/integration/server/test_command.py` starts the command itself.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["ForkedServer"]


class ForkedServer:
    """`headwater server`, with what tests use of `subprocess.Popen`."""

    def __init__(self, options: list[str], log: Path, environment: dict[str, str]) -> None:
        call = {"options": options, "log": str(log), "environment": environment}
        self.pid: int = _parent().ask({**call, "folder": str(Path.cwd())})
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = _parent().ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float = 60) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"server {self.pid}", timeout)
            time.sleep(0.02)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Parent:
    """The process that forks, and the way to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        # One connection and no threads: only the thread that forks lives on in a child.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._socket = ours
        self._lines = ours.makefile("r", encoding="utf-8")
        atexit.register(self.close)

    def ask(self, call: dict[str, Any]) -> Any:
        self._socket.sendall(json.dumps(call).encode() + b"\n")
        answer = self._lines.readline()
        assert answer, "the process that forks servers has ended"
        return json.loads(answer)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()
        self._process.wait(10)


@cache
def _parent() -> _Parent:
    return _Parent()


def _fork_on_demand(connection: socket.socket) -> dict[str, Any] | None:
    """Answer calls until the connection ends; in a child, what it is to run."""
    lines = connection.makefile("r", encoding="utf-8")
    while line := lines.readline():
        call = json.loads(line)
        if "poll" in call:
            pid, status = os.waitpid(call["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                lines.close()
                connection.close()
                return dict(call)
        connection.sendall(json.dumps(answer).encode() + b"\n")
    return None


def _become(call: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(call["environment"])
    os.chdir(call["folder"])
    log = os.open(call["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def main() -> None:
    import typer

    from headwater.cli.server import register

    app = typer.Typer()
    register(app)
    # Parses every option's type once for all children.
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(None):
        app(["server", "--help"])
    call = _fork_on_demand(socket.socket(fileno=int(sys.argv[1])))
    if call is not None:
        _become(call)
        app(["server", *call["options"]])


if __name__ == "__main__":
    main()
