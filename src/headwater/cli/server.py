"""`headwater server` and the commands around a store: events, runs, tokens, rebuild."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import AsJson, err, out, print_json
from headwater.errors import HeadwaterError, UsageError

if TYPE_CHECKING:
    from headwater.server.store import Store

__all__ = ["events", "rebuild", "register", "runs", "server", "token"]

StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="sqlite:///FILE or postgresql://…  [default: a file in the user's data directory]",
        show_default=False,
    ),
]
Url = Annotated[str, typer.Option("--url", help="Where the server answers.")]
BATCH = 256
DAYS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}

events = typer.Typer(help="Take events out of a store, or put them in.", no_args_is_help=True)
runs = typer.Typer(help="Runs, by hand.", no_args_is_help=True)
token = typer.Typer(help="The tokens that let clients in.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Put these commands on the main one."""
    app.command()(server)
    app.command("up", hidden=True)(server)
    app.command()(rebuild)
    app.add_typer(events, name="events")
    app.add_typer(runs, name="runs")
    app.add_typer(token, name="token")


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    unit = DAYS.get(text[-1:].lower())
    try:
        return float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not a duration", hint="such as 90d, 12h, 30m or 45s"
        ) from None


def _open(url: str | None) -> Store:
    from headwater.server.serve import default_store
    from headwater.server.store import open_store

    return open_store(url or default_store())


def server(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 5000,
    store: StoreUrl = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with tokens, one a line, that may do everything.")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the web page.")] = True,
    insecure: Annotated[
        bool, typer.Option(help="Listen beyond this machine without any token.")
    ] = False,
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="TLS private key (PEM).")] = None,
    max_age: Annotated[
        str | None, typer.Option(help="Close runs that have been silent this long, such as 2d.")
    ] = None,
    body_limit: Annotated[int, typer.Option(help="The largest body, in bytes.")] = 10 * 1024 * 1024,
) -> None:
    """Take OpenLineage events in and answer questions about the graph."""
    from headwater.server.app import Settings
    from headwater.server.serve import read_tokens, serve

    settings = Settings(
        tokens=read_tokens(token_file),
        page=page,
        max_age=_seconds(max_age),
        body_limit=body_limit,
    )
    scheme = "https" if certificate else "http"
    err.print(f"headwater server on {scheme}://{host}:{port}")
    serve(
        host=host,
        port=port,
        store=store,
        settings=settings,
        insecure=insecure,
        certificate=certificate,
        key=key,
    )


def rebuild(store: StoreUrl = None) -> None:
    """Compute the graph anew from the log, and check that the log is whole."""
    from headwater.server.store.rebuild import rebuild as run

    opened = _open(store)
    count = run(opened)
    opened.close()
    out.print(f"{count:,} records read, the chain holds, the graph is rebuilt")


@events.command("export")
def export_events(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - for standard output.")],
    store: StoreUrl = None,
) -> None:
    """Write every event as it was sent, one a line."""
    from headwater.server.store.rebuild import export

    opened = _open(store)
    count = 0
    target = sys.stdout.buffer if file == "-" else Path(file).open("wb")  # noqa: SIM115
    with target as stream:
        for line in export(opened):
            stream.write(line + b"\n")
            count += 1
    opened.close()
    if file != "-":
        out.print(f"{count:,} events written")


@events.command("import")
def import_events(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Events, one a line; - for standard input.")
    ],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Take events from a file in; those already there are left alone."""
    opened = _open(store)
    counts = {"accepted": 0, "duplicates": 0, "refused": 0}
    number, batch = 0, []
    source = sys.stdin.buffer if file == "-" else _readable(file)
    with source as stream:
        for line in stream:
            number += 1
            if line.strip():
                batch.append((number, line.strip()))
            if len(batch) >= BATCH:
                _take(opened, batch, counts)
                batch = []
    _take(opened, batch, counts)
    opened.close()
    if as_json:
        print_json(counts)
    else:
        out.print(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    if counts["refused"]:
        raise typer.Exit(1)


def _readable(file: str) -> Any:
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def _take(store: Store, batch: list[tuple[int, bytes]], counts: dict[str, int]) -> None:
    for (number, _), receipt in zip(batch, store.append([line for _, line in batch]), strict=True):
        if receipt.error is not None:
            counts["refused"] += 1
            err.print(f"line {number}: {receipt.error}", markup=False)
        else:
            counts["duplicates" if receipt.duplicate else "accepted"] += 1


@runs.command("abort")
def abort_run(
    run: Annotated[str, typer.Argument(metavar="ID", help="The run's UUID.")],
    url: Url = "http://127.0.0.1:5000",
) -> None:
    """Close a run that will not end by itself. A token is read from HEADWATER_TOKEN."""
    import httpx

    held = os.environ.get("HEADWATER_TOKEN")
    headers = {"authorization": f"Bearer {held}"} if held else {}
    try:
        response = httpx.post(
            f"{url.rstrip('/')}/api/v2/runs/{run}/abort", headers=headers, timeout=30
        )
    except httpx.HTTPError as error:
        raise HeadwaterError(f"{url} does not answer: {error}") from error
    if response.is_error:
        raise HeadwaterError(
            response.json().get("message", f"{url} answered {response.status_code}")
        )
    out.print(f"run {run} is {response.json()['state']}")


@token.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Whom or what the token is for.")],
    role: Annotated[str, typer.Option(help="write, read or admin.")] = "write",
    store: StoreUrl = None,
) -> None:
    """Make a token and print it; it is not shown again."""
    from headwater.server.auth import create_token

    opened = _open(store)
    out.print(create_token(opened, name, role), soft_wrap=True, markup=False)
    opened.close()


@token.command("list")
def list_all(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show the tokens, never their secret part."""
    from headwater.lineage.events import iso
    from headwater.server.auth import list_tokens

    opened = _open(store)
    found = [
        {
            "id": t.id,
            "name": t.name,
            "role": t.role,
            "created": iso(t.created),
            "revoked": iso(t.revoked) if t.revoked else None,
        }
        for t in list_tokens(opened.connection)
    ]
    opened.close()
    if as_json:
        print_json(found)
        return
    for t in found:
        state = f"revoked {t['revoked']}" if t["revoked"] else "in use"
        out.print(f"{t['id']}  {t['role']:<6} {t['name']}  {t['created']}  {state}", markup=False)


@token.command("revoke")
def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="As `headwater token list` shows it.")
    ],
    store: StoreUrl = None,
) -> None:
    """Make a token worthless from now on."""
    from headwater.server.auth import revoke_token

    opened = _open(store)
    revoke_token(opened, token_id)
    opened.close()
    out.print(f"token {token_id} is revoked", markup=False)
