"""`headwater purge`: delete a job, a dataset or a namespace for good."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.options import spread
from headwater.cli.output import confirm, escape, out, print_json, visible
from headwater.cli.server.client import ServerOptions
from headwater.cli.server.store_options import StoreUrl, opened
from headwater.errors import UsageError

if TYPE_CHECKING:
    from headwater.cli.server.client import ServerClient

__all__ = ["app"]

app = typer.Typer(
    help="Delete something for good, with every event that names it.", no_args_is_help=True
)
Namespace = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Its namespace.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
COUNTS = ("jobs", "datasets", "records")


@dataclass(frozen=True)
class PurgeOptions(ServerOptions):
    """Which server deletes it, or in which store, and how the result is printed."""

    store: StoreUrl = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False


@app.command("job")
@spread
def purge_job(namespace: Namespace, name: Name, how: PurgeOptions) -> None:
    """Delete a job, its runs, and every event that names it."""
    _purge("job", namespace, name, how)


@app.command("dataset")
@spread
def purge_dataset(namespace: Namespace, name: Name, how: PurgeOptions) -> None:
    """Delete a dataset, and every event that names it."""
    _purge("dataset", namespace, name, how)


@app.command("namespace")
@spread
def purge_namespace(
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="Its name.")],
    how: PurgeOptions,
) -> None:
    """Delete a namespace, all jobs and datasets in it, and every event that names one."""
    _purge("namespace", namespace, "", how)


def _purge(kind: str, namespace: str, name: str, how: PurgeOptions) -> None:
    what = f"{kind} {name} of {namespace}" if name else f"{kind} {namespace}"
    if not how.yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{what} would be deleted for good", hint="say --yes to do it")
        confirm(f"Delete {visible(what)} and every event that names it, for good?")
    found = (
        _in_store(kind, namespace, name, how.store)
        if how.store
        else _on_server(kind, namespace, name, how.server())
    )
    if how.as_json:
        print_json(found)
    else:
        counts = ", ".join(f"{found[part]:,} {part}" for part in COUNTS)
        out.print(f"{escape(what)} was deleted: {counts}", soft_wrap=True)


def _in_store(kind: str, namespace: str, name: str, store: str) -> dict[str, Any]:
    from headwater.server.store.keep.purge import PurgeTarget, purge

    with opened(store) as held:
        return purge(held, PurgeTarget(kind, namespace, name))._asdict()


def _on_server(kind: str, namespace: str, name: str, server: ServerClient) -> dict[str, Any]:
    body = {"kind": kind, "namespace": namespace, "name": name, "confirm": name or namespace}
    answer = server.post("/api/v2/purge", body)
    return {part: answer[part] for part in COUNTS}
