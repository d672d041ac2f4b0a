"""`headwater lake run`: events from Kafka into the lake's tables, by Spark."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from headwater.cli.spark import launcher_path
from headwater.errors import EnvironmentProblem

__all__ = ["run"]


def run(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGUMENT]...", show_default=False)
    ] = None,
) -> None:
    """Run the stream that fills the lake, here; `lake run -- --help` lists its arguments.

    Spark's own options, such as its jars, stand in PYSPARK_SUBMIT_ARGS. The program itself,
    `pipelines/lake.py`, goes to any cluster by spark-submit.
    """
    launcher_path()  # says what to install where there is no Spark
    from headwater.lab.services.streams import programs

    program = programs() / "lake.py"
    if not program.is_file():
        raise EnvironmentProblem(f"{program} is missing", hint="install headwater again")
    os.execv(sys.executable, [sys.executable, str(program), *(words or [])])  # noqa: S606
