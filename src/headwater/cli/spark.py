"""`headwater spark`: run a PySpark program with lineage, without touching its code."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.output import AsJson, out, print_json
from headwater.errors import EnvironmentProblem, UsageError

app = typer.Typer(no_args_is_help=True, help="Run PySpark programs with lineage.")

SHELL = "pyspark-shell"
FLAGS = frozenset({"--verbose", "-v", "--supervise", "--help", "-h", "--version", "--usage-error"})


def launcher_path() -> Path:
    """The file that runs a program with lineage."""
    if find_spec("pyspark") is None:
        raise EnvironmentProblem("PySpark is not installed", hint="pip install 'headwater[spark]'")
    from headwater.spark.driver.launcher import SCRIPT

    return SCRIPT


@app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def run(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[SPARK OPTION]... PROGRAM [ARGUMENT]...", show_default=False),
    ],
) -> None:
    """Run a program as `python PROGRAM` would, reporting what its sessions do.

    Options before the program are spark-submit's: --conf, --master, --packages, --jars, …
    """
    at = _program(words)
    if at >= len(words):
        raise UsageError("no program is named", hint="headwater spark run [--conf K=V] job.py …")
    program = words[at]
    if not Path(program).is_file():
        raise UsageError(f"{program}: no such program", hint="give the path of a .py file")
    if at:
        # The last one of an option counts, and what is given here goes before the environment.
        *given, shell = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS") or SHELL)
        os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([*given, *words[:at], shell])
    argv = [sys.executable, str(launcher_path()), program, *words[at + 1 :]]
    os.execv(sys.executable, argv)  # noqa: S606


def _program(words: list[str]) -> int:
    """Where the program stands: behind spark-submit's options, of which most take a value."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 1 if words[at] in FLAGS or "=" in words[at] else 2
    return at


@app.command("launcher")
def launcher(as_json: AsJson = False) -> None:
    """Print the file to give to spark-submit before the program: spark-submit … $(headwater spark launcher) job.py"""
    if as_json:
        print_json({"launcher": str(launcher_path())})
    else:
        out.out(launcher_path())
