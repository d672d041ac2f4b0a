"""The lake's Spark programs: its stream, and the work beside it."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from headwater.cli.output import AsJson  # noqa: TC001  (typer reads it)
from headwater.cli.spark import launcher_path
from headwater.errors import EnvironmentProblem

__all__ = ["analyse", "ask", "maintain", "repair", "run"]

Words = Annotated[list[str] | None, typer.Argument(metavar="[ARGUMENT]...", show_default=False)]


def run(words: Words = None) -> None:
    """Run the stream that fills the lake, here; `lake run -- --help` lists its arguments.

    Spark's own options, such as its jars, stand in PYSPARK_SUBMIT_ARGS. The program itself,
    `pipelines/lake.py`, goes to any cluster by spark-submit.
    """
    _become("lake.py", words)


def maintain(words: Words = None, as_json: AsJson = False) -> None:
    """Compact the lake's tables, remove duplicates, old snapshots and orphan files.

    `lake maintain -- --help` lists its arguments. It runs beside the stream, as often as you like: a
    cron job once a day is usual. The program is `pipelines/lake_maintain.py`.
    """
    _become("lake_maintain.py", [*(["--json"] if as_json else []), *(words or [])])


def repair(words: Words = None, as_json: AsJson = False) -> None:
    """Recompute the jobs that late events change; `lake repair -- --help` lists its arguments.

    Late is what arrived later than the bound of `lake run --late`. The program is
    `pipelines/lake_repair.py`.
    """
    _become("lake_repair.py", [*(["--json"] if as_json else []), *(words or [])])


def analyse(words: Words = None, as_json: AsJson = False) -> None:
    """Find what lies behind every dataset and column, what nobody uses, and components.

    `lake analyse -- --help` lists its arguments; `lake analysis` shows the result. The program is
    `pipelines/lake_analyse.py`.
    """
    _become("lake_analyse.py", [*(["--json"] if as_json else []), *(words or [])])


def ask(words: Words = None) -> None:
    """Answer a question about the past from a lake that is too large for one machine, by Spark.

    `lake ask -- --help` lists its arguments; the answer is the server's JSON. The program is
    `pipelines/lake_ask.py`.
    """
    _become("lake_ask.py", words)


def _become(name: str, words: list[str] | None) -> None:
    launcher_path()  # raises an error that names what to install where Spark is missing
    from headwater.lab.services.pipeline_streams import programs

    program = programs() / name
    if not program.is_file():
        raise EnvironmentProblem(f"{program} is missing", hint="install headwater again")
    os.execv(sys.executable, [sys.executable, str(program), *(words or [])])  # noqa: S606
