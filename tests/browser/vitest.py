"""Runs the page's own tests, written in TypeScript, and reports each of them to pytest."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
BUILT = ROOT / "src" / "headwater" / "server" / "page" / "index.html"
SOURCES = ("src", "public", "index.html", "vite.config.ts", "package-lock.json")
TITLE = re.compile(r"""^ *test(?:\.each\(.*?\))?\(\s*(["'`])(.+?)\1,""", re.MULTILINE | re.DOTALL)
HOLES = {"%s": ".+", "%i": r"\d+", "%f": r"[\d.]+"}


class Case(NamedTuple):
    """One test of a file; with `each` it stands for several runs."""

    file: str
    title: str

    def fits(self, title: str) -> bool:
        """Whether a result is one of this test's runs."""
        parts = re.split(r"(%[sif])", self.title)
        return bool(re.fullmatch("".join(HOLES.get(p) or re.escape(p) for p in parts), title))


def cases(pattern: str) -> list[Case]:
    """The tests of the files that fit a pattern below `web/`."""
    return [
        Case(path.relative_to(WEB).as_posix(), found[2])
        for path in sorted(WEB.glob(pattern))
        for found in TITLE.finditer(path.read_text())
    ]


def _newest(*names: str) -> float:
    paths = [p for name in names for p in ((WEB / name), *(WEB / name).rglob("*"))]
    return max(path.stat().st_mtime for path in paths if path.is_file())


@cache
def ready() -> str:
    """Node, with what the page needs installed and the page built from what is there now."""
    node = shutil.which("node")
    if node is None:
        pytest.fail("the page's tests need Node 20 or newer: install it, then `make setup`")
    if not (WEB / "node_modules" / "vitest").is_dir():
        pytest.fail("the page's packages are not installed: npm ci --prefix web")
    if not BUILT.is_file() or BUILT.stat().st_mtime < _newest(*SOURCES):
        command = [node, "node_modules/vite/bin/vite.js", "build"]
        done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return node


@cache
def results(config: str, *words: str, full: bool = False) -> list[dict[str, Any]]:
    """Every result of one run of vitest."""
    node = ready()
    environment = {**os.environ, "HEADWATER_PYTHON": sys.executable, "CI": "1"}
    if full:
        environment["HEADWATER_FULL"] = "1"
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [node, "node_modules/vitest/vitest.mjs", "run", "--config", config, *words]
        command += ["--reporter=json", f"--outputFile={report}"]
        done = subprocess.run(
            command, cwd=WEB, env=environment, capture_output=True, text=True, check=False
        )
        assert report.is_file(), done.stdout + done.stderr
        files = json.loads(report.read_text())["testResults"]
    found = []
    for file in files:
        path = Path(file["name"]).relative_to(WEB).as_posix()
        # What was skipped says nothing itself: a hook of its file failed.
        runs = [
            {
                **one,
                "file": path,
                "failureMessages": one.get("failureMessages") or [file["message"]],
            }
            for one in file["assertionResults"]
        ]
        found += runs or [{"file": path, "title": "", "status": "failed", "failureMessages": [file["message"]]}]  # fmt: skip
    return found


def check(case: Case, found: list[dict[str, Any]]) -> None:
    """Fail with what vitest says, if any run of this test failed or none took place."""
    mine = [one for one in found if one["file"] == case.file and case.fits(one["title"])]
    broken = [one for one in found if one["file"] == case.file and not one["title"]]
    assert mine or broken, f"{case.file}: no result of {case.title!r}"
    bad = [one for one in (*mine, *broken) if one["status"] != "passed"]
    said = "\n\n".join(
        f"{one.get('fullName', case.file)}\n" + "\n".join(one.get("failureMessages") or ())
        for one in bad
    )
    assert not bad, said
