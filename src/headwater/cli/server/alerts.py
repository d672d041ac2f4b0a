"""`headwater alerts`: the incidents that a server reported, and whether a message would arrive."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater.cli.options import given, spread
from headwater.cli.output import escape, out, print_json
from headwater.cli.questions.shown_names import ShownNames
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads it)
from headwater.errors import HeadwaterError, UsageError
from headwater.lineage.wording import affected_text

__all__ = ["app"]

app = typer.Typer(help="Alerts of a lineage server.", no_args_is_help=True)


@app.callback()
def alerts() -> None:
    """Alerts of a lineage server."""


@app.command("list")
@spread
def list_alerts(
    how: ServerOptions,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="The most of each kind.")] = 20,
) -> None:
    """List the open incidents and those that are over, the newest first."""
    server = how.server()
    found = server.get("/api/v2/alerts", limit=limit)
    if how.as_json:
        print_json(found)
        return
    if not found["rules"]:
        out.print("this server has no alert rules: start it with --alerts FILE")
    names = _names([*found["open"], *found["resolved"]])
    for one in found["open"]:
        _print_incident(one, names, "[bold red]open[/]    ")
    for one in found["resolved"]:
        _print_incident(one, names, "[dim]resolved[/]")
    if not found["open"]:
        out.print("no incident is open")
    if found["truncated"]:
        out.print("[yellow]there are more: --limit[/]")


def _names(incidents: list[dict[str, Any]]) -> ShownNames:
    return ShownNames(_subject(one) for one in incidents)


def _subject(incident: dict[str, Any]) -> str:
    subject = incident["subject"]
    return f"{subject['type']}:{subject['namespace']}:{subject['name']}"


def _title(one: dict[str, Any], names: ShownNames) -> str:
    """What is wrong; it begins with the name of what it is about, which two may have.

    Of a new reader it begins with the job, and the subject is the dataset.
    """
    name, title = str(one["subject"]["name"]), str(one["title"])
    shown = names.of(_subject(one), name)
    begins = one["kind"] != "new-reader" and title.startswith(f"{name} ")
    return shown + title[len(name) :] if begins else title


def _print_incident(one: dict[str, Any], names: ShownNames, word: str) -> None:
    until = f" until {one['resolvedAt']}" if one["resolvedAt"] else ""
    _print(f"{word} {escape(_title(one, names))} [dim]since {one['since']}{until}, {one['id']}[/]")
    if one["detail"]:
        _print(f"         {escape(one['detail'])}")
    if behind := affected_text(one["affected"], names=5):
        _print(f"         {escape(behind)}")
    for sent in one["deliveries"]:
        if sent["state"] != "sent":
            text = (
                f"{sent['message']} to {sent['channel']}: {sent['state']}, {sent['error'] or 'now'}"
            )
            _print(f"         [yellow]{escape(text)}[/]")


def _print(text: str) -> None:
    out.print(text, soft_wrap=True)


@app.command("test")
@spread
def send_test(
    how: ServerOptions,
    rule: Annotated[str | None, typer.Argument(metavar="RULE", help="The rule's name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Test every rule.")] = False,
) -> None:
    """Have the server send a message that is marked as a test through the channels of a rule."""
    if (rule is None) == (not every):
        raise UsageError("say which rule, or --all", hint="headwater alerts list --json has them")
    # Without a rule the server tests every one.
    asked = {} if rule is None else {"rule": given(rule, "the name of the rule")}
    found = how.server().post("/api/v2/alerts/test", asked)
    results = found["results"]
    if how.as_json:
        print_json(found)
    else:
        for one in results:
            word = "[green]sent[/]" if one["sent"] else "[red]not sent[/]"
            error = f": {one['error']}" if one["error"] else ""
            _print(f"{word} {escape(one['rule'])} to {escape(one['channel'])}{escape(error)}")
    failed = sum(not one["sent"] for one in results)
    if failed:
        raise HeadwaterError(
            f"{failed} of {len(results)} test messages did not arrive",
            hint="the error of each is above; the server tries real messages again",
        )
