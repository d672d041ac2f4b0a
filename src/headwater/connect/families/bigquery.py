"""BigQuery."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.plan import sanitised
from headwater.connect.values import pairs

from .base import Place, Plugin, Projection

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_FIELD = re.compile(r"[^a-zA-Z0-9_]")


def bigquery_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped table, a `dataset:table` topic, or the topic in the default dataset."""
    mapped = pairs(plan.get("topic2TableMap", "topicsToTables", "topic2table.map"), ":=")
    table = mapped.get(topic, topic)
    dataset = plan.get("defaultDataset", "datasets", "default.dataset", "dataset")
    if "=" in dataset:
        choices = pairs(dataset, "=")
        dataset = choices.get(topic) or choices.get(".*") or ""
    if ":" in table:
        dataset, _, table = table.partition(":")
    if plan.flag("sanitizeTopics", "sanitize.topics"):
        table = sanitised(table)
    place = plan.place("bigquery", project=plan.get("project"), dataset=dataset, table=table)
    if place is None:
        return []
    clean = plan.flag("sanitizeFieldNames", "sanitize.field.names")
    rename = (lambda name: _FIELD.sub("_", name)) if clean else None
    return [place.with_columns(Projection(rename=rename))]


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
         "sanitizeFieldNames", "sanitize.field.names"),
        sink=bigquery_sink, stores="BigQuery",
    ),
)  # fmt: skip
