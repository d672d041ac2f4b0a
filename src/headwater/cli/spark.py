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


def launcher_path() -> Path:
    """The file that runs a program with lineage."""
    if find_spec("pyspark") is None:
        raise EnvironmentProblem("PySpark is not installed", hint="pip install 'headwater[spark]'")
    from headwater.spark.launcher import SCRIPT

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
    at = next((i for i, word in enumerate(words) if word.endswith(".py")), None)
    if at is None:
        raise UsageError("no program is named", hint="headwater spark run [--conf K=V] job.py …")
    program = words[at]
    if not Path(program).is_file():
        raise UsageError(f"{program}: no such program", hint="give the path of a .py file")
    if at:
        given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{shlex.join(words[:at])} {given}"
    argv = [sys.executable, str(launcher_path()), program, *words[at + 1 :]]
    os.execv(sys.executable, argv)  # noqa: S606


@app.command("launcher")
def launcher(as_json: AsJson = False) -> None:
    """Print the file to give to spark-submit before the program: spark-submit … $(headwater spark launcher) job.py"""
    if as_json:
        print_json({"launcher": str(launcher_path())})
    else:
        out.out(launcher_path())
