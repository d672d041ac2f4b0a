"""ClickHouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.values import pairs

from .base import Place, Plugin

if TYPE_CHECKING:
    from headwater.connect.plan import Plan


def clickhouse_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped table, or the topic itself, which may name its database first."""
    database = plan.get("database", "clickhouse.server.database", default="default")
    mark = plan.get("dbTopicSplitChar")
    if plan.flag("enableDbTopicSplit") and mark and topic.count(mark) == 1:
        database, _, topic = topic.partition(mark)
    table = pairs(plan.get("topic2TableMap"), "=").get(topic, topic)
    port = plan.get("port", default="8443")
    host = plan.get("hostname", "clickhouse.server.url")
    place = plan.place("clickhouse", host=host, port=port, database=database, table=table)
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
