"""`headwater connect explain|preview`: a connector's lineage, and why it is so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.cli.connect import tables
from headwater.cli.connect.options import (  # noqa: TC001  (typer reads the annotations)
    Bootstrap,
    ClusterOptions,
    LoginOptions,
    Sample,
)
from headwater.cli.options import spread
from headwater.cli.output import AsJson, err, escape, print_json
from headwater.errors import UsageError

Name = Annotated[str, typer.Argument(help="The connector.")]


@spread
def explain(
    name: Name,
    *,
    place: ClusterOptions,
    sample: Sample = False,
    login: LoginOptions,
    as_json: AsJson = False,
) -> None:
    """Say where each dataset and edge of a connector comes from: which key, rule or API."""
    from headwater.connect.commands.inspect import derive_connector

    config = place.config(login, sample=sample)
    derived, problems = derive_connector(config, name)
    if as_json:
        print_json(derived)
        return
    tables.print_derived(derived)
    for problem in [*derived.lineage.problems, *problems]:
        err.print(f"[yellow]note:[/] {escape(problem)}", soft_wrap=True)


def preview(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE.json", help="As one would POST it to Connect.")
    ],
    kind: Annotated[
        str | None, typer.Option("--type", metavar="source|sink", help="As Connect reports it.")
    ] = None,
    topics: Annotated[
        str | None, typer.Option("--topics", metavar="a,b", help="What /topics would answer.")
    ] = None,
    kafka_bootstrap: Bootstrap = None,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", metavar="topic=FILE", help="A topic's value schema; repeatable."),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            help="Of the job.",
            envvar="OPENLINEAGE_NAMESPACE",
            show_default="default",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a connector that is not deployed would read and write; with --json, its START event."""
    role: Any = kind
    if kind not in (None, "source", "sink"):
        raise UsageError(f"--type {kind}: neither source nor sink")
    from headwater.connect.commands.preview import preview_file

    pairs = [item.partition("=") for item in schema or ()]
    for topic, _, file in pairs:
        if not topic or not file:
            raise UsageError("--schema: not topic=FILE", hint="--schema orders=orders.avsc")
    derived, event = preview_file(
        config,
        role=role,
        topics=tuple(t.strip() for t in (topics or "").split(",") if t.strip()),
        bootstrap=kafka_bootstrap,
        schemas={topic: Path(file) for topic, _, file in pairs},
        namespace=namespace or "default",
    )
    if as_json:
        print_json(event)
        return
    tables.print_derived(derived)
    for problem in derived.lineage.problems:
        err.print(f"[yellow]note:[/] {escape(problem)}", soft_wrap=True)
