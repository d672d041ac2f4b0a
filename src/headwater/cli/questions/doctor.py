"""`headwater doctor`: datasets under two names, and what else makes answers doubtful."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003  (typer reads the annotation)
from typing import Annotated, Any

import msgspec
import typer

from headwater.cli.options import spread
from headwater.cli.output import escape, out, print_json
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads it)
from headwater.errors import UsageError
from headwater.lineage.wording import hidden_text

__all__ = ["doctor"]

FOUND = 6
"""The exit code when something was found."""
SHOWN = 10
"""Findings of one kind that are printed; `--json` has more."""
PATH = "/api/v2/doctor"
TITLES = {
    "schema": "producers disagree about a schema",
    "external file": "tables of dbt that are files elsewhere",
    "orphan": "datasets that no job reads or writes",
    "no outputs": "jobs without outputs",
    "inferred": "runs closed because nothing more came",
    "silent": "producers that went silent",
    "reported twice": "streams that are reported twice",
    "clock": "clocks that are off",
    "refused": "refused events, by reason",
    "assumed": "events read with an assumption, by reason",
}


@spread
def doctor(
    how: ServerOptions,
    apply: Annotated[
        bool, typer.Option("--apply", help="Record aliases for pairs of --min-score and more.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Take back every alias that doctor recorded.")
    ] = False,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", help="Your own rules for names (TOML or JSON), docs/answers.md."),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score", min=0, max=1, help="Pairs from this score on: 0.5 to list, 0.8 to apply."
        ),
    ] = None,
) -> None:
    """Find datasets that are one under two names, and what else makes answers doubtful."""
    if apply and undo:
        raise UsageError("--apply and --undo exclude each other")
    if undo and (rules is not None or min_score is not None):
        raise UsageError("--undo takes back all that doctor recorded: no --rules, no --min-score")
    server = how.server()
    body: dict[str, Any] = {} if min_score is None else {"minScore": min_score}
    if rules is not None:
        body["rules"] = _read(rules)
    if apply or undo:
        done = server.post(PATH, {"action": "undo"} if undo else {"action": "apply", **body})
        if how.as_json:
            print_json(done)
        else:
            _print_done(done)
        return
    found = server.post(f"{PATH}/findings", body)
    if how.as_json:
        print_json(found)
    else:
        _print_found(found)
        server.print_page("doctor")
    if found["pairs"] or found["findings"]:
        raise typer.Exit(FOUND)


def _read(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix.lower() == ".json":
            return json.loads(text)
        return msgspec.toml.decode(text)
    except ImportError:
        raise UsageError(
            f"{file}: TOML cannot be read by this Python",
            hint="use Python 3.11 or newer, or pip install tomli, or write the file as .json",
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the rules in {file}: {error}") from error


def _print(text: str) -> None:
    out.print(text, soft_wrap=True)


def _name(named: dict[str, Any]) -> str:
    return escape(f"{named['namespace']}:{named['name']}")


def _print_done(done: dict[str, Any]) -> None:
    word, link = ("joined", "as") if done["action"] == "apply" else ("taken apart", "from")
    for one in done["aliases"]:
        _print(f"{word} {_name(one['alias'])} [dim]{link}[/] [cyan]{_name(one['dataset'])}[/]")
    count = len(done["aliases"])
    _print(
        f"{count} alias{'' if count == 1 else 'es'} {'recorded' if word == 'joined' else 'removed'}"
    )


def _print_found(found: dict[str, Any]) -> None:
    if not found["pairs"] and not found["findings"]:
        _print("nothing found")
    if found["pairs"]:
        _print("[bold]one dataset under two names[/]")
    for pair in found["pairs"]:
        sure = pair["score"] >= found["defaultScore"]
        score = f"[{'green' if sure else 'yellow'}]{pair['score']:.2f}[/]"
        _print(f"  {score} {_name(pair['alias'])}")
        _print(f"    =  [cyan]{_name(pair['dataset'])}[/]")
        _print(f"       {escape('; '.join(one['text'] for one in pair['evidence']))}")
    if (more := found["counts"]["pairs"] - len(found["pairs"])) > 0:
        _print(f"  [dim]and {more} more, none of them surer[/]")
    if found["counts"]["sure"]:
        _print(
            f"{found['counts']['sure']} of {found['defaultScore']} and more:"
            " headwater doctor --apply joins them, --undo takes that back"
        )
    if found["recorded"]:
        _print(f"{len(found['recorded'])} joined by doctor before")
    for kind, title in TITLES.items():
        some = [one for one in found["findings"] if one["kind"] == kind]
        if some:
            _print_findings(title, some, found["counts"][kind])
    if count := found["hidden"]:
        _print(f"[yellow]{hidden_text(count)}, and not looked at[/]")


def _print_findings(title: str, some: list[dict[str, Any]], total: int) -> None:
    _print(f"[bold]{title}[/] ({total})")
    for one in some[:SHOWN]:
        since = f" since {one['since']}" if one["since"] else ""
        text = escape(one["text"])
        if one["named"]:
            _print(f"  [cyan]{_name(one['named'])}[/] {text}{since}")
        else:
            _print(f"  {one['count']} times: {text}")
    if total > SHOWN:
        _print(f"  [dim]and {total - SHOWN} more: --json[/]")
