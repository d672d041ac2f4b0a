"""Late data corrects a window that was already written."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headwater.lab.stories.base import CheckOutcome, Story

if TYPE_CHECKING:
    from headwater.lab.stories.story_run import StoryRun

STREAM, TOPIC = "supplier-stats", "supplier-stats"
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
        story_run.look("the run goes on", story_run.lineage.job_page(STREAM))
        story_run.look(
            "where a window's total comes from",
            story_run.lineage.graph_page(f"kafka {TOPIC}", columns="1", column="total_price"),
        )
        moment = (datetime.now(timezone.utc) - LATE).replace(second=30, microsecond=0)
        start = story_run.counter.end_offset(TOPIC)
        story_run.describe(f"An order of {moment:%H:%M}, 40 minutes late, comes in: {FIRST}.")
        story_run.order(at=moment, supplier=SUPPLIER, price=float(FIRST))
        window: dict[str, Any] = {}
        story_run.check("the window is written", lambda: _window(story_run, start, moment, window))
        first = Decimal(str(window["total_price"]))
        count = int(window["count"])
        story_run.describe(f"Another one of the same minute, later still: {SECOND}.")
        start = story_run.counter.end_offset(TOPIC)
        story_run.order(at=moment, supplier=SUPPLIER, price=float(SECOND))
        story_run.check(
            f"the window is corrected: {first + SECOND} of {count + 1} orders",
            lambda: _corrected(story_run, start, moment, first + SECOND, count + 1),
        )
        old = datetime.now(timezone.utc) - TOO_LATE
        story_run.describe("One that is three hours late: past the watermark of one hour.")
        start = story_run.counter.end_offset(TOPIC)
        order = story_run.order(at=old, supplier=SUPPLIER, price=1.0)
        story_run.check(
            "it is in default.orders, which keeps everything",
            lambda: story_run.counter.has_order("default.orders", order) is not None,
        )
        story_run.order(at=moment, supplier=SUPPLIER, price=1.0)
        story_run.check(
            "the window goes on being corrected", lambda: _window(story_run, start, moment, {})
        )
        story_run.check(
            "no window of three hours ago is written", lambda: _absent(story_run, start, old)
        )
        story_run.check("the stream is in the same run", lambda: _same(story_run, run))
        story_run.check(
            "lineage leads from shop.public.orders.price to the window's total_price",
            lambda: story_run.lineage.leads(
                "postgres shop.public.orders", "price", f"kafka {TOPIC}", "total_price"
            ),
        )

    def undo(self, story_run: StoryRun) -> None:
        """Nothing to put back: orders are orders."""


def _windows(story_run: StoryRun, since: int, moment: datetime) -> list[dict[str, Any]]:
    """The records of the supplier's window around a moment, oldest first."""
    begin = moment.replace(second=0, microsecond=0)
    found = []
    for record in story_run.counter.records(TOPIC, since):
        value = json.loads(record.value or b"{}")
        if value.get("supplier") == SUPPLIER and _parsed(value.get("window_start")) == begin:
            found.append(value)
    return found


def _parsed(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _window(
    story_run: StoryRun, since: int, moment: datetime, window: dict[str, Any]
) -> CheckOutcome:
    found = _windows(story_run, since, moment)
    if not found:
        return CheckOutcome(ok=False, found="no record of the window yet")
    window.update(found[-1])
    return CheckOutcome(ok=True, found=f"{found[-1]['total_price']} of {found[-1]['count']} orders")


def _corrected(
    story_run: StoryRun, since: int, moment: datetime, total: Decimal, count: int
) -> CheckOutcome:
    found = _windows(story_run, since, moment)
    totals = [(Decimal(str(one["total_price"])), int(one["count"])) for one in found]
    shown = (
        f"{totals[-1][0]} of {totals[-1][1]} orders" if totals else "no record of the window yet"
    )
    return CheckOutcome(bool(totals) and totals[-1] == (total, count), shown)


def _absent(story_run: StoryRun, since: int, moment: datetime) -> CheckOutcome:
    found = _windows(story_run, since, moment)
    return CheckOutcome(not found, f"{len(found)} records")


def _same(story_run: StoryRun, run: str) -> CheckOutcome:
    latest = story_run.lineage.latest(STREAM)
    return CheckOutcome(latest["id"] == run and latest["state"] == "RUNNING", latest["state"])
