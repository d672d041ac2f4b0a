"""`headwater connect list|status|pause|…`: connectors for people without another console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.connect import tables
from headwater.cli.connect.options import (
    ClusterOptions,
    LoginOptions,
    State,
    Urls,
    cluster_config,
    connect_to,
)
from headwater.cli.options import spread
from headwater.cli.output import AsJson, err, escape, out, print_json, print_wide, table_of
from headwater.cli.output import state as state_shown

if TYPE_CHECKING:
    from headwater.connect.services.rest import ConnectorEntry, ConnectRest


@spread
def list_connectors(
    *,
    place: ClusterOptions,
    login: LoginOptions,
    as_json: AsJson = False,
) -> None:
    """Show every connector: state, tasks, lag, and what it reads and writes."""
    config = place.config(login)
    from headwater.connect.commands.inspect import connector_rows

    rows = connector_rows(config)
    if as_json:
        print_json(rows)
        return
    table = table_of("connector", "type", "state", "tasks", "lag", "lineage")
    for row in rows:
        running = sum(task["state"] == "RUNNING" for task in row["tasks"])
        table.add_row(
            escape(row["name"]),
            escape(row["type"]),
            state_shown(row["state"]),
            f"{running}/{len(row['tasks'])} running" if row["tasks"] else "none",
            "" if row["lag"] is None else f"{row['lag']:,}",
            escape(row["lineage"] or row["problem"]),
        )
    if rows:
        print_wide(table)
    else:
        out.print("no connectors")
    for problem in dict.fromkeys(row["problem"] for row in rows if row["lineage"]):
        if problem:
            err.print(f"[yellow]note:[/] {escape(problem)}", soft_wrap=True)


@spread
def status(
    name: Annotated[str | None, typer.Argument(help="One connector; all without it.")] = None,
    *,
    url: Urls = None,
    state: State = None,
    login: LoginOptions,
    as_json: AsJson = False,
) -> None:
    """Show states, tasks, traces and the agent's problems. Exit code 1 when one failed."""
    from headwater.connect.commands.inspect import agent_problems, require

    connect = connect_to(cluster_config(url, login))
    if name:
        require(connect, name)
    entries = [connect.entry(name)] if name else _entries(connect)
    problems = agent_problems(state)
    if as_json:
        print_json(
            {
                "connectors": [{"name": e.info.name, **_plain(e, connect)} for e in entries],
                "troubles": problems,
            }
        )
    else:
        tables.print_status([(e.info.name, _plain(e, connect)) for e in entries])
        for one in problems:
            where = f"{one['cluster']} {one['connector']}".strip()
            err.print(f"[yellow]{escape(where)}:[/] {escape(str(one['problem']))}", soft_wrap=True)
    if any("FAILED" in _states(entry) for entry in entries):
        raise typer.Exit(1)


ACTIONS = {
    "pause": "Pause a connector; its run completes.",
    "resume": "Resume a paused or stopped connector; a new run starts.",
    "stop": "Stop a connector and release its tasks; its run is aborted.",
    "restart": "Restart a connector and its tasks; a new run starts.",
    "delete": "Delete a connector; its run completes.",
}


def action(word: str) -> Any:
    """The command that does one of these to connectors."""

    @spread
    def act(
        names: Annotated[list[str], typer.Argument(metavar="NAME…", help="The connectors.")],
        *,
        url: Urls = None,
        state: State = None,
        login: LoginOptions,
        as_json: AsJson = False,
    ) -> None:
        config = cluster_config(url, login)
        connect = connect_to(config)
        from headwater.connect.commands.inspect import require
        from headwater.connect.commands.order_notes import OrderNotes

        require(connect, *names)
        notes = OrderNotes(state, config.endpoint.urls[0])
        try:
            for name in names:
                with notes.order(name, word):
                    connect.act(name, word)
        finally:
            if notes.problem:
                err.print(
                    f"[yellow]note:[/] the agent gets no notice of it: {escape(notes.problem)}",
                    soft_wrap=True,
                )
        if as_json:
            print_json({"action": word, "connectors": names})
        else:
            done = {"stop": "stopped"}.get(word, f"{word.removesuffix('e')}ed")
            out.print(f"{done} {escape(', '.join(names))}", soft_wrap=True)

    return act


def _entries(connect: ConnectRest) -> list[ConnectorEntry]:
    from headwater.connect.services.endpoint import ConnectError
    from headwater.connect.services.rest import read_entry

    found = []
    for name, raw in sorted(connect.poll().items()):
        try:
            found.append(read_entry(name, raw))
        except ConnectError as error:
            err.print(f"[yellow]{escape(name)}:[/] {escape(error.message)}", soft_wrap=True)
    return found


def _plain(entry: ConnectorEntry, connect: ConnectRest) -> dict[str, Any]:
    import msgspec

    from headwater.lineage.secrets import scrub, secret_values

    hidden = secret_values(
        entry.info.config, connect.passwords(entry.info.config["connector.class"])
    )
    found: dict[str, Any] = msgspec.to_builtins(entry.status)
    for part in (found, *found["tasks"]):
        part["trace"] = scrub(part["trace"], hidden)
    return {"type": entry.info.type, **found}


def _states(entry: ConnectorEntry) -> set[str]:
    return {entry.status.state, *(task.state for task in entry.status.tasks)}
