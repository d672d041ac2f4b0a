"""The tutorials, followed to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.lab import process
from headwater.lab.lab import Lab

from .tutorial import Shell, follow, missing, steps

if TYPE_CHECKING:
    from collections.abc import Iterator

LABS = Path(__file__).parents[3] / "docs" / "labs"
PAGES = {"connect": "1-connect.md", "end-to-end": "2-end-to-end.md"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A reader's home folder; what a page leaves running is ended."""
    yield tmp_path
    for name in PAGES:
        lab = Lab(tmp_path / "headwater-labs" / name / "lab")
        if lab.home.root.exists():
            lab.reset()


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PAGES)
def test_a_newcomer_can_follow_it(name: str, home: Path) -> None:
    assert follow(LABS / PAGES[name], home) >= 10
    left = process.find(home / "headwater-labs" / name / "lab")
    assert left == {}


def test_every_page_is_followed() -> None:
    assert {page.name for page in LABS.glob("*.md")} == set(PAGES.values())
    for page in PAGES.values():
        found = steps(LABS / page)
        assert sum(len(step.expected) for step in found) >= 10
        assert all(step.expected for step in found if step.again)


def test_what_a_page_expects_is_looked_for(tmp_path: Path) -> None:
    said = "job      state\nsource   RUNNING   postgres shop\n         and more\n"
    assert missing(["source RUNNING …shop", "and more"], said) == []
    assert missing(["source FAILED"], said) == ["source FAILED"]
    assert missing(["and more", "source RUNNING"], said) == ["source RUNNING"]
    shell = Shell(tmp_path)
    try:
        assert shell.run("a=1; echo said") == (0, "said\n")
        assert shell.run("false; echo on") == (1, "on\n")
        assert shell.run('echo "kept $a"') == (0, "kept 1\n")
    finally:
        shell.close()
