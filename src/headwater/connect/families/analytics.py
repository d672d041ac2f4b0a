"""Analytical databases: Doris, StarRocks, QuestDB."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import pairs
from headwater.connect.derive.context import templated
from headwater.connect.derive.family import ExternalDataset, Plugin

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_CONF = re.compile(r"(?:^|::|;)\s*addr=([^;]+)")


def mapped_sink(context: Context, topic: str, store: str) -> list[ExternalDataset]:
    """Doris and StarRocks: one database, tables mapped from topics or named like them."""
    if context.get("record.tablename.field"):
        context.problem("record.tablename.field: the rows name the tables they go to")
        return []
    table = pairs(context.get(f"{store}.topic2table.map"), ":").get(topic, topic)
    host = context.get("doris.urls", "starrocks.http.url")
    port = context.get("doris.query.port", default="9030")
    first = re.sub(r"^\w+://", "", host.split(",")[0]).rpartition(":")
    place = context.place(
        store, host=first[0] or first[2], port=port,
        database=context.get("doris.database", "starrocks.database.name"), table=table,
    )  # fmt: skip
    return [place] if place else []


def questdb_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """One database a server."""
    host = context.get("host")
    if not host and (found := _CONF.search(context.get("client.conf.string"))):
        host = found[1]
    if not host:
        context.problem("neither host nor client.conf.string names a server")
        return []
    table = templated(context.get("table", default="${topic}"), topic)
    if "${" in table:
        context.problem("table: the rows decide on the table they go to")
        return []
    place = context.place("questdb", host=host, table=table)
    return [place] if place else []


PLUGINS = (
    Plugin(
        "doris", ("org.apache.doris.kafka.connector.DorisSinkConnector",), "sink",
        ("doris.urls", "doris.query.port", "doris.database", "doris.topic2table.map",
         "record.tablename.field"),
        sink=partial(mapped_sink, store="doris"), stores="Doris",
    ),
    Plugin(
        "starrocks", ("com.starrocks.connector.kafka.StarRocksSinkConnector",), "sink",
        ("starrocks.http.url", "starrocks.database.name", "starrocks.topic2table.map"),
        sink=partial(mapped_sink, store="starrocks"), stores="StarRocks",
    ),
    Plugin(
        "questdb", ("io.questdb.kafka.QuestDBSinkConnector",), "sink",
        ("host", "client.conf.string", "table"), sink=questdb_sink, stores="QuestDB",
    ),
)  # fmt: skip
