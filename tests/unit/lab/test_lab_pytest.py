"""The fixtures' own lab belongs to the run that made it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.full
def test_a_run_within_a_run_leaves_its_lab_alone(tmp_path: Path) -> None:
    test, parents = tmp_path / "test_nothing.py", tmp_path / "lab"
    test.write_text("def test_nothing(): pass")
    parents.mkdir()
    told = {"HEADWATER_LAB_TEST_HOME": str(parents), "HEADWATER_LAB_HOME": str(parents)}
    within = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "headwater.lab.pytest", str(test)],
        env=os.environ | told, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert within.returncode == 0, within.stdout
    assert parents.is_dir()
