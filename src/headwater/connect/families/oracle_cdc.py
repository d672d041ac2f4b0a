"""Confluent's own change data capture from Oracle, which is not Debezium's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.family import ExternalDataset, Plugin, SourceLineage, SourceTopic
from headwater.connect.derive.java_regex import literals

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_FULL = "fullyQualifiedTableName"
_PARTS = ("databaseName", "schemaName", "tableName")


def source(context: Context) -> SourceLineage:
    """Confluent's own Oracle connector: topics named after the table, tables by an expression."""
    template = context.get("table.topic.name.template", default=f"${{{_FULL}}}")
    inclusion = context.get("table.inclusion.regex")
    wanted = context.expression("table.inclusion.regex", inclusion)

    def place(parts: list[str]) -> ExternalDataset | None:
        service = context.get("oracle.pdb.name", "oracle.service.name", "oracle.sid")
        return context.place(
            "oracle", host=context.get("oracle.server"), port=context.get("oracle.port"),
            service=service or parts[0], schema=parts[1], table=parts[2],
        )  # fmt: skip

    def topic(parts: list[str]) -> str:
        values = dict(zip(_PARTS, parts, strict=True)) | {_FULL: ".".join(parts)}
        return re.sub(r"\$\{(\w+)\}", lambda m: values.get(m[1], m[0]), template)

    def reverse(seen: str) -> ExternalDataset | None:
        parts = seen.split(".")
        if len(parts) != 3 or topic(parts) != seen or (wanted and not wanted.matches(seen)):
            return None
        return place(parts)

    redo = context.get("redo.log.topic.name")
    listed = [name.split(".") for name in literals(inclusion) or ()] if inclusion else []
    listed = [parts for parts in listed if len(parts) == 3]
    if not listed and not context.connector.active_topics:
        context.problem(
            "table.inclusion.regex names no tables one by one, and no topic was seen yet"
        )
    return SourceLineage(
        tuple(SourceTopic(topic(parts), place(parts)) for parts in listed),
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
