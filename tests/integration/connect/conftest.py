"""One agent on the shared lab, and connectors of every kind for it to see."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import httpx
import pytest

from headwater.lab import ports
from headwater.lab.services.base import answers
from headwater.lab.waiting import wait_until

from .reporting import Reporting
from .shop import Shop
from .watching import HEADWATER, ClusterAgent

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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server in a process of its own."""
    port, folder = ports.free(), tmp_path_factory.mktemp("server")
    store = f"sqlite:///{folder}/server.db"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [HEADWATER, "server", "--port", str(port), "--store", store], stdout=log, stderr=log
        )
    url = f"http://127.0.0.1:{port}"

    def up() -> bool:
        try:
            return answers(f"{url}/api/v1/namespaces").is_success
        except httpx.HTTPError:
            return False

    wait_until(up, seconds=60, what="the server")
    yield url
    process.terminate()
    process.wait(30)


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
