"""A program in a pseudo terminal, and what a person sees of it in the end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

ROWS, COLUMNS = 24, 80
TOKEN = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


def watched(program: str, columns: int = COLUMNS) -> tuple[int, list[str]]:
    """Run Python code on a terminal; its exit code, and every line that stands there after."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while block := os.read(ours, 1 << 16):
            said += block
    except OSError:  # the program has ended, and its terminal with it
        pass
    os.close(ours)
    return process.wait(), lines_of(said.decode(), columns)


def lines_of(said: str, columns: int) -> list[str]:
    """The lines that a terminal shows, those that scrolled away too."""
    lines, row, column = [""], 0, 0
    for keys, command, motion, text in TOKEN.findall(said):
        if command == "A":
            row = max(0, row - int(keys or 1))
        elif command == "K":
            lines[row] = "" if keys == "2" else lines[row][:column]
        elif motion == "\r":
            column = 0
        elif motion == "\n":
            row += 1
        for character in text:
            if column == columns:
                row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
            lines[row] = lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
            column += 1
        lines += [""] * (row + 1 - len(lines))
    return [line.rstrip() for line in lines]
