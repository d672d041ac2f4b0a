"""The demo: the whole orders pipeline on a lab, with lineage from one end to the other."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

import httpx

from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.demo.batch_job import BatchJob
from headwater.lab.demo.connectors import CONNECTORS, Shop
from headwater.lab.demo.row_counts import RowCounter
from headwater.lab.demo.traffic import OrderTraffic
from headwater.lab.demo.verdict import Judge
from headwater.lab.files import fetch
from headwater.lab.files.artifacts import lock
from headwater.lab.lab import LAKE
from headwater.lab.services import DEFAULT, bundles, with_needs
from headwater.lab.services.pipeline_streams import EXPORT_PROGRAM
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from headwater.lab.files.fetch import FetchProgress
    from headwater.lab.lab import Lab

STREAMS = ("supplier-stats", "iceberg-ingestion")
PROGRAMS = (
    ("supplier_stats.py", "supplier_stats"),
    (EXPORT_PROGRAM, "supplier-stats-export"),
)
SERVICES = (*DEFAULT, "server", "agent")
ENDED_SECONDS = 20.0
FIRST_ORDERS = 200
FIRST_SECONDS = 90.0


class Demo:
    """Starts the pipeline, keeps it busy, and ends it so that every run has its right end."""

    def __init__(self, lab: Lab, changed: Callable[[str, str], None]) -> None:
        self.lab = lab
        self.changed = changed
        self._batch: BatchJob | None = None
        self._ending = threading.Event()

    def start(
        self,
        progress: FetchProgress | None = None,
        *,
        hive: bool = False,
        secure: bool = False,
        lake: bool = False,
    ) -> None:
        """Bring up what the pipeline stands on; whatever must be downloaded comes first.

        With `hive`, the tables are kept in a Hive metastore, as they are in a home where they once were;
        with `secure`, the services ask for logins; with `lake`, the server's log goes to the lineage lake.
        """
        _ = self.lab.context.java  # a wrong Java is reported before anything comes down
        hive = hive or self.lab.home.settings.hive
        wanted = with_needs(
            [*SERVICES, *STREAMS, *(["hive"] if hive else []), *([LAKE] if lake else [])]
        )
        fetch.ensure(self.lab.context.cache, lock().select(bundles(wanted)), progress)
        self.lab.up(SERVICES, hive=hive, secure=secure, lake=lake, changed=self.changed)
        self.traffic.prepare()
        self.shop.create_tables()

    def flow(self) -> None:
        """Let orders flow: the connectors first, then the streams that read what they write."""
        for name in CONNECTORS:
            self.changed(name, "starting")
        self.shop.deploy(self.changed)
        # Streams read the registry when they start: the first orders bring the schemas there.
        before = self.counter.end_offset("orders")
        self.traffic.send(FIRST_ORDERS, bad=2)
        self.changed("orders, bids", "starting")
        wait_until(
            lambda: self.counter.end_offset("orders") >= before + FIRST_ORDERS,
            seconds=FIRST_SECONDS,
            what="the first orders in Kafka",
            interval=0.3,
        )
        self.changed("orders, bids", "running")
        self.lab.up(self._streams, changed=self._new_only)

    def summarise(self) -> None:
        """Run the batch job to its end, then the export of what it wrote."""
        for program, name in PROGRAMS:
            if self._ending.is_set():
                return
            self._batch = BatchJob(self.lab, program, name=name)
            self._batch.wait()

    def stop(self) -> None:
        """End jobs first, then connectors, then what they stood on."""
        self._ending.set()
        if self._batch:
            self._batch.stop()
        try:
            self._end_runs(process.find(self.lab.home.root))
        finally:
            self.lab.down()

    def _end_runs(self, running: Container[str]) -> None:
        """Let each job report its end while there is a server to take it."""
        if "server" not in running:
            return
        self.lab.down(self._streams)
        if "agent" not in running or "connect" not in running:
            return
        with suppress(httpx.HTTPError, HeadwaterError):  # a worker that hangs ends with the lab
            self.shop.stop()
            deadline = time.monotonic() + ENDED_SECONDS
            while self._goes_on() and time.monotonic() < deadline:
                time.sleep(0.3)

    @cached_property
    def traffic(self) -> OrderTraffic:
        return OrderTraffic(self._database)

    @cached_property
    def shop(self) -> Shop:
        return Shop(self.lab.context)

    @cached_property
    def counter(self) -> RowCounter:
        return RowCounter(self.lab.context, self._database)

    @cached_property
    def judge(self) -> Judge:
        return Judge(self.lab.context)

    @property
    def _streams(self) -> tuple[str, ...]:
        return (*STREAMS, LAKE) if self.lab.home.settings.lake else STREAMS

    @property
    def _database(self) -> str:
        return self.lab.env()["POSTGRES_URL"]

    def _goes_on(self) -> bool:
        """Whether the lineage server still waits for the end of a run."""
        try:
            return bool(self.judge.running())
        except httpx.HTTPError:
            return False

    def _new_only(self, service: str, state: str) -> None:
        if service in self._streams:
            self.changed(service, state)
