"""One agent on the shared lab, and connectors of every kind for it to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .shop import Shop
from .watching import Agent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lab.used import (
        UsedCatalog,
        UsedConnect,
        UsedKafka,
        UsedPostgres,
        UsedRegistry,
        UsedS3,
    )


@pytest.fixture(scope="session")
def agent(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: UsedKafka,
    connect: UsedConnect,
    registry: UsedRegistry,
) -> Iterator[Agent]:
    """An agent that looks twice a second."""
    made = Agent(
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
    kafka: UsedKafka,
    connect: UsedConnect,
    registry: UsedRegistry,
    postgres: UsedPostgres,
    catalog: UsedCatalog,
    s3: UsedS3,
    tmp_path_factory: pytest.TempPathFactory,
) -> Shop:
    """Orders on their way from PostgreSQL to everywhere."""
    made = Shop(kafka, connect, registry, postgres, catalog, s3, tmp_path_factory.mktemp("shop"))
    made.open()
    return made
