"""A tutorial's page as a program: its commands in order, and what they must print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from headwater.lab.files.cache import Cache

FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
STEP_SECONDS = 240.0
AGAIN_SECONDS = 120.0


class Step(NamedTuple):
    """Commands, the lines they must print, and whether a reader may have to look twice."""

    commands: str
    expected: list[str]
    again: bool


def steps(page: Path) -> list[Step]:
    """The page's `sh` blocks, each with the `text` block that follows it."""
    found: list[Step] = []
    for block in FENCE.finditer(page.read_text()):
        kind, _, how = block["kind"].partition(" ")
        if kind == "sh":
            found.append(Step(block["text"], [], how == "again"))
        elif kind == "text":
            found[-1].expected.extend(line for line in block["text"].splitlines() if line.strip())
    return found


def pattern(line: str) -> re.Pattern[str]:
    """What a line of the page stands for: spaces do not count, an ellipsis is anything."""
    parts = ["".join(map(re.escape, part.split())) for part in line.split("…")]
    return re.compile(".*".join(parts))


def missing(expected: list[str], output: str) -> list[str]:
    """The expected lines that no line of the output, after the one before, holds."""
    lines = ["".join(line.split()) for line in output.splitlines()]
    at, absent = 0, []
    for line in expected:
        wanted = pattern(line)
        place = next((n for n in range(at, len(lines)) if wanted.search(lines[n])), None)
        if place is None:
            absent.append(line)
        else:
            at = place
    return absent


class Shell:
    """One bash for the whole page, as a reader has."""

    def __init__(self, home: Path) -> None:
        keep = {k: v for k, v in os.environ.items() if not k.startswith("HEADWATER_")}
        env = {
            **keep,
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HEADWATER_CACHE": str(Cache().root),
            "CI": "true",
        }
        self.out = home / "output"
        self._process = subprocess.Popen(
            ["bash", "--norc", "-u"],
            cwd=home,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._count = 0

    def run(self, commands: str) -> tuple[int, str]:
        """Run commands to their end; the exit code of one that failed, and what they print."""
        self._count += 1
        done = self.out.with_suffix(f".{self._count}.code")
        text = self.out.with_suffix(f".{self._count}")
        assert self._process.stdin is not None
        self._process.stdin.write(
            # A command that fails is remembered, and does not end the reader's shell.
            f"failed=0; trap 'failed=$?' ERR\n{{\n{commands}\n}} </dev/null >'{text}' 2>&1\n"
            f"trap - ERR; echo $failed >'{done}.part'; mv '{done}.part' '{done}'\n"
        )
        self._process.stdin.flush()
        deadline = time.monotonic() + STEP_SECONDS
        while not done.exists():
            ended = self._process.poll() is not None
            said = text.read_text() if text.exists() else ""
            assert not ended, f"{commands}\nended the shell:\n{said[-3000:]}"
            assert time.monotonic() < deadline, f"{commands}\ntook too long:\n{said[-3000:]}"
            time.sleep(0.1)
        return int(done.read_text()), text.read_text()

    def close(self) -> None:
        """End the shell."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait(10)


def follow(page: Path, home: Path) -> int:
    """Do what the page says, and see what it says; returns how many commands there were."""
    shell = Shell(home)
    try:
        found = steps(page)
        for step in found:
            deadline = time.monotonic() + AGAIN_SECONDS
            while True:
                code, output = shell.run(step.commands)
                absent = missing(step.expected, output)
                if code == 0 and not absent:
                    break
                again = step.again and time.monotonic() < deadline
                assert again, f"{step.commands}\nexit code {code}, not seen: {absent}\n{output}"
                time.sleep(1)
    finally:
        shell.close()
    return len(found)
