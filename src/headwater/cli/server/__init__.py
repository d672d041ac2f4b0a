"""Commands around the lineage server: run it, ask it, and work on its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.cli.server import (
    alerts,
    audit,
    copies,
    diff,
    doctor,
    events,
    freshness,
    impact,
    purge,
    runs,
    serve,
    tags,
    tokens,
    trace,
    why,
)

if TYPE_CHECKING:
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Put these commands on the main one."""
    app.command()(serve.server)
    app.command("up", hidden=True)(serve.server)
    app.command()(serve.rebuild)
    app.command()(freshness.freshness)
    app.command()(diff.diff)
    app.command()(doctor.doctor)
    app.command()(impact.impact)
    app.command()(tags.tags)
    app.command()(trace.trace)
    app.command()(why.why)
    app.add_typer(alerts.app, name="alerts")
    app.add_typer(audit.app, name="audit")
    app.add_typer(copies.app, name="store")
    app.add_typer(events.app, name="events")
    app.add_typer(purge.app, name="purge")
    app.add_typer(runs.app, name="runs")
    app.add_typer(tokens.app, name="token")
