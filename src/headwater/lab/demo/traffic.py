"""Realistic orders and bids in the shop's database."""

from __future__ import annotations

import random
import time
import uuid
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

if TYPE_CHECKING:
    from collections.abc import Sequence

SUPPLIERS = ("acme", "globex", "initech", "umbrella", "hooli")
ITEMS = ("lamp", "desk", "chair", "shelf", "clock", "rug", "mirror")
LATE = timedelta(minutes=20)
TABLES = (
    (
        "create table if not exists orders (order_id text primary key, item text,"
        " price numeric(10,2), supplier text, bid_time timestamp)"
    ),
    (
        "create table if not exists bids (bid_id bigint generated always as identity primary key,"
        " order_id text, price numeric(10,2), supplier text, bid_time timestamp)"
    ),
)


class OrderMix(NamedTuple):
    """How much of the traffic is out of the ordinary, as shares of one."""

    late: float = 0.05
    bad: float = 0.001


class OrderRate:
    """How many orders are due: few come one by one, many in groups, ten times a second."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.interval = min(0.1, 1 / rate)
        self._began, self._due = time.monotonic(), 0

    def due(self) -> int:
        """Orders since the last time it was asked; the first one is due at once."""
        count = int((time.monotonic() - self._began) * self.rate) + 1 - self._due
        self._due += count
        return count


class OrderTraffic:
    """Customers that order; every order draws a few bids."""

    def __init__(self, url: str, mix: OrderMix | None = None, seed: int | None = None) -> None:
        self.url = url
        self.mix = mix or OrderMix()
        self._random = random.Random(seed)  # noqa: S311

    def prepare(self) -> None:
        """Make the shop's tables unless they are there."""
        with psycopg.connect(self.url, autocommit=True) as database:
            for table in TABLES:
                database.execute(table)

    def send(self, count: int, *, bad: int | None = None) -> None:
        """Let so many customers order; `bad` of them wrongly, else the mix decides."""
        orders = [self._order() for _ in range(count)]
        spoiled = range(bad) if bad is not None else self._chosen(count)
        for number in spoiled:
            orders[number] = self._spoiled(orders[number])
        bids = [
            (order[0], self._price(), self._random.choice(SUPPLIERS), order[4])
            for order in orders
            for _ in range(self._random.randint(0, 2))
        ]
        with psycopg.connect(self.url) as database, database.cursor() as cursor:
            cursor.executemany("insert into orders values (%s, %s, %s, %s, %s)", orders)
            cursor.executemany(
                "insert into bids (order_id, price, supplier, bid_time) values (%s, %s, %s, %s)",
                bids,
            )

    def _order(self) -> list[Any]:
        at = datetime.now(timezone.utc).replace(tzinfo=None)
        if self._random.random() < self.mix.late:
            at -= LATE * self._random.random()
        supplier = self._random.choice(SUPPLIERS)
        return [uuid.uuid4().hex[:16], self._random.choice(ITEMS), self._price(), supplier, at]

    def _price(self) -> float:
        return self._random.randint(100, 99_999) / 100

    def _chosen(self, count: int) -> Sequence[int]:
        return [n for n in range(count) if self._random.random() < self.mix.bad]

    def _spoiled(self, order: list[Any]) -> list[Any]:
        """No supplier, or a price nobody can pay."""
        wrong = list(order)
        if self._random.random() < 0.5:
            wrong[3] = None
        else:
            wrong[2] = -abs(wrong[2])
        return wrong
