"""Spanner as a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.context import templated
from headwater.connect.derive.family import ExternalDataset, Plugin

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context


def spanner_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """A table of a Spanner database, where the project is named too."""
    project = context.get("gcp.spanner.project.id", "gcp.spanner.project")
    table = templated(context.get("table.name.format", default="${topic}"), topic)
    if not project:
        context.problem("no key names the project, so no table is named")
        return []
    place = context.place(
        "spanner", project=project, instance=context.get("gcp.spanner.instance.id"),
        database=context.get("gcp.spanner.database.id"), schema="public", table=table,
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
