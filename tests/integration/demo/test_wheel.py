"""The wheel alone, in an empty environment: server, page, agent, PySpark and the demo."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headwater

ROOT = Path(__file__).parents[3]


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_wheel_is_enough(tmp_path: Path) -> None:
    """Needs a package index: the wheel is installed with every extra, as its users do."""
    bill = tmp_path / f"headwater-{headwater.__version__}.cdx.json"
    for command in (
        ["hatchling", "build", "-d", str(tmp_path)],
        ["scripts.sbom", str(bill)],
        ["scripts.check_wheel", "--jvm", "--dist", str(tmp_path)],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
