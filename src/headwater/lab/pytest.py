"""A pytest plug-in that gives tests a real stack: `pytest_plugins = ["headwater.lab.pytest"]`.

Each fixture is started once a run, only if a test uses it, and together with the others that the
collected tests use. Tests share the services and keep apart by unique names: `kafka.topic()`,
`s3.bucket()`, `postgres.database()`, and so on.

The lab lives in a temporary folder and is gone after the run. With `HEADWATER_LAB_HOME` set, that
lab is used and left running: handy while writing tests.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from headwater.lab.clients import (
    CatalogClient,
    ConnectClient,
    HiveClient,
    KafkaClient,
    PostgresClient,
    RegistryClient,
    S3Client,
    ServiceClient,
    SparkClient,
    unique,
)
from headwater.lab.lab import Lab
from headwater.lab.services import in_order

RUN_HOME = "HEADWATER_LAB_TEST_HOME"
WANTED = pytest.StashKey[list[str]]()

FIXTURES = {
    "kafka": KafkaClient,
    "connect": ConnectClient,
    "registry": RegistryClient,
    "s3": S3Client,
    "catalog": CatalogClient,
    "postgres": PostgresClient,
    "hive": HiveClient,
    "spark_cluster": SparkClient,
}
SERVICE_OF = {**{name: name for name in FIXTURES}, "spark_cluster": "spark"}


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist inherit the name, so that all share one lab.
    if hasattr(config, "workerinput"):
        return
    if os.environ.get("HEADWATER_LAB_HOME"):
        # A run within a run inherits its parent's lab, and must leave it there when it ends.
        os.environ.pop(RUN_HOME, None)
    else:
        os.environ[RUN_HOME] = str(Path(tempfile.gettempdir(), unique("headwater-lab")))


def pytest_collection_finish(session: pytest.Session) -> None:
    used = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    session.config.stash[WANTED] = in_order(SERVICE_OF[name] for name in used & FIXTURES.keys())


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput") or RUN_HOME not in os.environ:
        return
    home = Path(os.environ.pop(RUN_HOME))
    if home.is_dir():
        Lab(home).down()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Lab:
    """The lab, with every service up that the collected tests use."""
    home = os.environ.get(RUN_HOME) or os.environ.get("HEADWATER_LAB_HOME")
    found = Lab(Path(home) if home else None)
    wanted = request.config.stash.get(WANTED, [])
    if wanted:
        found.up(wanted)
    return found


def _fixture(name: str) -> Any:
    @pytest.fixture(scope="session", name=name)
    def use(lab: Lab) -> ServiceClient:
        client = FIXTURES[name](lab, SERVICE_OF[name])
        if isinstance(client, PostgresClient) and RUN_HOME in os.environ:
            # Tests kill processes, not the machine: what was written survives them without fsync,
            # which takes a minute of a run that makes hundreds of databases.
            client.run("alter system set fsync = off", "select pg_reload_conf()")
        return client

    return use


kafka = _fixture("kafka")
connect = _fixture("connect")
registry = _fixture("registry")
s3 = _fixture("s3")
catalog = _fixture("catalog")
postgres = _fixture("postgres")
hive = _fixture("hive")
spark_cluster = _fixture("spark_cluster")
