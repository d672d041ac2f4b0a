"""`headwater token`: who may send events to a server and read from it."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.output import AsJson, escape, out, print_json
from headwater.cli.server.store_options import StoreUrl, opened
from headwater.errors import UsageError

__all__ = ["app"]

app = typer.Typer(help="The tokens that clients authenticate with.", no_args_is_help=True)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Whom or what the token is for.")],
    role: Annotated[str, typer.Option(help="write, read or admin.")] = "write",
    namespaces: Annotated[
        str | None,
        typer.Option(
            help="With --role read: only these namespaces can be read. Names with commas between "
            "them; a * at the end of one stands for any rest.",
            show_default="all",
        ),
    ] = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it; it is not shown again."""
    from headwater.server.http.auth import create_token

    wanted = _names(namespaces)
    with opened(store, new=True) as target:
        made = create_token(target, name, role, wanted)
    if as_json:
        print_json({"name": name, "role": role, "namespaces": wanted, "token": made})
    else:
        out.print(made, soft_wrap=True, markup=False)


def _names(text: str | None) -> list[str]:
    if text is None:
        return []
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise UsageError("--namespaces names none", hint="leave it out to let all be read")
    return found


@app.command("list")
def list_all(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Show the tokens, never their secret part."""
    from headwater.lineage.openlineage.events import iso
    from headwater.server.http.auth import list_tokens

    with opened(store) as source:
        found = [
            {
                "id": t.id,
                "name": t.name,
                "role": t.role,
                "namespaces": t.namespaces,
                "created": iso(t.created),
                "revoked": iso(t.revoked) if t.revoked else None,
            }
            for t in list_tokens(source.connection)
        ]
    if as_json:
        print_json(found)
        return
    if not found:
        out.print("no tokens")
    for t in found:
        state = f"revoked {t['revoked']}" if t["revoked"] else "in use"
        limit = f"  only {', '.join(t['namespaces'])}" if t["namespaces"] else ""
        out.print(
            f"{t['id']}  {t['role']:<6} {escape(str(t['name']))}  {t['created']}  {state}{escape(limit)}",
            soft_wrap=True,
        )


@app.command("revoke")
def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="ID", help="As `headwater token list` shows it.")
    ],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token: requests with it are refused from now on."""
    from headwater.server.http.auth import revoke_token

    with opened(store) as target:
        revoke_token(target, token_id)
    if as_json:
        print_json({"revoked": token_id})
    else:
        out.print(f"token {token_id} is revoked", markup=False)
