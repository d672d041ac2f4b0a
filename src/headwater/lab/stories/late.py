"""Late data corrects a window that was already written."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from headwater.lab.stories.base import CheckOutcome, Story

if TYPE_CHECKING:
    from headwater.lab.stories.story_run import StoryRun

STREAM, TOPIC, TABLE = "supplier-stats", "supplier-stats", "shop.public.supplier_stats"
SUPPLIER = "acme"
# The usual traffic is at most twenty minutes late, the stream waits an hour.
LATE, TOO_LATE = timedelta(minutes=40), timedelta(hours=3)
FIRST, SECOND = Decimal("10.00"), Decimal("5.50")


class Late(Story):
    """A truck's handheld was offline; its orders come in when everybody has seen the total."""

    name = "late"
    title = "Late data corrects a window"
    shows = "One run that goes on, a corrected total, and the path the late price took to it."

    def play(self, story_run: StoryRun) -> None:
        """Order late, late again, and too late."""
        run = story_run.check_state(STREAM, "RUNNING")
        story_run.link_page("the run goes on", story_run.lineage.job_page(STREAM))
        story_run.link_page(
            "where a window's total comes from",
            story_run.lineage.graph_page(f"kafka {TOPIC}", columns="1", column="total_price"),
        )
        moment = (datetime.now(timezone.utc) - LATE).replace(second=30, microsecond=0)
        before = _total(story_run, moment)
        story_run.describe(f"An order of {moment:%H:%M}, 40 minutes late, comes in: {FIRST}.")
        story_run.order(at=moment, supplier=SUPPLIER, price=float(FIRST))
        first = before.plus(FIRST)
        story_run.check(f"the window is written: {first}", lambda: _is(story_run, moment, first))
        story_run.describe(f"Another one of the same minute, later still: {SECOND}.")
        story_run.order(at=moment, supplier=SUPPLIER, price=float(SECOND))
        second = first.plus(SECOND)
        story_run.check(
            f"the window is corrected: {second}", lambda: _is(story_run, moment, second)
        )
        old = datetime.now(timezone.utc) - TOO_LATE
        closed = _total(story_run, old)
        story_run.describe("One that is three hours late: past the watermark of one hour.")
        order = story_run.order(at=old, supplier=SUPPLIER, price=1.0)
        story_run.check(
            "it is in default.orders, which keeps everything",
            lambda: story_run.counter.has_order("default.orders", order) is not None,
        )
        story_run.order(at=moment, supplier=SUPPLIER, price=1.0)
        third = second.plus(Decimal(1))
        story_run.check(
            f"the window goes on being corrected: {third}", lambda: _is(story_run, moment, third)
        )
        story_run.check(
            "the window of three hours ago is as it was", lambda: _is(story_run, old, closed)
        )
        story_run.check("the stream is in the same run", lambda: _same(story_run, run))
        story_run.check(
            "lineage leads from shop.public.orders.price to shop.public.supplier_stats.total_price",
            lambda: story_run.lineage.leads(
                "postgres shop.public.orders", "price", f"postgres {TABLE}", "total_price"
            ),
        )

    def undo(self, story_run: StoryRun) -> None:
        """Nothing to put back: orders are orders."""


class Total(NamedTuple):
    """What a window comes to."""

    price: Decimal = Decimal(0)
    orders: int = 0

    def plus(self, price: Decimal) -> Total:
        return Total(self.price + price, self.orders + 1)

    def __str__(self) -> str:
        return f"{self.price} of {self.orders} orders"


def _total(story_run: StoryRun, moment: datetime) -> Total:
    """The supplier's window around a moment as it stands in the shop's database again."""
    begin = moment.astimezone(timezone.utc).replace(second=0, microsecond=0, tzinfo=None)
    query = (
        "select total_price, count from supplier_stats where supplier = %s and window_start = %s"
    )
    with psycopg.connect(story_run.database_url) as database:
        row = database.execute(query, (SUPPLIER, begin)).fetchone()
    return Total(*row) if row else Total()


def _is(story_run: StoryRun, moment: datetime, expected: Total) -> CheckOutcome:
    found = _total(story_run, moment)
    return CheckOutcome(found == expected, str(found))


def _same(story_run: StoryRun, run: str) -> CheckOutcome:
    latest = story_run.lineage.latest(STREAM)
    return CheckOutcome(latest["id"] == run and latest["state"] == "RUNNING", latest["state"])
