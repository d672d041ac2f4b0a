"""A small child process that outlives a killed process and ends its runs.

It waits at the end of a pipe. When the pipe closes without a last line, it ends the runs the process
left open as ABORT, and sends what the outbox still holds.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.emit.journal import Journal

CHECK_SECONDS = 1.0
TAKE_SECONDS = 30.0
SEND_SECONDS = 60.0


class Watchdog:
    """The process's own end of the pipe."""

    def __init__(self, journal: Journal) -> None:
        console = any(d.name.startswith("console") for d in journal.destinations)
        shown = None if console else subprocess.DEVNULL
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._child = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=shown,
            stderr=shown,
            env=environment,
            start_new_session=True,
        )
        handover = {"path": str(journal.path), "config": journal.config, "parent": os.getpid()}
        self._write(json.dumps(handover))

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    def dismiss(self, empty: bool) -> None:
        """The process ends in order: nothing to do, or only to send what is left."""
        self._write("done" if empty else "send")
        if self._child.stdin:
            self._child.stdin.close()
        if empty:
            self._child.wait(5)

    def _write(self, line: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line.encode() + b"\n")
        self._child.stdin.flush()


def watch(pipe: Any, parent: int) -> str:
    """Wait for the last line of the process: `done`, `send`, or nothing when it was killed."""
    while True:
        ready, _, _ = select.select([pipe], [], [], CHECK_SECONDS)
        if ready:
            return str(pipe.readline().decode().strip())
        # A forked child of the process may hold the pipe open after it has died.
        if os.getppid() != parent:
            return ""


def main() -> None:
    """Wait beside the process that started this one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pipe = open(0, "rb", buffering=0)  # noqa: SIM115
    line = pipe.readline()
    if not line:
        return
    handover = json.loads(line)
    if watch(pipe, handover["parent"]) == "done":
        return
    from headwater.emit.journal import settle

    path, deadline = Path(handover["path"]), time.monotonic() + TAKE_SECONDS
    while path.exists() and not settle(path, handover["config"], SEND_SECONDS, "killed"):
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


if __name__ == "__main__":
    main()
