"""Redshift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.context import templated
from headwater.connect.derive.family import ColumnProjection, ExternalDataset, Plugin
from headwater.lineage import naming

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context


def redshift_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """A table in a cluster named by its domain."""
    domain = context.get("aws.redshift.domain")
    table = templated(context.get("table.name.format", default="${topic}"), topic)
    port, database = (
        context.get("aws.redshift.port", default="5439"),
        context.get("aws.redshift.database"),
    )
    url = f"jdbc:redshift://{domain}:{port}/{database}"
    found = context.name(lambda: naming.from_jdbc(url, table)) if domain else None
    only = frozenset(context.names("fields.whitelist"))
    return (
        [ExternalDataset.of(found).with_columns(ColumnProjection(only=only or None))]
        if found
        else []
    )


PLUGINS = (
    Plugin(
        "redshift", ("io.confluent.connect.aws.redshift.RedshiftSinkConnector", "RedshiftSink"),
        "sink",
        ("aws.redshift.domain", "aws.redshift.port", "aws.redshift.database",
         "table.name.format", "fields.whitelist"),
        sink=redshift_sink, stores="Redshift",
    ),
)  # fmt: skip
