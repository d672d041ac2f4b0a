from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.server.conftest import Process

from .lakes import TestLake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
