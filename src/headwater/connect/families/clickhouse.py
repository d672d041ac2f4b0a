"""ClickHouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import pairs
from headwater.connect.derive.family import ExternalDataset, Plugin

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context


def clickhouse_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The mapped table, or the topic itself, which may name its database first."""
    database = context.get("database", "clickhouse.server.database", default="default")
    mark = context.get("dbTopicSplitChar")
    if context.flag("enableDbTopicSplit") and mark and topic.count(mark) == 1:
        database, _, topic = topic.partition(mark)
    table = pairs(context.get("topic2TableMap"), "=").get(topic, topic)
    port = context.get("port", default="8443")
    host = context.get("hostname", "clickhouse.server.url")
    place = context.place("clickhouse", host=host, port=port, database=database, table=table)
    return [place] if place else []


PLUGINS = (
    Plugin(
        "clickhouse",
        ("com.clickhouse.kafka.connect.ClickHouseSinkConnector", "ClickHouseSink"), "sink",
        ("hostname", "port", "database", "topic2TableMap", "enableDbTopicSplit",
         "dbTopicSplitChar", "clickhouse.server.url", "clickhouse.server.database"),
        sink=clickhouse_sink, stores="ClickHouse",
    ),
)  # fmt: skip
