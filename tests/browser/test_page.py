"""The page's tests as tests of ours: its parts in a document, and all of it in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import vitest

if TYPE_CHECKING:
    from .vitest import Case

PARTS = vitest.cases("src/**/*.test.ts*")
BROWSER = vitest.cases("browser/*.test.ts")


def name(case: Case) -> str:
    return f"{case.file.rpartition('/')[2].split('.')[0]}: {case.title}"


@pytest.mark.parametrize("case", PARTS, ids=name)
def test_part(case: Case) -> None:
    vitest.check(case, vitest.results("vitest.config.ts"))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", BROWSER, ids=name)
def test_browser(case: Case) -> None:
    vitest.check(case, vitest.results("vitest.browser.config.ts"))


@pytest.mark.full
@pytest.mark.timeout(900)
def test_responsive_for_a_minute() -> None:
    (case,) = [case for case in BROWSER if case.file == "browser/responsive.test.ts"]
    words = ("browser/responsive.test.ts",)
    found = vitest.results("vitest.browser.config.ts", *words, full=True)
    vitest.check(case, found)


def test_every_test_is_seen() -> None:
    found = vitest.results("vitest.config.ts") + vitest.results("vitest.browser.config.ts")
    known = [*PARTS, *BROWSER]
    unseen = [
        f"{one['file']}: {one['title']}"
        for one in found
        if not any(c.file == one["file"] and c.fits(one["title"]) for c in known)
    ]
    assert unseen == []
