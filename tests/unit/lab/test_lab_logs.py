"""The end of a log, and following it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from headwater.lab import logs
from headwater.lab.logs import follow, tail

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "kafka.log"
    path.write_text("".join(f"line {n}\n" for n in range(1000)))
    return path


def test_the_last_lines(log: Path) -> None:
    assert tail(log, 2) == ["line 998", "line 999"]
    assert len(tail(log, 5000)) == 1000
    assert len(tail(log)) == logs.TAIL_LINES


def test_long_lines_are_not_fewer_lines(log: Path) -> None:
    log.write_text("".join(f"{n} {'x' * 5000}\n" for n in range(100)))
    assert [line.split()[0] for line in tail(log, 60)] == [str(n) for n in range(40, 100)]


def test_no_log_has_no_lines(tmp_path: Path) -> None:
    assert tail(tmp_path / "none.log") == []


def test_bytes_that_are_no_text_do_not_stop_the_reading(log: Path) -> None:
    log.write_bytes(b"\xff\xfe\nfine\n")
    assert tail(log)[-1] == "fine"


def test_following_goes_on_where_the_end_was(log: Path) -> None:
    lines = follow(log, 1)
    assert next(lines) == "line 999\n"
    with log.open("a") as file:
        file.write("new\n")
    assert next(lines) == "new\n"


def test_following_goes_over_to_a_log_begun_anew(log: Path) -> None:
    lines = follow(log, 1)
    assert next(lines) == "line 999\n"
    with log.open("a") as file:
        file.write("last\n")
    log.replace(log.with_suffix(".log.1"))
    log.write_text("first\nsecond\n")
    assert list(islice(lines, 3)) == ["last\n", "first\n", "second\n"]
