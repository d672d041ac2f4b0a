"""The checks of `make check` that are ours: unused code, and modules that import alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from scripts import imports_alone, unused

if TYPE_CHECKING:
    import pytest


def package(folder: Path, **files: str) -> list[unused.Module]:
    found = []
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.write_text(dedent(text))
        found.append(unused.Module(path, f"pack.{name}"))
    return found


def test_code_that_only_its_own_module_defines_is_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unused, "PACKAGE", tmp_path)
    modules = package(
        tmp_path,
        shapes="""
            LIMIT = 3
            FORGOTTEN = 4

            def area(): return LIMIT
            def write(): return write()

            @register
            def rule(): ...

            class Shape:
                def draw(self): ...
                def erase(self): ...
        """,
        page="""
            from . import shapes
            from .shapes import Shape

            def write(): ...
            write()
            shapes.area()
            Shape().draw()
        """,
    )
    assert {name for _, _, name in unused.unused(modules)} == {
        "pack.shapes.FORGOTTEN",
        "pack.shapes.write",
        "pack.shapes.Shape.erase",
    }


def test_what_a_module_in_a_list_of_modules_defines_is_used_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unused, "PACKAGE", tmp_path)
    modules = package(
        tmp_path,
        jobs="def routes(): ...\ndef other(): ...",
        api="from . import jobs\nfor one in [jobs]:\n    one.routes()",
    )
    assert {name for _, _, name in unused.unused(modules)} == {"pack.jobs.other"}


def test_a_module_that_its_imports_lead_back_to_is_in_a_cycle() -> None:
    imports = {
        "p": [],
        "p.a": ["p.b"],
        "p.b": ["p.c"],
        "p.c": ["p.b"],
        "q": ["q.x"],
        "q.x": [],
    }
    assert imports_alone.cyclic(imports_alone.with_packages(imports)) == ["p.b", "p.c", "q", "q.x"]
    assert imports_alone.cyclic(imports) == ["p.b", "p.c"]


def test_a_module_that_imports_only_after_another_is_found(tmp_path: Path) -> None:
    house = tmp_path / "src" / "headwater"
    house.mkdir(parents=True)
    (house / "__init__.py").write_text("")
    (house / "early.py").write_text("two = 2\nfrom headwater.late import one")
    (house / "late.py").write_text("from headwater.early import two\none = 1")
    (house / "user.py").write_text("import headwater.early")
    script = Path(imports_alone.__file__)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / script.name).write_text(script.read_text())
    done = subprocess.run(
        [sys.executable, "-m", f"scripts.{script.stem}"],
        cwd=tmp_path,
        env={"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    failed = re.findall(r"(\S+) cannot be imported alone", done.stderr)
    assert failed == ["headwater.late"]
    assert "in a circle: headwater.early, headwater.late\n" in done.stderr
