"""The ends of the services' logs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAIL_LINES = 15
BLOCK = 64 << 10
POLL_SECONDS = 0.2


def tail(log: Path, lines: int = TAIL_LINES) -> list[str]:
    """The last lines of a log; none when there is no log yet."""
    if not log.is_file():
        return []
    with log.open("rb") as file:
        return _end(file, lines)


def follow(log: Path, lines: int) -> Iterator[str]:
    """The last lines, then what is added, also after the log was truncated or replaced."""
    file = log.open("rb")
    try:
        yield from (f"{line}\n" for line in _end(file, lines))
        while True:
            if line := file.readline():
                yield line.decode(errors="replace")
            elif _is_at(log, file):
                time.sleep(POLL_SECONDS)
            else:
                file.close()
                file = log.open("rb")
    finally:
        file.close()


def _end(file: BinaryIO, lines: int) -> list[str]:
    start = size = file.seek(0, os.SEEK_END)
    text = b""
    while start and text.count(b"\n") <= lines:
        start = max(0, start - BLOCK)
        file.seek(start)
        text = file.read(size - start)
    return text.decode(errors="replace").splitlines()[-lines:]


def _is_at(log: Path, file: BinaryIO) -> bool:
    """Whether the open file is still what lies at the path, and was not cut."""
    try:
        there = log.stat()
    except FileNotFoundError:
        return True  # between an old log and a new one
    return there.st_ino == os.fstat(file.fileno()).st_ino and there.st_size >= file.tell()
