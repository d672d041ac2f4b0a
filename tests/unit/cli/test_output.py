"""Texts from outside in what a command prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import headwater.cli
from headwater.cli.connect.tables import print_status
from headwater.cli.output import escape, out, print_error, print_json, print_wide, table_of
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    import pytest

RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
HOSTILE = "a\x1b[2J\x9b\r\u202e\nforged [bold]b[/] :key: \\"
SHOWN = "a\\x1b[2J\\x9b\\r\\u202e\\nforged [bold]b[/] :key: \\"


def test_a_foreign_text_is_shown_in_one_line_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    out.print(
        f"[red]{escape(HOSTILE)}[/] {escape('[link=http://x')} {escape('y]')}", soft_wrap=True
    )
    assert capsys.readouterr().out == f"{SHOWN} [link=http://x y]\n"
    table = table_of("name")
    table.add_row(escape(HOSTILE))
    print_wide(table)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == ["name", SHOWN]


def test_what_nobody_escaped_steers_nothing_either(capsys: pytest.CaptureFixture[str]) -> None:
    out.print("a\x1b]52;c;x\x07b\x9b2J\u202e", markup=False)
    assert capsys.readouterr().out == "a\\x1b]52;c;xb\\x9b2J\\u202e\n"


def test_json_is_the_same_value_without_raw_controls(capsys: pytest.CaptureFixture[str]) -> None:
    value = {HOSTILE: "\x7f\U000e0041"}
    print_json(value)
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert not RAW.search(printed)


def test_further_lines_of_an_error_or_a_trace_are_indented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_error(HeadwaterError("a\nforged", hint="b\nforged"))
    part = {"state": "FAILED", "worker_id": "w[/]\x1b", "version": "1", "trace": "x\nforged\x1b"}
    print_status([("sink\nforged", {**part, "tasks": []})])
    said = capsys.readouterr()
    assert said.err == "error: a\n    forged\nhint: b\\nforged\n"
    assert not RAW.search(said.out)
    assert "w[/]\\x1b" in said.out
    assert not [line for line in said.out.splitlines() if line.startswith("forged")]


def test_every_command_escapes_by_the_one_function() -> None:
    folder = Path(headwater.cli.__file__).parent
    taken = [path.name for path in folder.rglob("*.py") if "rich.markup" in path.read_text("utf-8")]
    assert taken == []
