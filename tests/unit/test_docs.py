"""The docs say what the code says: generated parts, links, and commands that the program takes.

The labs are followed to the letter by `tests/integration/demo/test_tutorials.py`.
"""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer
from scripts import docs, site

from tests.command_lines import parse

ROOT = Path(__file__).parents[2]
PAGES = {path.relative_to(ROOT).as_posix(): path for path in site.sources().values() if path.suffix == ".md"}  # fmt: skip
BLOCK = re.compile(
    r"^( *)```(console|sh|bash|python)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL
)
ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", ")"}


def blocks(page: str, *kinds: str) -> list[str]:
    return [dedent(m[3]) for m in BLOCK.finditer(PAGES[page].read_text()) if m[2] in kinds]


def calls(page: str, program: str) -> list[list[str]]:
    """What a page calls a program with: in `console` blocks the lines with a prompt, in others all."""
    found = []
    for text in blocks(page, "console", "sh", "bash"):
        lines = re.sub(r"\\\n", " ", text).splitlines()
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for line in lines:
            starts = re.finditer(rf"(?:^|[\s(;&|]){program} ", line)
            found += [words(line[start.end() :]) for start in starts]
    return found


def words(rest: str) -> list[str]:
    """Up to where the shell goes on with something else."""
    lexer = shlex.shlex(rest.partition('")')[0], posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    found: list[str] = []
    try:
        for word in lexer:
            if word in ENDS:
                break
            found.append(word)
    except ValueError:  # a quotation that goes on in the next line
        found.append("…")
    return found


def taken(line: list[str]) -> str:
    """What the program says against a command line."""
    try:
        parse(line)
    except typer.Exit:  # --version, --help
        return ""
    except Exception as error:  # noqa: BLE001
        return "" if type(error).__name__ == "NoArgsIsHelpError" else str(error)
    return ""


def test_generated_parts_are_up_to_date() -> None:
    assert list(docs.outdated()) == [], "run make docs"


def test_links_between_pages_lead_somewhere() -> None:
    assert site.gathered()[1] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_program_takes_every_command_of_a_page(page: str) -> None:
    problems = {" ".join(line): said for line in calls(page, "headwater") if (said := taken(line))}
    assert problems == {}


@pytest.mark.parametrize("page", PAGES)
def test_make_has_every_target_of_a_page(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {
        word for line in calls(page, "make") for word in line if re.fullmatch(r"[a-z-]+", word)
    }
    assert asked <= targets


@pytest.mark.parametrize("page", PAGES)
def test_programs_on_a_page_are_python(page: str) -> None:
    for text in blocks(page, "python"):
        ast.parse(text)


def test_wrong_commands_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '```console\n$ headwater server --stor x.db   # a slip\n$ eval "$(headwater lab envs)" && headwater trace \\\n    a.b --json | less\n```\n'
    )
    monkeypatch.setitem(PAGES, "page", page)
    found: Any = calls("page", "headwater")
    assert found == [["server", "--stor", "x.db"], ["lab", "envs"], ["trace", "a.b", "--json"]]
    assert [bool(taken(line)) for line in found] == [True, True, False]
