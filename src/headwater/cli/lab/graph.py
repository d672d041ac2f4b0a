"""`headwater lab graph` and `headwater lab run`: a lab's lineage as text, and programs that make it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.lab.options import Home, open_lab
from headwater.cli.output import AsJson, escape, out, print_json, print_wide, table_of
from headwater.errors import HeadwaterError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

# How a producer of lineage behaves, what the pipeline's programs are told, and where a producer reports
# to if not to an address.
PRODUCER = (
    "HEADWATER_FLOW_SECONDS",
    "HEADWATER_HEARTBEAT_SECONDS",
    "HEADWATER_STATE_DIR",
    "HEADWATER_WATCHDOG",
)
PROGRAM = ("AVAILABLE_NOW", "CHECKPOINT", "INPUT_TOPIC", "OUTPUT_TOPIC")
ELSEWHERE = ("OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")


def graph(
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Print what the lab's lineage server shows: each job, what it reads and what it writes."""
    lab = open_lab(home)
    import httpx

    from headwater.lab.demo.graph_text import jobs
    from headwater.lab.demo.lineage_client import LineageClient

    if "server" not in lab.home.settings.wanted:
        raise UsageError(
            f"no lineage server was started in {lab.home.root}",
            hint="headwater lab up server agent; which lab: --home DIR",
        )
    lineage = LineageClient(lab.context)
    try:
        drawn = jobs(lineage)
    except httpx.HTTPError as error:
        raise HeadwaterError(
            f"the lab's lineage server does not answer: {error}", hint="headwater lab up server"
        ) from error
    if as_json:
        print_json(drawn)
        return
    table = table_of("job", "state", "reads", "writes")
    for one in drawn:
        reads, writes = ("\n".join(map(escape, some)) for some in (one.reads, one.writes))
        table.add_row(escape(one.job), escape(one.state), reads, writes)
    print_wide(table)
    out.print(f"\nThe page: [cyan]{escape(lineage.page('/graph'))}[/]", soft_wrap=True)


def run(
    words: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM [ARGUMENT]...", show_default=False),
    ],
    home: Home = None,
) -> None:
    """Run a PySpark program with this lab's addresses, keys and jars; here, or one of the pipeline's.

    What you set for lineage yourself (OPENLINEAGE_*) stands above what the lab would set.
    """
    lab = open_lab(home)
    from headwater.lab import process
    from headwater.lab.files import fetch
    from headwater.lab.files.artifacts import lock
    from headwater.lab.process import HOME_MARK, PARENT_MARK, SERVICE_MARK
    from headwater.lab.services.pipeline_streams import BUNDLE, catalog_env, programs, spark_job

    program = Path(words[0]).absolute()
    if not program.is_file():
        program = programs() / words[0]
    if not program.is_file():
        here = ", ".join(sorted(path.name for path in programs().glob("*.py")))
        raise UsageError(f"{words[0]}: no such program", hint=f"those of the pipeline: {here}")
    if not lab.home.exists:
        raise UsageError(f"there is no lab in {lab.home.root}", hint="headwater lab up")
    fetch.ensure(lab.context.cache, lock().select([BUNDLE]), None)
    scratch = lab.home.data(program.stem)
    scratch.mkdir(parents=True, exist_ok=True)
    command = spark_job(lab.context, str(program), *words[1:], scratch=scratch)
    variables = {**command.env, **lab.env()}
    if program.resolve().parent == programs().resolve():
        # Those that ask Hive themselves take a REST catalog for the one to ask.
        variables |= catalog_env(lab.context, program.name)
    variables = _lineage_env(variables, os.environ)
    env = process.environment(lab.home.root, "", variables)
    # The lab ends what it finds marked as its own; this is the user's.
    marks = (HOME_MARK, SERVICE_MARK, PARENT_MARK)
    env = {name: value for name, value in env.items() if name not in marks}
    os.execve(command.argv[0], list(command.argv), env)  # noqa: S606


def _lineage_env(lab: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The lab's variables for a program; what its user sets for it and its lineage takes precedence."""
    mine = {
        name: value
        for name, value in given.items()
        if name.startswith("OPENLINEAGE_") or name in PRODUCER or name in PROGRAM
    }
    found = {**lab, **mine}
    # A program reports, for which the producer's token is enough; this one is for commands and may do everything.
    found.pop("HEADWATER_TOKEN", None)
    # The lab's token is for the lab's own server, also in a shell that has what `lab env` prints.
    token = lab.get("OPENLINEAGE_API_KEY")
    if not _is_labs(mine, lab) and found.get("OPENLINEAGE_API_KEY") == token:
        found.pop("OPENLINEAGE_API_KEY", None)
    # An address in the environment would win over a file or another transport that was named.
    if "OPENLINEAGE_URL" not in mine and any(name.startswith(ELSEWHERE) for name in mine):
        found.pop("OPENLINEAGE_URL", None)
    return found


def _is_labs(given: Mapping[str, str], lab: Mapping[str, str]) -> bool:
    """Whether the server that is given, if one is, is the lab's own."""
    own, asked = (one.get("OPENLINEAGE_URL", "").rstrip("/") for one in (lab, given))
    return asked in ("", own)
