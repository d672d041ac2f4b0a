"""The ends of the services' logs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAIL_LINES = 15
BLOCK = 64 << 10
POLL_SECONDS = 0.2


def tail(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log; none when there is no log yet."""
    return _end(log, lines)[0] if log.is_file() else []


def follow(log: Path, lines: int) -> Iterator[str]:
    """The last lines, then what is added, also after the log was begun anew."""
    found, at = _end(log, lines)
    yield from (f"{line}\n" for line in found)
    while True:
        with log.open("rb") as file:
            file.seek(at)
            while (line := file.readline()) or _is_at(log, file.fileno()):
                if line:
                    yield line.decode(errors="replace")
                else:
                    time.sleep(POLL_SECONDS)
        at = 0


def _end(log: Path, lines: int) -> tuple[list[str], int]:
    with log.open("rb") as file:
        start = size = file.seek(0, 2)
        text = b""
        while start and text.count(b"\n") <= lines:
            start = max(0, start - BLOCK)
            file.seek(start)
            text = file.read(size - start)
    return text.decode(errors="replace").splitlines()[-lines:], size


def _is_at(log: Path, descriptor: int) -> bool:
    """Whether the open file is still what lies at the path, and was not cut."""
    try:
        there, opened = log.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return True  # between an old log and a new one
    return there.st_ino == opened.st_ino and there.st_size >= os.lseek(descriptor, 0, os.SEEK_CUR)
