"""The page's tests as tests of ours: its parts in a document, and all of it in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from . import vitest

if TYPE_CHECKING:
    from .vitest import Case

PARTS = vitest.cases("src/**/*.test.ts*")
BROWSER = vitest.cases("browser/*.test.ts")
# The projects of vitest.browser.config.ts: what is held to a time, and all other pages.
SCALE = "browser/scale.test.ts"
TIMED_FILES = (SCALE, "browser/responsive.test.ts")
PAGES = [case for case in BROWSER if case.file not in TIMED_FILES]
TIMED = [case for case in BROWSER if case.file in TIMED_FILES]


def results(project: str, *files: str) -> list[dict[str, Any]]:
    return vitest.results("vitest.browser.config.ts", f"--project={project}", *files)


def name(case: Case) -> str:
    return f"{case.file.rpartition('/')[2].split('.')[0]}: {case.title}"


@pytest.mark.parametrize("case", PARTS, ids=name)
def test_part(case: Case) -> None:
    vitest.check(case, vitest.results("vitest.config.ts"))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", PAGES, ids=name)
def test_browser(case: Case) -> None:
    vitest.check(case, results("pages"))


@pytest.mark.timed
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.full if case.file == SCALE else (), id=name(case))
        for case in TIMED
    ],
)
def test_browser_in_time(case: Case) -> None:
    vitest.check(case, results("timed", case.file))


@pytest.mark.full
@pytest.mark.timed
@pytest.mark.timeout(900)
def test_responsive_for_a_minute() -> None:
    (case,) = [case for case in BROWSER if case.file == "browser/responsive.test.ts"]
    words = ("browser/responsive.test.ts",)
    found = vitest.results("vitest.browser.config.ts", *words, full=True)
    vitest.check(case, found)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["hostile", "pages"])
def test_every_hostile_name_and_every_page_in_the_dark(name: str) -> None:
    file = f"browser/{name}.test.ts"
    found = vitest.results("vitest.browser.config.ts", file, full=True)
    for case in BROWSER:
        if case.file == file:
            vitest.check(case, found)


def unseen(found: list[dict[str, Any]], known: list[Case]) -> list[str]:
    """Results that no case stands for: a title that `vitest.cases` does not find."""
    return [
        f"{one['file']}: {one['title']}"
        for one in found
        if not any(c.file == one["file"] and c.fits(one["title"]) for c in known)
    ]


def test_every_test_is_seen() -> None:
    assert unseen(vitest.results("vitest.config.ts"), PARTS) == []
    assert unseen(results("pages"), PAGES) == []


@pytest.mark.full
@pytest.mark.timed
def test_every_test_that_is_held_to_a_time_is_seen() -> None:
    for file in TIMED_FILES:
        assert unseen(results("timed", file), TIMED) == []
