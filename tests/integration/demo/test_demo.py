"""The newcomer's first command, whole: `headwater demo --once`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from headwater.lab import process
from headwater.lab.demo.verdict import Judge
from headwater.lab.lab import Lab

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(900)
def test_the_whole_pipeline_is_one_graph_and_every_run_ends(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    env = {**os.environ, "CI": "true"}
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "demo", "--once", "--home", str(home)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    lab = Lab(home)
    try:
        assert done.returncode == 0, done.stderr[-3000:]
        verdict = json.loads((tmp_path / "demo-verdict.json").read_text())
        assert verdict["ok"]
        assert verdict["missing"] == []
        assert len(verdict["jobs"]) == 8
        assert len(verdict["columns"]) >= 7
        assert process.find(home) == {}
        assert not [p for p in process.strays(home) if p.status() != psutil.STATUS_ZOMBIE]
        lab.up(["server"])
        assert Judge(lab.context).running() == []
    finally:
        lab.down()
