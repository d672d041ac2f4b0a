from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headwater.lab.clients import unique
from headwater.server.store import open_store
from tests.integration.server.conftest import Process

from .lakes import TestLake
from .local import LocalLake, session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.server.store import Store


@pytest.fixture
def lake(lab: Any, kafka: Any, catalog: Any, tmp_path: Path) -> TestLake:
    return TestLake(lab, kafka, catalog, tmp_path / "lake")


@pytest.fixture
def server(lake: TestLake, tmp_path: Path) -> Iterator[Callable[[], Process]]:
    """A server that forwards its log to the lake's topic."""
    started: list[Process] = []

    def start() -> Process:
        target = f"{lake.kafka.bootstrap}/{lake.topic}"
        store = f"sqlite:///{tmp_path}/server.db"
        log = tmp_path / "server.log"
        started.append(Process(store, log, "--no-page", "--forward-kafka", target))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.stop()


@pytest.fixture(scope="package")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="package")
def local_spark(warehouse: Path) -> Iterator[SparkSession]:
    found = session(warehouse)
    yield found
    found.stop()


@pytest.fixture
def local(local_spark: SparkSession, warehouse: Path) -> LocalLake:
    return LocalLake(local_spark, warehouse, unique("lineage").replace("-", "_"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = open_store(f"sqlite:///{tmp_path}/server.db")
    yield found
    found.close()
