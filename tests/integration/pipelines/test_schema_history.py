"""A schema's history stays true with three producers, whatever of lineage is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import psutil
import psycopg
import pytest

from headwater.lab import process
from headwater.lab.clients import PostgresClient
from headwater.lab.demo.lineage_client import LineageClient
from headwater.lab.lab import Lab
from headwater.lab.process import Command
from headwater.lab.services.headwater import Server
from headwater.lab.waiting import wait_until

from .test_correct import SERVICES, Estate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.services.base import LabContext

TABLE, TOPIC, LANDING = "postgres shop.public.orders", "kafka orders", "warehouse default/orders_landing"  # fmt: skip
OF_STREAM = "warehouse default/orders"
STREAM = "iceberg-ingestion"
REPORTERS = ("orders-source", "orders-iceberg-sink", STREAM, "audit")
SECONDS = 600.0

# It reads the topic and takes its columns for others than they are.
AUDIT = """
import sys, time, headwater
with headwater.run("audit", heartbeat=2, processing="STREAMING") as run:
    run.inputs((sys.argv[1], "orders"), schema={"order_id": "int", "price": "double"})
    time.sleep(3600)
"""


class Reported(Estate):
    """The shop with a connector, a Spark stream and a program by hand that all report a topic."""

    def __init__(self, lab: Lab, folder: Path, store: str) -> None:
        super().__init__(lab)
        self.store = store
        self.lineage = LineageClient(lab.context)
        self.audit: subprocess.Popen[bytes] | None = None
        self.folder = folder

    def start(self) -> None:
        """Start whatever of lineage does not run, and wait until each producer has reported."""
        since = datetime.now(timezone.utc).isoformat()
        self.lab.up([*SERVICES, STREAM])
        with (self.folder / "audit.log").open("ab") as log:
            self.audit = subprocess.Popen(
                [sys.executable, "-c", AUDIT, self.lineage.namespaces["kafka"]],
                env={
                    **os.environ,
                    "OPENLINEAGE_URL": self.lineage.url,
                    "OPENLINEAGE_NAMESPACE": self.lineage.namespace,
                    "HEADWATER_STATE_DIR": str(self.folder / "journal"),
                },
                stdout=log,
                stderr=log,
            )
        for job in REPORTERS:
            wait_until(
                lambda job=job: self.lineage.events(job, since, "START,RUNNING"),  # type: ignore[misc]
                seconds=SECONDS,
                what=f"an event of {job}:\n{self.log(job)}",
                interval=1,
            )

    def log(self, job: str) -> str:
        """The end of what a stream of the lab logged."""
        file = self.lab.home.logs / f"{job}.log"
        return file.read_text()[-3000:] if file.exists() else ""

    def kill_lineage(self) -> None:
        """End the server and every producer at once, as a power cut would."""
        assert self.audit is not None
        running = process.find(self.lab.home.root)
        for service in ("server", "agent", STREAM):
            assert service in running, self.log(service)
            for member in process.family(running[service]):  # a driver's JVM would write on
                with suppress(psutil.NoSuchProcess):
                    member.kill()
        self.audit.kill()
        self.audit.wait()

    def rebuild(self) -> None:
        """Let the server start from a graph that was computed anew from its log."""
        self.lab.down(["server"])
        command = [sys.executable, "-m", "headwater", "rebuild", "--store", self.store]
        subprocess.run(command, check=True, capture_output=True)
        self.lab.up(["server"])

    def versions(self) -> dict[str, int]:
        """How many versions of its schema each dataset has."""
        return {
            dataset: len(self.lineage.dataset(dataset, "/history").get("versions", []))
            for dataset in (TABLE, TOPIC, LANDING, OF_STREAM)
        }


@pytest.fixture(params=["sqlite", "postgresql"])
def reported(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reported]:
    lab = Lab(tmp_path / "lab")
    made: Reported | None = None
    try:
        store = f"sqlite:///{tmp_path}/lineage.db"
        if request.param == "postgresql":
            lab.up(["postgres"])
            store = PostgresClient(lab, "postgres").database()

        usual = Server.command

        def command(service: Server, lab: LabContext) -> Command:
            argv, env = usual(service, lab)
            return Command([*argv, "--store", store], env)  # the last one counts

        monkeypatch.setattr(Server, "command", command)
        lab.up(SERVICES)
        made = Reported(lab, tmp_path, store)
        yield made
    finally:
        if made is not None and made.audit:
            made.audit.kill()
            made.audit.wait()
        lab.reset()


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_each_dataset_has_the_versions_that_its_story_made(reported: Reported) -> None:
    reported.traffic.send(50)
    reported.start()
    once = {TABLE: 1, TOPIC: 1, LANDING: 1, OF_STREAM: 1}
    wait_until(lambda: reported.versions() == once, seconds=SECONDS, what="each schema", interval=1)
    reported.kill_lineage()
    reported.traffic.send(20)
    reported.start()
    assert reported.versions() == once

    with psycopg.connect(reported.url, autocommit=True) as database:
        database.execute("alter table orders add column coupon text")
        database.execute("update orders set coupon = 'autumn'")
    altered = {**once, TABLE: 2, TOPIC: 2, LANDING: 2}
    wait_until(
        lambda: reported.versions() == altered,
        seconds=SECONDS,
        what=f"the new column, there are {reported.versions()}",
        interval=1,
    )
    reported.kill_lineage()
    reported.traffic.send(20)
    reported.start()
    assert reported.versions() == altered
    fields = reported.lineage.fields(TOPIC)
    assert "coupon" in fields
    history = reported.lineage.dataset(TOPIC, "/history")["versions"]
    types = [{f["name"]: f["type"] for f in version["fields"]}["order_id"] for version in history]
    assert types == ["string", "string"]
    reported.rebuild()
    assert reported.versions() == altered
    assert reported.lineage.dataset(TOPIC, "/history")["versions"] == history
