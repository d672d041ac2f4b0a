"""Confluent's own change data capture from Oracle, which is not Debezium's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan


def source(plan: Plan) -> Reading:
    """Confluent's own Oracle connector: topics named after the table, tables by an expression."""
    template = plan.get("table.topic.name.template", default="${fullyQualifiedTableName}")
    wanted = plan.expression("table.inclusion.regex")
    qualified = "${databaseName}.${schemaName}.${tableName}"
    plain = template.replace("${fullyQualifiedTableName}", qualified) == qualified

    def reverse(topic: str) -> Place | None:
        parts = topic.split(".")
        if not plain or len(parts) != 3 or (wanted and not wanted.matches(topic)):
            return None
        service = plan.get("oracle.pdb.name", "oracle.service.name", "oracle.sid")
        return plan.place(
            "oracle", host=plan.get("oracle.server"), port=plan.get("oracle.port"),
            service=service or parts[0], schema=parts[1], table=parts[2],
        )  # fmt: skip

    redo = plan.get("redo.log.topic.name")
    return Reading((), reverse, hidden=lambda topic: topic == redo)


PLUGINS = (
    Plugin("oracle-cdc", ("io.confluent.connect.oracle.cdc.OracleCdcSourceConnector",
                          "OracleCdcSource"), "source",
           ("oracle.server", "oracle.port", "oracle.sid", "oracle.service.name",
            "oracle.pdb.name", "table.inclusion.regex", "table.topic.name.template",
            "redo.log.topic.name"), source=source, stores="Oracle"),
)  # fmt: skip
