"""Confluent's own change data capture from Oracle, which is not Debezium's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.patterns import literals

from .base import Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_FULL = "fullyQualifiedTableName"
_PARTS = ("databaseName", "schemaName", "tableName")


def source(plan: Plan) -> Reading:
    """Confluent's own Oracle connector: topics named after the table, tables by an expression."""
    template = plan.get("table.topic.name.template", default=f"${{{_FULL}}}")
    inclusion = plan.get("table.inclusion.regex")
    wanted = plan.expression("table.inclusion.regex", inclusion)

    def place(parts: list[str]) -> Place | None:
        service = plan.get("oracle.pdb.name", "oracle.service.name", "oracle.sid")
        return plan.place(
            "oracle", host=plan.get("oracle.server"), port=plan.get("oracle.port"),
            service=service or parts[0], schema=parts[1], table=parts[2],
        )  # fmt: skip

    def topic(parts: list[str]) -> str:
        values = dict(zip(_PARTS, parts, strict=True)) | {_FULL: ".".join(parts)}
        return re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], m[0]), template)

    def reverse(seen: str) -> Place | None:
        parts = seen.split(".")
        if len(parts) != 3 or topic(parts) != seen or (wanted and not wanted.matches(seen)):
            return None
        return place(parts)

    redo = plan.get("redo.log.topic.name")
    listed = [name.split(".") for name in literals(inclusion) or ()] if inclusion else []
    listed = [parts for parts in listed if len(parts) == 3]
    if not listed and not plan.connector.active_topics:
        plan.problem("table.inclusion.regex names no tables one by one, and no topic was seen yet")
    return Reading(
        tuple(Origin(topic(parts), place(parts)) for parts in listed),
        reverse,
        hidden=lambda name: name == redo,
        closed=bool(listed),
    )


PLUGINS = (
    Plugin("oracle-cdc", ("io.confluent.connect.oracle.cdc.OracleCdcSourceConnector",
                          "OracleCdcSource"), "source",
           ("oracle.server", "oracle.port", "oracle.sid", "oracle.service.name",
            "oracle.pdb.name", "table.inclusion.regex", "table.topic.name.template",
            "redo.log.topic.name"), source=source, stores="Oracle"),
)  # fmt: skip
