"""Somebody who types what a page says: each command is run, and what the page shows of its answer compared."""

from __future__ import annotations

import io
import os
import re
import shlex
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

import httpx

from headwater.cli.main import _run
from tests.forked import ForkedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

BLOCK = re.compile(r"^( *)```(console|sh|bash)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
HEADWATER = str(Path(sys.executable).with_name("headwater"))
SECONDS = 60.0
# What depends on the moment at which the page is read.
PASSING = re.compile(r"\d+ days|(?<=\"chain\": \")[0-9a-f]{64}")


class Line(NamedTuple):
    """A command of a page, and what the page shows of its answer."""

    command: str
    answer: str = ""


def lines(text: str) -> list[Line]:
    """The commands of a page: after a prompt, or where there is none, every line of the block."""
    found: list[Line] = []
    for block in BLOCK.finditer(text):
        body = re.sub(r"\\\n\s*", "", dedent(block[3]))
        if not re.search(r"^\$ ", body, re.MULTILINE):
            found += [Line(bare(one)) for one in body.splitlines() if one]
            continue
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, _, answer = part.partition("\n")
            while answer and bare(command).count("'") % 2:  # a text of several lines
                more, _, answer = answer.partition("\n")
                command += f"\n{more}"
            found.append(Line(bare(command), answer.rstrip("\n")))
    return found


def bare(command: str) -> str:
    """Without the remark behind it."""
    return re.sub(r"\s+# .*$", "", command).strip()


class Terminal(io.StringIO):
    """A person who says yes."""

    def __init__(self) -> None:
        super().__init__("y\n" * 10)

    def isatty(self) -> bool:
        return True


class Reader:
    """A shell of its own, in an empty folder; commands of ours run in this process, which is a tenth of the CPU."""

    def __init__(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        capture: pytest.CaptureFixture[str],
        replaced: dict[str, str],
    ) -> None:
        self.folder = folder
        self.replaced = replaced
        self.code = 0
        self._patch = patch
        self._capture = capture
        self._server: ForkedServer | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        for place in ("127.0.0.1:5000", "localhost:5000", "127.0.0.1:PORT"):
            replaced[place] = f"127.0.0.1:{self._port}"
        patch.chdir(folder)
        for name in os.environ:
            if name.startswith(("HEADWATER_", "OPENLINEAGE_", "CONNECT_", "KAFKA_")):
                patch.delenv(name)
        patch.setenv("HOME", str(folder))
        for name in ("DATA", "STATE", "CONFIG", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        patch.setenv("COLUMNS", "200")

    def close(self) -> None:
        """End the server."""
        if self._server:
            self._server.terminate()
            self._server.wait()
            self._server = None

    def serve(self, *options: str) -> str:
        """Start a server in the place of the one before; returns its address once it answers."""
        self.close()
        log = self.folder / "server.log"
        server = ForkedServer([*options, "--port", str(self._port)], log, dict(os.environ))
        self._server = server
        url = f"http://127.0.0.1:{self._port}"

        def answers() -> bool:
            assert server.poll() is None, log.read_text()
            try:
                return httpx.get(f"{url}/api/v2/health", trust_env=False).status_code < 500
            except httpx.HTTPError:
                return False

        wait(answers)
        return url

    def say(self, command: str) -> str:
        """Run a command of a page; returns what it prints."""
        for one, other in self.replaced.items():
            command = command.replace(one, other)
        program, _, rest = command.partition(" ")
        if command == "echo $?":
            said, self.code = str(self.code), 0
            return said
        if program == "export":
            for word in shlex.split(rest):
                self._patch.setenv(*word.split("=", 1))
            return ""
        if program == "sqlite3":  # not every machine has the program
            file, statement = shlex.split(rest)
            with sqlite3.connect(file) as database:
                database.execute(statement)
            return ""
        if program != "headwater":
            return self._elsewhere(command)
        rest, _, file = rest.partition(" | tee ")
        said = self._ours(shlex.split(rest))
        if file:
            Path(file).write_text(said)
        return said

    def _ours(self, words: list[str]) -> str:
        if words[0] == "server":
            self.serve(*(word for word in words[1:] if word != "&"))
            return ""
        if words[:2] == ["connect", "watch"]:
            return self._watch(words)
        if words == ["mcp"]:  # reads until its standard input ends
            return self._elsewhere(f"{HEADWATER} mcp </dev/null")
        self._patch.setattr("sys.stdin", Terminal())
        self._capture.readouterr()
        self.code = _run(words, debug=False)
        out, err = self._capture.readouterr()
        return (out + err).rstrip("\n")

    def _watch(self, words: list[str]) -> str:
        """Until it has told of a connector's start, on the console or to the server."""
        log = self.folder / "watch.log"
        with log.open("wb") as file:
            process = subprocess.Popen([HEADWATER, *words], stdout=file, stderr=subprocess.STDOUT)
        try:
            url = os.environ.get("OPENLINEAGE_URL")

            def told() -> bool:
                assert process.poll() is None, log.read_text()
                if not url:
                    return '"eventType":"START"' in log.read_text().replace(": ", ":")
                found = httpx.get(f"{url}/api/v1/namespaces/shop/jobs", trust_env=False)
                return bool(found.json().get("jobs"))

            wait(told, log)
        finally:
            process.terminate()
            self.code = process.wait(30)
        return ""

    def _elsewhere(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=SECONDS
        )
        self.code = done.returncode
        return done.stdout.rstrip("\n")


def wait(holds: Callable[[], bool], log: Path | None = None) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, log.read_text() if log else "it took too long"
        time.sleep(0.05)


def alike(shown: str, said: str) -> bool:
    """Whether the page shows what was said; spaces at the ends of lines do not count."""
    one, other = (
        [PASSING.sub("…", line.rstrip()) for line in text.splitlines()] for text in (shown, said)
    )
    return one == other
