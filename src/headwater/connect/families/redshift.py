"""Redshift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.plan import templated
from headwater.lineage import naming

from .base import Place, Plugin, Projection

if TYPE_CHECKING:
    from headwater.connect.plan import Plan


def redshift_sink(plan: Plan, topic: str) -> list[Place]:
    """A table in a cluster named by its domain."""
    domain = plan.get("aws.redshift.domain")
    table = templated(plan.get("table.name.format", default="${topic}"), topic)
    port, database = (
        plan.get("aws.redshift.port", default="5439"),
        plan.get("aws.redshift.database"),
    )
    url = f"jdbc:redshift://{domain}:{port}/{database}"
    found = plan.name(lambda: naming.from_jdbc(url, table)) if domain else None
    only = frozenset(plan.names("fields.whitelist"))
    return [Place(found).with_columns(Projection(only=only or None))] if found else []


PLUGINS = (
    Plugin(
        "redshift", ("io.confluent.connect.aws.redshift.RedshiftSinkConnector", "RedshiftSink"),
        "sink",
        ("aws.redshift.domain", "aws.redshift.port", "aws.redshift.database",
         "table.name.format", "fields.whitelist"),
        sink=redshift_sink, stores="Redshift",
    ),
)  # fmt: skip
