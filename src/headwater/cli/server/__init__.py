"""Commands around the lineage server: run it, watch it, and work on its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.cli.server import alerts, events, purge, runs, serve, store, tokens

if TYPE_CHECKING:
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Put these commands on the main one."""
    app.command()(serve.server)
    app.command("up", hidden=True)(serve.server)
    app.command()(serve.rebuild)
    app.add_typer(alerts.app, name="alerts")
    app.add_typer(store.app, name="store")
    app.add_typer(events.app, name="events")
    app.add_typer(purge.app, name="purge")
    app.add_typer(runs.app, name="runs")
    app.add_typer(tokens.app, name="token")
