"""Commands that put a question about lineage to a server, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.cli.questions import audit, diff, doctor, freshness, impact, tags, trace, why

if TYPE_CHECKING:
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Put these commands on the main one."""
    app.command()(diff.diff)
    app.command()(doctor.doctor)
    app.command()(freshness.freshness)
    app.command()(impact.impact)
    app.command()(tags.tags)
    app.command()(trace.trace)
    app.command()(why.why)
    app.add_typer(audit.app, name="audit")
