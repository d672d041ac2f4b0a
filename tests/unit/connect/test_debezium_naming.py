"""Names that Debezium gives its job and datasets when it reports lineage itself."""

from __future__ import annotations

import pytest

from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.metadata import NoMetadata
from headwater.connect.model import Connector, Derived

ON = {"openlineage.integration.enabled": "true"}
SOURCE = {
    **ON,
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.hostname": "db",
    "database.port": "5432",
    "database.dbname": "shop",
    "table.include.list": "public.orders",
    "topic.prefix": "pg",
}
TRANSFORM = {
    "transforms": "lineage",
    "transforms.lineage.type": "io.debezium.transforms.openlineage.OpenLineage",
}
SINK = {
    **ON,
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "connection.url": "jdbc:postgresql://db:5432/shop",
    "topics": "orders",
}
KAFKA = "openlineage.integration.dataset.kafka.bootstrap.servers"
HISTORY = "schema.history.internal.kafka.bootstrap.servers"


class FakeMetadata(NoMetadata):
    bootstrap = "k1:9092"


def derived(config: dict[str, str]) -> Derived:
    return derive(Connector("c", None, config), FakeMetadata(), DeriveSettings("ns"))


def links(config: dict[str, str]) -> list[str]:
    found = derived(config)
    return [
        f"{link.namespace} {link.name}"
        for dataset in (*found.lineage.inputs, *found.lineage.outputs)
        for link in dataset.symlinks
    ]


@pytest.mark.parametrize(
    ("config", "job"),
    [
        (SOURCE, ("pg", "pg.0")),
        ({**SOURCE, "openlineage.integration.job.namespace": "cdc"}, ("cdc", "pg.0")),
        (SINK, ("c", "c.0")),
        ({**SINK, "openlineage.integration.job.namespace": "cdc"}, ("cdc", "c.0")),
    ],
)
def test_its_job_is_the_connectors(config: dict[str, str], job: tuple[str, str]) -> None:
    found = derived(config)
    assert (found.job.namespace, found.job.name, found.joined) == (*job, "debezium")


@pytest.mark.parametrize(
    "more",
    [
        {"openlineage.integration.enabled": "false"},
        {"headwater.job.name": "apart"},
        {"topic.prefix": "${env:PREFIX}"},
    ],
)
def test_it_is_apart_where_its_job_is_not_known_or_not_wanted(more: dict[str, str]) -> None:
    found = derived({**SOURCE, **more})
    assert found.joined == ""
    assert found.job.name in ("c", "apart")


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, []),  # it tells of no topics without its transform
        ({KAFKA: "k1:9092", **TRANSFORM}, []),
        ({KAFKA: "k1:9092,k2:9092", **TRANSFORM}, []),  # a list is known by its first
        (TRANSFORM, ["kafka://unknown:unknown pg.public.orders"]),
        ({HISTORY: "k9:9092,k1:9092", **TRANSFORM}, ["kafka://k9:9092 pg.public.orders"]),
        ({KAFKA: "k8:9092", HISTORY: "k9:9092", **TRANSFORM}, ["kafka://k8:9092 pg.public.orders"]),
        ({KAFKA: "${env:KAFKA}", **TRANSFORM}, []),
        ({"database.port": ""}, ["postgres://db:null shop.public.orders"]),
    ],
)
def test_a_name_of_its_own_stands_for_the_dataset(more: dict[str, str], wanted: list[str]) -> None:
    assert links({**SOURCE, **more}) == wanted


def test_a_sink_names_its_topics_without_a_transform() -> None:
    assert links({**SINK, KAFKA: "k9:9092"}) == ["kafka://k9:9092 orders"]
    assert links({**SINK, KAFKA: "k1:9092"}) == []
