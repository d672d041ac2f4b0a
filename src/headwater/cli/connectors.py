"""`headwater connect list|status|explain|apply|…`: connectors for people without another console."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from headwater.cli import lineage_tables as tables
from headwater.cli.cluster import (
    Bootstrap,
    PasswordFile,
    RegistryUrl,
    State,
    TokenFile,
    Urls,
    User,
    cluster_config,
)
from headwater.cli.output import AsJson, err, out, print_json
from headwater.errors import HeadwaterError, UsageError

if TYPE_CHECKING:
    from headwater.connect.answers import Entry
    from headwater.connect.client import Connect
    from headwater.connect.config import ClusterConfig

Name = Annotated[str, typer.Argument(help="The connector.")]


def register(app: typer.Typer) -> None:
    """Put these commands below `headwater connect`."""
    app.command("list")(list_connectors)
    app.command()(status)
    app.command()(explain)
    app.command()(preview)
    app.command()(apply)
    for word, help_text in {
        "pause": "Pause a connector; its run completes.",
        "resume": "Let a paused or stopped connector go on; a new run starts.",
        "stop": "Stop a connector and let go of its tasks; its run is aborted.",
        "restart": "Restart a connector and its tasks; a new run starts.",
        "delete": "Delete a connector; its run completes.",
    }.items():
        app.command(word, help=help_text)(_action(word))


def list_connectors(
    url: Urls = None,
    kafka_bootstrap: Bootstrap = None,
    registry_url: RegistryUrl = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Show every connector: state, tasks, lag, and what it reads and writes."""
    config = cluster_config(
        url, kafka_bootstrap=kafka_bootstrap, registry_url=registry_url, user=user,
        password_file=password_file, token_file=token_file,
    )  # fmt: skip
    from headwater.connect.look import look

    rows = look(config)
    if as_json:
        print_json(rows)
        return
    table = tables.table_of("connector", "type", "state", "tasks", "lag", "lineage")
    for row in rows:
        running = sum(task["state"] == "RUNNING" for task in row["tasks"])
        table.add_row(
            escape(row["name"]),
            row["type"],
            tables.state(row["state"]),
            f"{running}/{len(row['tasks'])} running" if row["tasks"] else "none",
            "" if row["lag"] is None else f"{row['lag']:,}",
            escape(row["lineage"] or row["problem"]),
        )
    tables.print_wide(table)
    if not rows:
        out.print("no connectors")


