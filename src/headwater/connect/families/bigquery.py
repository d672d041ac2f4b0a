"""BigQuery."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import pairs
from headwater.connect.derive.context import sanitised
from headwater.connect.derive.family import ColumnProjection, ExternalDataset, Plugin

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_MANAGED = ("BigQuerySink", "BigQueryStorageSink")


def bigquery_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The mapped table, a `dataset:table` topic, or the topic in the default dataset."""
    mapped = pairs(context.get("topic2TableMap", "topic2table.map"), ":=")
    table = mapped.get(topic) or _choice(context, "topicsToTables", topic)
    dataset = context.get("defaultDataset", "datasets", "default.dataset", "dataset")
    if "=" in dataset:
        dataset = _choice(context, "datasets", topic)
    if not table:
        table = topic
        if ":" in table and not mapped:
            dataset, _, table = table.partition(":")
        managed = context.connector.connector_class in _MANAGED
        # With a map of tables, names are not sanitized.
        if context.flag("sanitizeTopics", "sanitize.topics", default=managed) and not mapped:
            table = identifier(table)
    place = context.place("bigquery", project=context.get("project"), dataset=dataset, table=table)
    if place is None:
        return []
    clean = context.flag("sanitizeFieldNames", "sanitize.field.names")
    key = context.get("kafkaKeyFieldName", "kafka.key.field.name")
    return [
        place.with_columns(ColumnProjection(rename=identifier if clean else None, nested_key=key))
    ]


def identifier(name: str) -> str:
    """A name as BigQuery takes it: letters, digits and underscores, no digit first."""
    text = sanitised(name)
    return f"_{text}" if re.match(r"[^a-zA-Z_]", text) else text


def _choice(context: Context, key: str, topic: str) -> str:
    """The first of `expression=name` whose expression the topic fits."""
    for item, name in pairs(context.get(key), "=").items():
        expression = context.expression(key, item)
        if expression and expression.matches(topic):
            return expression.replace_first(topic, name)
    return ""


PLUGINS = (
    Plugin(
        "bigquery",
        ("com.wepay.kafka.connect.bigquery.BigQuerySinkConnector",
         "io.confluent.connect.bigquery.BigQuerySinkConnector",
         "com.aiven.kafka.connect.bigquery.BigQuerySinkConnector",
         "io.confluent.connect.bigquerystorage.BigQueryStorageSinkConnector",
         "BigQuerySink", "BigQueryStorageSink"),
        "sink",
        ("project", "defaultDataset", "datasets", "default.dataset", "dataset", "topic2TableMap",
         "topicsToTables", "topic2table.map", "sanitizeTopics", "sanitize.topics",
         "sanitizeFieldNames", "sanitize.field.names", "kafkaKeyFieldName",
         "kafka.key.field.name"),
        sink=bigquery_sink, stores="BigQuery",
    ),
)  # fmt: skip
