"""`headwater token` and `headwater runs`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.output import AsJson, out, print_json
from headwater.cli.remote import SERVER, post
from headwater.cli.store import StoreUrl, opened

__all__ = ["runs", "token"]

runs = typer.Typer(help="Runs, by hand.", no_args_is_help=True)
token = typer.Typer(help="The tokens that let clients in.", no_args_is_help=True)


@runs.command("abort")
def abort_run(
    run: Annotated[str, typer.Argument(metavar="ID", help="The run's UUID.")],
    url: Annotated[str, typer.Option("--url", help="Where the server answers.")] = SERVER,
    as_json: AsJson = False,
) -> None:
    """Close a run that will not end by itself. A token is read from HEADWATER_TOKEN."""
    from urllib.parse import quote

    path = f"/api/v2/runs/{quote(run, safe='')}/abort"
    said = post(url, path, "state", hint="say where it is: --url")["state"]
    if as_json:
        print_json({"run": run, "state": said})
    else:
        out.print(f"run {run} is {said}", markup=False)


@token.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Whom or what the token is for.")],
    role: Annotated[str, typer.Option(help="write, read or admin.")] = "write",
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it; it is not shown again."""
    from headwater.server.auth import create_token

    with opened(store) as target:
        made = create_token(target, name, role)
    if as_json:
        print_json({"name": name, "role": role, "token": made})
    else:
        out.print(made, soft_wrap=True, markup=False)


@token.command("list")
def list_all(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show the tokens, never their secret part."""
    from headwater.lineage.events import iso
    from headwater.server.auth import list_tokens

    with opened(store) as source:
        found = [
            {
                "id": t.id,
                "name": t.name,
                "role": t.role,
                "created": iso(t.created),
                "revoked": iso(t.revoked) if t.revoked else None,
            }
            for t in list_tokens(source.connection)
        ]
    if as_json:
        print_json(found)
        return
    for t in found:
        state = f"revoked {t['revoked']}" if t["revoked"] else "in use"
        out.print(
            f"{t['id']}  {t['role']:<6} {t['name']}  {t['created']}  {state}",
            markup=False,
            soft_wrap=True,
        )


@token.command("revoke")
def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="As `headwater token list` shows it.")
    ],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a token worthless from now on."""
    from headwater.server.auth import revoke_token

    with opened(store) as target:
        revoke_token(target, token_id)
    if as_json:
        print_json({"revoked": token_id})
    else:
        out.print(f"token {token_id} is revoked", markup=False)
