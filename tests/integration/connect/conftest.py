"""One agent on the shared lab, and connectors of every kind for it to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .reporting import Reporting
from .shop import Shop
from .watching import ClusterAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lab.clients import (
        CatalogClient,
        ConnectClient,
        KafkaClient,
        PostgresClient,
        RegistryClient,
        S3Client,
    )


@pytest.fixture(scope="session")
def agent(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaClient,
    connect: ConnectClient,
    registry: RegistryClient,
) -> Iterator[ClusterAgent]:
    """An agent that looks twice a second."""
    made = ClusterAgent(
        tmp_path_factory.mktemp("agent"),
        connect.url,
        "--kafka-bootstrap", kafka.bootstrap,
        "--registry-url", registry.url,
        "--poll", "0.5",
        "--heartbeat", "5",
    )  # fmt: skip
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="session")
def shop(
    kafka: KafkaClient,
    connect: ConnectClient,
    registry: RegistryClient,
    postgres: PostgresClient,
    catalog: CatalogClient,
    s3: S3Client,
    tmp_path_factory: pytest.TempPathFactory,
) -> Shop:
    """Orders on their way from PostgreSQL to everywhere."""
    made = Shop(kafka, connect, registry, postgres, catalog, s3, tmp_path_factory.mktemp("shop"))
    made.open()
    return made


@pytest.fixture(scope="module")
def reporting(
    kafka: KafkaClient,
    postgres: PostgresClient,
    server: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Reporting]:
    made = Reporting(tmp_path_factory.mktemp("reporting"), kafka, postgres, server)
    yield made
    made.close()


@pytest.fixture(scope="module")
def watcher(
    reporting: Reporting, server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterAgent]:
    """An agent on the worker, whose events go where Debezium's go."""
    made = ClusterAgent(
        tmp_path_factory.mktemp("watcher"), reporting.connect.url,
        "--kafka-bootstrap", reporting.kafka.bootstrap, "--poll", "0.5", "--heartbeat", "5",
        env={"OPENLINEAGE_URL": server, "OPENLINEAGE_NAMESPACE": "lab"},
    ).start()  # fmt: skip
    yield made
    made.kill()