def status(
    name: Annotated[str | None, typer.Argument(help="One connector; all without it.")] = None,
    url: Urls = None,
    state: State = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Show states, tasks and traces, and what troubles the agent. Exit code 1 when one failed."""
    from headwater.connect.look import troubles

    config = cluster_config(url, user=user, password_file=password_file, token_file=token_file)
    connect = _connect(config)
    entries = [connect.entry(name)] if name else _entries(connect)
    said = troubles(state)
    if as_json:
        print_json(
            {
                "connectors": [{"name": e.info.name, **_plain(e, connect)} for e in entries],
                "troubles": said,
            }
        )
    else:
        tables.print_status([(e.info.name, _plain(e, connect)) for e in entries])
        for one in said:
            where = f"{one['cluster']} {one['connector']}".strip()
            err.print(f"[yellow]{escape(where)}:[/] {escape(str(one['problem']))}", soft_wrap=True)
    if any("FAILED" in _states(entry) for entry in entries):
        raise typer.Exit(1)


def explain(
    name: Name,
    url: Urls = None,
    kafka_bootstrap: Bootstrap = None,
    registry_url: RegistryUrl = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Say where each dataset and edge of a connector comes from: which key, rule or API."""
    from headwater.connect.look import derived_of

    config = cluster_config(
        url, kafka_bootstrap=kafka_bootstrap, registry_url=registry_url, user=user,
        password_file=password_file, token_file=token_file,
    )  # fmt: skip
    derived, problems = derived_of(config, name)
    if as_json:
        print_json(derived)
        return
    tables.print_derived(derived)
    for problem in [*derived.problems, *problems]:
        err.print(f"[yellow]note:[/] {escape(problem)}", soft_wrap=True)


def preview(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE.json", help="As one would POST it to Connect.")
    ],
    kind: Annotated[
        str | None, typer.Option("--type", metavar="source|sink", help="What REST would say.")
    ] = None,
    topics: Annotated[
        str | None, typer.Option("--topics", metavar="a,b", help="What /topics would answer.")
    ] = None,
    kafka_bootstrap: Bootstrap = None,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", metavar="topic=FILE", help="A topic's value schema; repeatable."),
    ] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Of the job.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the START event that a connector which is not deployed would send."""
    if kind not in (None, "source", "sink"):
        raise UsageError(f"--type {kind}: neither source nor sink")
    from headwater.connect.look import previewed

    pairs = [item.partition("=") for item in schema or ()]
    for topic, _, file in pairs:
        if not topic or not file:
            raise UsageError("--schema: not topic=FILE", hint="--schema orders=orders.avsc")
    derived, event = previewed(
        config,
        kind=kind,
        topics=tuple(t.strip() for t in (topics or "").split(",") if t.strip()),
        bootstrap=kafka_bootstrap,
        schemas={topic: Path(file) for topic, _, file in pairs},
        namespace=namespace or os.environ.get("OPENLINEAGE_NAMESPACE") or "default",
    )
    if as_json:
        print_json(event)
        return
    tables.print_derived(derived)
    for problem in derived.problems:
        err.print(f"[yellow]note:[/] {escape(problem)}", soft_wrap=True)


def apply(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Connectors, one a file.")],
    url: Urls = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Make or change connectors: each is validated first, and what changes is shown."""
    from headwater.connect.deploy import changes, faults, fit, read_connector

    wanted = [read_connector(path) for path in files]
    connect = _connect(
        cluster_config(url, user=user, password_file=password_file, token_file=token_file)
    )
    available = {plugin["class"] for plugin in connect.plugins(connectors_only=False)}
    plans = []
    for name, asked in wanted:
        config, left_out = fit(asked, available)
        for transform in left_out:
            err.print(
                f"[yellow]note:[/] {escape(name)}: transform {transform} is left out: the worker "
                "lacks its plug-in; the agent reports the lineage without it",
                soft_wrap=True,
            )
        wrong = faults(connect.validate(config))
        if wrong:
            raise HeadwaterError(
                f"{name}: the plug-in refuses the configuration: {'; '.join(wrong)}",
                hint="nothing was changed",
            )
        declared = connect.passwords(config["connector.class"])
        before = connect.entry(name).info.config if connect.exists(name) else None
        plans.append((name, config, before is None, changes(before, config, declared), left_out))
    for name, config, _, found, _ in plans:
        if found and not dry_run:
            connect.put(name, config)
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "created": new,
                    "applied": bool(found) and not dry_run,
                    "changes": [change._asdict() for change in found],
                    "leftOut": left_out,
                }
                for name, _, new, found, left_out in plans
            ]
        )
        return
    for name, _, new, found, _ in plans:
        word = ("new" if new else "changed") if found else "as it was"
        out.print(f"[bold]{escape(name)}[/] {word}{' (not applied)' if dry_run else ''}")
        for key, old, now in found:
            if old is not None:
                out.print(f"  [red]- {escape(key)} = {escape(old)}[/]", soft_wrap=True)
            if now is not None:
                out.print(f"  [green]+ {escape(key)} = {escape(now)}[/]", soft_wrap=True)


def _action(word: str) -> Any:
    def act(
        names: Annotated[list[str], typer.Argument(metavar="NAME…", help="The connectors.")],
        url: Urls = None,
        state: State = None,
        user: User = None,
        password_file: PasswordFile = None,
        token_file: TokenFile = None,
        as_json: AsJson = False,
    ) -> None:
        config = cluster_config(url, user=user, password_file=password_file, token_file=token_file)
        connect = _connect(config)
        for name in names:
            connect.act(name, word)
            if word == "restart":
                from headwater.connect.look import note_restart

                note_restart(state, config.access.urls[0], name)
        if as_json:
            print_json({"action": word, "connectors": names})
        else:
            done = {"stop": "stopped"}.get(word, f"{word.removesuffix('e')}ed")
            out.print(f"{done} {escape(', '.join(names))}")

    return act


def _connect(config: ClusterConfig) -> Connect:
    from headwater.connect.client import Connect

    return Connect(config.access)


def _entries(connect: Connect) -> list[Entry]:
    from headwater.connect.access import ConnectError
    from headwater.connect.answers import read_entry

    found = []
    for name, raw in sorted(connect.poll().items()):
        try:
            found.append(read_entry(name, raw))
        except ConnectError as error:
            err.print(f"[yellow]{escape(name)}:[/] {escape(error.message)}", soft_wrap=True)
    return found


def _plain(entry: Entry, connect: Connect) -> dict[str, Any]:
    import msgspec

    from headwater.connect.redact import scrub, secrets

    hidden = secrets(entry.info.config, connect.passwords(entry.info.config["connector.class"]))
    found: dict[str, Any] = msgspec.to_builtins(entry.status)
    for part in (found, *found["tasks"]):
        part["trace"] = scrub(part["trace"], hidden)
    return {"type": entry.info.type, **found}


def _states(entry: Entry) -> set[str]:
    return {entry.status.state, *(task.state for task in entry.status.tasks)}
