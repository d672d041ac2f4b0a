"""Spanner as a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.plan import templated

from .base import Place, Plugin

if TYPE_CHECKING:
    from headwater.connect.plan import Plan


def spanner_sink(plan: Plan, topic: str) -> list[Place]:
    """A table of a Spanner database, where the project is named too."""
    project = plan.get("gcp.spanner.project.id", "gcp.spanner.project")
    table = templated(plan.get("table.name.format", default="${topic}"), topic)
    if not project:
        plan.problem("no key names the project, so no table is named")
        return []
    place = plan.place(
        "spanner", project=project, instance=plan.get("gcp.spanner.instance.id"),
        database=plan.get("gcp.spanner.database.id"), schema="public", table=table,
    )  # fmt: skip
    return [place] if place else []


PLUGINS = (
    Plugin(
        "spanner", ("io.confluent.connect.gcp.spanner.SpannerSinkConnector", "SpannerSink"),
        "sink",
        ("gcp.spanner.project.id", "gcp.spanner.project", "gcp.spanner.instance.id",
         "gcp.spanner.database.id", "table.name.format"),
        sink=spanner_sink, stores="Spanner",
    ),
)  # fmt: skip
