"""`headwater purge`: delete a job, a dataset or a namespace for good."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from headwater.cli.output import AsJson, out, print_json
from headwater.cli.store import StoreUrl, opened
from headwater.errors import HeadwaterError, UsageError

__all__ = ["app"]

app = typer.Typer(
    help="Delete something for good, with every event that names it.", no_args_is_help=True
)
Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Its namespace.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
Url = Annotated[
    str,
    typer.Option("--url", help="The server that does it; an admin token is in HEADWATER_TOKEN."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
SERVER = "http://127.0.0.1:5000"
LONG = 600


@app.command("job")
def purge_job(
    namespace: Namespace, name: Name, url: Url = SERVER, store: StoreUrl = None, yes: Yes = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Delete a job, its runs, and every event that names it."""
    _purge("job", namespace, name, url, store, yes=yes, as_json=as_json)


@app.command("dataset")
def purge_dataset(
    namespace: Namespace, name: Name, url: Url = SERVER, store: StoreUrl = None, yes: Yes = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Delete a dataset, and every event that names it."""
    _purge("dataset", namespace, name, url, store, yes=yes, as_json=as_json)


@app.command("namespace")
def purge_namespace(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="Its name.")],
    url: Url = SERVER,
    store: StoreUrl = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete a namespace, all jobs and datasets in it, and every event that names one."""
    _purge("namespace", namespace, "", url, store, yes=yes, as_json=as_json)


def _purge(
    kind: str, namespace: str, name: str, url: str, store: str | None, *, yes: bool, as_json: bool
) -> None:
    what = f"{kind} {name} of {namespace}" if name else f"{kind} {namespace}"
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{what} would be deleted for good", hint="say --yes to do it")
        typer.confirm(f"Delete {what} and every event that names it, for good?", abort=True)
    found = (
        _in_store(kind, namespace, name, store) if store else _on_server(kind, namespace, name, url)
    )
    if as_json:
        print_json(found)
    else:
        counts = ", ".join(f"{found[part]:,} {part}" for part in ("jobs", "datasets", "records"))
        out.print(f"{what} is gone: {counts}", markup=False, soft_wrap=True)


def _in_store(kind: str, namespace: str, name: str, store: str) -> dict[str, Any]:
    from headwater.server.store.purge import Target, purge

    with opened(store) as held:
        return purge(held, Target(kind, namespace, name))._asdict()


def _on_server(kind: str, namespace: str, name: str, url: str) -> dict[str, Any]:
    import httpx

    held = os.environ.get("HEADWATER_TOKEN")
    headers = {"authorization": f"Bearer {held}"} if held else {}
    body = {"kind": kind, "namespace": namespace, "name": name, "confirm": name or namespace}
    try:
        address = f"{url.rstrip('/')}/api/v2/purge"
        response = httpx.post(address, json=body, headers=headers, timeout=LONG)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise HeadwaterError(
            f"{url} does not answer: {error}",
            hint="say --url, or --store to do it without a server",
        ) from error
    try:
        answer = response.json()
        if response.is_error:
            raise HeadwaterError(str(answer["message"]))
        return {part: int(answer[part]) for part in ("records", "jobs", "datasets")}
    except (ValueError, KeyError, TypeError) as error:
        raise HeadwaterError(f"{url} does not answer as Headwater does") from error
