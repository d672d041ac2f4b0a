"""What a story has at hand: a running pipeline, its lineage, and a printer of results."""

from __future__ import annotations

import shlex
import time
import uuid
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import psycopg
from psycopg import sql

from headwater.errors import HeadwaterError, UsageError
from headwater.lab import process
from headwater.lab.demo.batch_job import BATCH_SECONDS, BatchJob
from headwater.lab.demo.connectors import CONNECTORS, Shop
from headwater.lab.demo.lineage_client import LineageClient
from headwater.lab.demo.row_counts import RowCounter
from headwater.lab.demo.run import STREAMS
from headwater.lab.demo.traffic import OrderTraffic
from headwater.lab.launch import Launch
from headwater.lab.services import with_needs
from headwater.lab.services.logins import kafka_client
from headwater.lab.stories.base import Check, CheckOutcome, PageLink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.lab.lab import Lab
    from headwater.lab.process import Command
    from headwater.lab.stories.base import StoryListener

CHECK_SECONDS = 90.0
WRITE_SECONDS = 20.0
AWAY = (httpx.HTTPError, psycopg.Error, psutil.Error)
NEEDED = ("postgres", "kafka", "connect", "registry", "s3", "catalog", "server", "agent", *STREAMS)


class CheckFailedError(HeadwaterError):
    """A check that did not come true in time."""


class StoryRun:
    """One play of one story on one lab."""

    def __init__(self, lab: Lab, listener: StoryListener, seconds: float) -> None:
        self.lab = lab
        self.listener = listener
        self.seconds = seconds
        self.page_links: list[PageLink] = []
        self.checks: list[Check] = []
        self.text: list[str] = []

    def require(self) -> None:
        """A pipeline that runs, whole."""
        running = process.find(self.lab.home.root)
        missing = [name for name in NEEDED if name not in running]
        if not missing:
            missing = [name for name in CONNECTORS if not self.shop.config(name)]
        if missing:
            elsewhere = [home for home in running_homes() if home != self.lab.home.root]
            raise UsageError(
                f"the pipeline in {self.lab.home.root} does not run: no {', '.join(missing)}",
                hint=f"one that runs: --home {shlex.quote(str(elsewhere[0]))}"
                if elsewhere
                else "start it in another terminal: headwater demo",
            )

    def describe(self, text: str) -> None:
        """Report what happens to the listener."""
        self.listener.describe(text)

    def link_page(self, what: str, url: str, *, lasting: bool = True) -> None:
        """Link a page that shows it; `lasting` is whether it still does when all is put back."""
        self.page_links.append(PageLink(what=what, url=url, lasting=lasting))
        self.listener.show(self.page_links[-1])

    def show(self, text: str) -> None:
        """Text that belongs to the story's result."""
        self.text.append(text)

    def check(
        self,
        what: str,
        condition: Callable[[], CheckOutcome | bool],
        seconds: float = CHECK_SECONDS,
    ) -> None:
        """PageLink until something is as it should be; one that never is ends the play."""
        began = time.monotonic()
        while True:
            try:
                answer = condition()
                seen = answer if isinstance(answer, CheckOutcome) else CheckOutcome(answer)
            except Exception as error:  # noqa: BLE001  (what is away now may be back in a moment)
                seen = CheckOutcome(ok=False, found=f"{type(error).__name__}: {error}")
            past = time.monotonic() - began
            if seen.ok or past > seconds:
                break
            self.listener.wait(what, past, seconds)
            time.sleep(0.5)
        check = Check(what=what, ok=seen.ok, found=seen.found)
        self.checks.append(check)
        self.listener.checked(check)
        if not seen.ok:
            found = f"; found: {seen.found}" if seen.found else ""
            raise CheckFailedError(f"not seen within {seconds:.0f} s: {what}{found}")

    def check_state(self, job: str, state: str, *, not_run: str | None = None) -> str:
        """A job's newest run is in a state, and is another one than a run of before."""
        latest: dict[str, Any] = {}

        def seen() -> CheckOutcome:
            latest.update(self.lineage.latest(job))
            ok = latest["state"] == state and latest["id"] != not_run
            return CheckOutcome(ok, "" if ok else latest["state"])

        self.check(f"{job} is {state}{' in a new run' if not_run else ''}", seen)
        return str(latest["id"])

    def launch(self, *services: str, server: Command | None = None) -> None:
        """Start services again, without a look at what the lab was asked to run.

        `server` has further arguments and variables of the lineage server, until it is started again.
        """
        names, context = with_needs(services), self.lab.context
        with self.lab.home.locked():
            context.server_more = server or process.Command([])
            try:
                Launch(context, names, lambda _service, _state: None).run()
            finally:
                context.server_more = process.Command([])

    def batch(self, program: str, *arguments: str, name: str, env: Mapping[str, str]) -> None:
        """Run a program of the pipeline to its end."""
        began = time.monotonic()
        BatchJob(self.lab, program, *arguments, name=name, env=env).wait(
            beat=lambda: self.listener.wait(f"{name} runs", time.monotonic() - began, BATCH_SECONDS)
        )

    def leader(self, service: str) -> psutil.Process:
        """A service's process."""
        found = process.find(self.lab.home.root).get(service)
        if found is None:
            raise HeadwaterError(f"{service} does not run")
        return found

    def produce(self, topic: str, value: bytes) -> None:
        """Write a record past every converter, to a topic's first partition."""
        from confluent_kafka import Producer

        refused: list[object] = []
        address = {"bootstrap.servers": self.counter.bootstrap, "log_level": 0}
        producer = Producer({**address, **kafka_client(self.lab.context)})
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _: refused.append(error)
        )
        producer.flush(WRITE_SECONDS)
        if refused != [None]:
            raise HeadwaterError(f"Kafka did not take the record: {refused or 'no answer'}")

    def order(
        self,
        *,
        at: datetime | None = None,
        supplier: str = "acme",
        price: float = 9.99,
        extra: dict[str, str] | None = None,
    ) -> str:
        """One order of a customer of the story's; returns its id."""
        number = f"story-{uuid.uuid4().hex[:10]}"
        moment = at or datetime.now(timezone.utc)
        row = {
            "order_id": number,
            "item": "lamp",
            "price": price,
            "supplier": supplier,
            "bid_time": moment.astimezone(timezone.utc).replace(tzinfo=None),
            **(extra or {}),
        }
        statement = sql.SQL("insert into orders ({}) values ({})").format(
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join(sql.Placeholder() * len(row)),
        )
        with psycopg.connect(self.database_url) as database:
            database.execute(statement, list(row.values()))
        return number

    @cached_property
    def database_url(self) -> str:
        return self.lab.env()["POSTGRES_URL"]

    @cached_property
    def lineage(self) -> LineageClient:
        return LineageClient(self.lab.context)

    @cached_property
    def counter(self) -> RowCounter:
        return RowCounter(self.lab.context, self.database_url)

    @cached_property
    def shop(self) -> Shop:
        return Shop(self.lab.context)

    @cached_property
    def traffic(self) -> OrderTraffic:
        return OrderTraffic(self.database_url)


def running_homes() -> list[Path]:
    """The labs on this machine whose streams run."""
    homes = set()
    for one in psutil.process_iter():
        try:
            env = one.environ()
        except (psutil.Error, OSError):
            continue
        if env.get(process.SERVICE_MARK) in STREAMS and process.HOME_MARK in env:
            homes.add(Path(env[process.HOME_MARK]))
    return sorted(homes)
