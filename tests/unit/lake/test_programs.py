"""`headwater lake run`, `maintain`, `repair`, `analyse` and `ask` are the programs of the pipeline's folder."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.server.store import open_store

if TYPE_CHECKING:
    from pathlib import Path


# A process each: one of the five in the quick run.
more = partial(pytest.param, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        ("run", "--derive-every"),
        more("maintain", "--keep-snapshots"),
        more("repair", "--namespace"),
        more("analyse", "--period"),
        more("ask", "question"),
    ],
)
def test_a_program_lists_its_arguments(command: str, argument: str) -> None:
    words = [sys.executable, "-m", "headwater", "lake", command, "--", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert argument in done.stdout
    assert "--catalog" in done.stdout


def test_a_store_is_made_anew_from_the_lake(lake: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/new.db"
    words = ["rebuild", "--from-lake", lake, "--store", store, "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    # One of the lake's four events is a repetition.
    assert json.loads(done.stdout) == {"records": 3}
    made = open_store(store)
    assert made.connection.all("SELECT name FROM job ORDER BY name") == [("load",), ("report",)]
    made.close()
    assert CliRunner().invoke(app, words).exit_code != 0, "a store that has something is refused"
