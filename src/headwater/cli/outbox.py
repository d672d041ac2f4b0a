"""`headwater outbox`: events of this machine that a server refused, or that still wait for one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import AsJson, confirm, err, escape, out, print_json, print_wide, table_of
from headwater.emit import outbox_listing
from headwater.emit.journal import REFUSED_FILE, settle, state_folder
from headwater.errors import NotFoundError, UsageError
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import iso

if TYPE_CHECKING:
    from headwater.emit.outbox_listing import RefusedEvent

__all__ = ["app"]

SEND_SECONDS = 10.0

app = typer.Typer(
    help="Events that a server refused or has not taken yet, in the outboxes of this user.",
    no_args_is_help=True,
)

State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="FILE|URL",
        help="The state of a Connect agent, too.",
        show_default="the agent's default",
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="As `list` shows them.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="Every event that was refused.")]


def _places(state: str | None) -> list[str]:
    from headwater.connect.config import default_state

    return outbox_listing.find_outboxes(state_folder(), state or default_state())


@app.command("list")
def list_events(state: State = None, as_json: AsJson = False) -> None:
    """Show what waits for each destination, and every event that was refused."""
    places = _places(state)
    waiting, refused = outbox_listing.waiting(places), outbox_listing.refused(places)
    if as_json:
        print_json(
            {
                "waiting": [one._asdict() for one in waiting],
                "refused": [_row(one) for one in refused],
            }
        )
        return
    if waiting:
        table = table_of("waiting", "destination", "outbox")
        for one in waiting:
            note = "" if one.active else " (not configured any more)"
            table.add_row(str(one.events), escape(f"{one.destination}{note}"), escape(one.outbox))
        print_wide(table)
    if refused:
        table = table_of("id", "refused", "destination", "job", "event", "time", "reason")
        for row in map(_row, refused):
            cells = (
                row["id"], row["refusedAt"], row["destination"], row["job"], row["eventType"],
                row["eventTime"], row["reason"],
            )  # fmt: skip
            table.add_row(*(escape(str(cell)) for cell in cells))
        print_wide(table)
    if not waiting and not refused:
        out.print("nothing waits and nothing was refused")


@app.command("show")
def show(
    event_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")],
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Print one refused event and why it was refused; secrets are masked."""
    (found,) = _chosen(outbox_listing.refused(_places(state)), [event_id])
    if as_json:
        print_json({**_row(found), "event": found.event})
        return
    for name in ("destination", "reason", "refusedAt", "outbox"):
        out.print(f"{name}: {escape(str(_row(found)[name]))}", soft_wrap=True)
    print_json(found.event)


@app.command("retry")
def retry(
    ids: Ids = None, all_events: All = False, state: State = None, as_json: AsJson = False
) -> None:
    """Queue refused events again, each for the destination that refused it."""
    chosen = _selected(state, ids, all_events)
    outbox_listing.retry(chosen)
    sent = _send_now(chosen)
    if as_json:
        print_json({"queued": [one.id for one in chosen], "sent": sent})
        return
    out.print(f"{len(chosen)} queued again, {sent} of them sent")
    if sent < len(chosen):
        err.print(
            "the others are sent by the program that emitted them while it runs, else by the next "
            "one with the same destination",
            soft_wrap=True,
        )


@app.command("drop")
def drop(
    ids: Ids = None,
    all_events: All = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Delete refused events for good."""
    chosen = _selected(state, ids, all_events)
    if chosen and not yes:
        confirm(f"delete {len(chosen)} refused events for good?")
    outbox_listing.drop(chosen)
    if as_json:
        print_json({"dropped": [one.id for one in chosen]})
    else:
        out.print(f"{len(chosen)} dropped")


def _selected(state: str | None, ids: list[str] | None, every: bool) -> list[RefusedEvent]:
    if bool(ids) == every:
        raise UsageError("name events by their id, or all of them by --all")
    refused = outbox_listing.refused(_places(state))
    return refused if every else _chosen(refused, ids or [])


def _chosen(refused: list[RefusedEvent], ids: list[str]) -> list[RefusedEvent]:
    by_id = {one.id: one for one in refused}
    for wanted in ids:
        if wanted not in by_id:
            raise NotFoundError(f"no refused event {wanted}", hint="headwater outbox list")
    return [by_id[wanted] for wanted in ids]


def _send_now(chosen: list[RefusedEvent]) -> int:
    """Send what no program holds any more, if its destination is configured here."""
    shared = {one.place for one in chosen if Path(one.place).name == REFUSED_FILE}
    before = sum(one.events for one in outbox_listing.waiting(shared))
    for place in shared:
        settle(Path(place), {}, SEND_SECONDS, "inferred")
    return before - sum(one.events for one in outbox_listing.waiting(shared))


def _row(one: RefusedEvent) -> dict[str, Any]:
    return {
        "id": one.id,
        "destination": one.destination,
        "reason": one.reason,
        "refusedAt": iso(one.refused_at * SECOND) if one.refused_at else "",
        "namespace": one.namespace,
        "job": one.job,
        "run": one.run,
        "eventType": one.event_type,
        "eventTime": one.event_time,
        "outbox": one.outbox,
    }
