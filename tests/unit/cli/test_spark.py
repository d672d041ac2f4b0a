"""`headwater spark run` as typed: which word is the program, and what Spark is told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from headwater.cli.main import _run

if TYPE_CHECKING:
    from pathlib import Path


class Started(Exception):
    """The program that this process would have become."""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    def become(_file: str, argv: list[str]) -> None:
        raise Started(*argv[2:])

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "")  # and is put back after the test
    path = tmp_path / "job.py"
    path.touch()
    (tmp_path / "helpers.py").touch()
    return str(path)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--conf", "spark.app.name=x"],
        ["--py-files", "HELPERS", "--conf=spark.x=y", "--verbose"],
        ["-v", "--master", "local[2]"],
    ],
)
def test_the_program_stands_behind_the_options(job: str, options: list[str]) -> None:
    given = [word.replace("HELPERS", job.replace("job.py", "helpers.py")) for word in options]
    with pytest.raises(Started) as started:
        _started([*given, job, "--rows", "other.py"])
    assert started.value.args == (job, "--rows", "other.py")
    told = (os.environ["PYSPARK_SUBMIT_ARGS"] or "pyspark-shell").split()
    assert (len(told), told[-1]) == (len(given) + 1, "pyspark-shell")


def test_what_is_typed_stands_above_the_environment(
    job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn --conf 'a=b c' pyspark-shell")
    with pytest.raises(Started):
        _started(["--master", "local[1]", job])
    told = "--master yarn --conf 'a=b c' --master 'local[1]' pyspark-shell"
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == told


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.py"], "none.py: no such program"),
        (["--master", "local"], "no program is named"),
        (["--conf"], "no program is named"),
    ],
)
def test_without_a_program_it_says_so(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["spark", "run", *words], debug=False) == 2
    assert said in capsys.readouterr().err


def _started(words: list[str]) -> None:
    from headwater.cli.spark import run

    run(words)
