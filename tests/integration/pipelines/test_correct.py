"""Totals are those that SQL computes in the shop's database, whatever is killed on the way."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from confluent_kafka import Producer

from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.clients import CatalogClient
from headwater.lab.demo.connectors import Shop
from headwater.lab.demo.traffic import OrderMix, OrderTraffic
from headwater.lab.lab import Lab
from headwater.lab.ports import LOOPBACK
from headwater.lab.services import DEFAULT
from headwater.lab.waiting import wait_until
from tests.integration.pipelines import jobs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STREAMS = ("supplier-stats", "iceberg-ingestion")
SERVICES = (*DEFAULT, "server", "agent")
GOOD = "price > 0 and supplier is not null"
WINDOWS = f"""
    select supplier, to_char(date_trunc('minute', bid_time), 'YYYY-MM-DD"T"HH24:MI'),
    sum(price), count(*) from orders where {GOOD} group by 1, 2
"""
HOURS = f"""
    select supplier, to_char(date_trunc('hour', bid_time), 'YYYY-MM-DD"T"HH24'),
    sum(price), count(*) from orders
    where {GOOD} and bid_time::date = (select max(bid_time::date) from orders where {GOOD})
    group by 1, 2
"""
CAUGHT_UP_SECONDS = 240.0


class Estate:
    """The shop and its pipeline on a lab, and the truth about both."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.bootstrap = f"{LOOPBACK}:{lab.context.port('kafka')}"
        self.url = lab.env()["POSTGRES_URL"]
        self.traffic = OrderTraffic(self.url, OrderMix(late=0.2, bad=0.01), seed=7)
        self.traffic.prepare()
        shop = Shop(lab.context)
        shop.create_tables()
        shop.deploy()

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as database:
            return database.execute(query.encode()).fetchall()

    def kill(self, service: str) -> None:
        process.find(self.lab.home.root)[service].send_signal(signal.SIGKILL)

    def revive(self) -> None:
        """What a supervisor does: start what is not there."""
        self.lab.up([*SERVICES, *STREAMS])

    def deliver_again(self, count: int) -> None:
        """Send records of the topic once more, as Connect does after a crash."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for record in jobs.records(self.bootstrap, "orders")[-count:]:
            producer.produce("orders", record.value(), record.key())
        assert producer.flush(30) == 0

    def landed(self) -> list[str]:
        """The ids in the table of orders, as often as they are there."""
        catalog = CatalogClient(self.lab, "catalog").client
        rows = catalog.load_table("default.orders").scan(selected_fields=("order_id",))
        found: list[str] = rows.to_arrow()["order_id"].to_pylist()
        return found

    def check(self) -> None:
        """Wait until all is through; then each order is there once and each total is right."""
        ids = sorted(row[0] for row in self.sql(f"select order_id from orders where {GOOD}"))
        windows = {(row[0], row[1]): (row[2], row[3]) for row in self.sql(WINDOWS)}

        def through() -> bool:
            if {"died"} & {row.state for row in self.lab.status(STREAMS)}:
                self.revive()  # a stream may give up on a broker that is away
            return (
                len(self.landed()) >= len(ids)
                and jobs.window_totals(self.bootstrap, "supplier-stats") == windows
            )

        try:
            wait_until(through, seconds=CAUGHT_UP_SECONDS, what="the streams", interval=1)
        except HeadwaterError:
            # Says what differs.
            assert jobs.window_totals(self.bootstrap, "supplier-stats") == windows
        assert sorted(self.landed()) == ids

    def states(self, job: str) -> list[str]:
        """The states of a job's runs in the lineage server, the newest first."""
        path = f"/api/v1/namespaces/{self.lab.home.settings.namespace}/jobs/{job}/runs?limit=100"
        answer = httpx.get(self.lab.context.url("server", path), trust_env=False, timeout=30)
        return [str(run["state"]) for run in answer.json()["runs"]]


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    lab = Lab(tmp_path / "lab")
    lab.up(SERVICES)
    try:
        yield Estate(lab)
    finally:
        lab.reset()


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_totals_are_those_of_sql_whatever_is_killed(estate: Estate, tmp_path: Path) -> None:
    estate.traffic.send(300, bad=3)
    wait_until(
        lambda: len(jobs.records(estate.bootstrap, "orders")) >= 300,
        seconds=120,
        what="the first orders in Kafka",
        interval=0.5,
    )
    estate.lab.up(STREAMS)
    estate.deliver_again(50)
    estate.check()
    for victim in (*STREAMS, "connect", "kafka", "server"):
        estate.traffic.send(200, bad=1)
        estate.kill(victim)
        estate.traffic.send(100)
        estate.revive()
        if victim == "connect":
            estate.deliver_again(100)
        estate.check()

    command = ["--table", "default.orders"]
    jobs.start(estate.lab, "supplier_stats.py", *command, folder=tmp_path / "batch").end()
    catalog = CatalogClient(estate.lab, "catalog").client
    rows = catalog.load_table("default.supplier_stats").scan().to_arrow().to_pylist()
    hours = {(r["supplier"], f"{r['hour']:%Y-%m-%dT%H}"): (r["total_price"], r["count"])
             for r in rows}  # fmt: skip
    assert hours == {(row[0], row[1]): (row[2], row[3]) for row in estate.sql(HOURS)}

    for stream in STREAMS:  # lineage has lost none of the ends, nor the run that goes on
        newest, *before = wait_until(
            lambda stream=stream: (  # type: ignore[misc]
                found if (found := estate.states(stream))[0] == "RUNNING" else None
            ),
            seconds=120,
            what=f"{stream} to run in the lineage server",
        )
        assert newest == "RUNNING"
        assert "ABORTED" in before
        assert "RUNNING" not in before

    bad = [row[0] for row in estate.sql(f"select order_id from orders where not ({GOOD})")]
    letters = [record.value() for record in jobs.records(estate.bootstrap, "orders-dead-letter")]
    assert len(bad) >= 8
    assert [one for one in bad if not any(one.encode() in letter for letter in letters)] == []
