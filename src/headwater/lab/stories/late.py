"""Late data corrects a window that was already told."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headwater.lab.stories.base import Seen, Story

if TYPE_CHECKING:
    from headwater.lab.stories.stage import Stage

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

    def play(self, stage: Stage) -> None:
        """Order late, late again, and too late."""
        run = stage.check_state(STREAM, "RUNNING")
        stage.look("the run goes on", stage.lineage.job_page(STREAM))
        stage.look(
            "where a window's total comes from",
            stage.lineage.graph_page(f"kafka {TOPIC}", columns="1", column="total_price"),
        )
        moment = (datetime.now(timezone.utc) - LATE).replace(second=30, microsecond=0)
        start = stage.gauge.end_offset(TOPIC)
        stage.tell(f"An order of {moment:%H:%M}, 40 minutes late, comes in: {FIRST}.")
        stage.order(at=moment, supplier=SUPPLIER, price=float(FIRST))
        told: dict[str, Any] = {}
        stage.check("the window is written", lambda: _window(stage, start, moment, told))
        first = Decimal(str(told["total_price"]))
        count = int(told["count"])
        stage.tell(f"Another one of the same minute, later still: {SECOND}.")
        start = stage.gauge.end_offset(TOPIC)
        stage.order(at=moment, supplier=SUPPLIER, price=float(SECOND))
        stage.check(
            f"the window is corrected: {first + SECOND} of {count + 1} orders",
            lambda: _corrected(stage, start, moment, first + SECOND, count + 1),
        )
        old = datetime.now(timezone.utc) - TOO_LATE
        stage.tell("One that is three hours late: past the watermark of one hour.")
        start = stage.gauge.end_offset(TOPIC)
        order = stage.order(at=old, supplier=SUPPLIER, price=1.0)
        stage.check(
            "it is in default.orders, which keeps everything",
            lambda: stage.gauge.has_order("default.orders", order) is not None,
        )
        stage.order(at=moment, supplier=SUPPLIER, price=1.0)
        stage.check("the window goes on being corrected", lambda: _window(stage, start, moment, {}))
        stage.check("no window of three hours ago is written", lambda: _absent(stage, start, old))
        stage.check("the stream is in the same run", lambda: _same(stage, run))
        stage.check(
            "lineage leads from shop.public.orders.price to the window's total_price",
            lambda: stage.lineage.leads(
                "postgres shop.public.orders", "price", f"kafka {TOPIC}", "total_price"
            ),
        )

    def undo(self, stage: Stage) -> None:
        """Nothing to put back: orders are orders."""


def _windows(stage: Stage, since: int, moment: datetime) -> list[dict[str, Any]]:
    """What was told of the supplier's window around a moment, oldest first."""
    begin = moment.replace(second=0, microsecond=0)
    found = []
    for record in stage.gauge.records(TOPIC, since):
        value = json.loads(record.value or b"{}")
        if value.get("supplier") == SUPPLIER and _parsed(value.get("window_start")) == begin:
            found.append(value)
    return found


def _parsed(text: str | None) -> datetime | None:
    if not text:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _window(stage: Stage, since: int, moment: datetime, told: dict[str, Any]) -> Seen:
    found = _windows(stage, since, moment)
    if not found:
        return Seen(ok=False, found="no record of the window yet")
    told.update(found[-1])
    return Seen(ok=True, found=f"{found[-1]['total_price']} of {found[-1]['count']} orders")


def _corrected(stage: Stage, since: int, moment: datetime, total: Decimal, count: int) -> Seen:
    found = _windows(stage, since, moment)
    said = [(Decimal(str(one["total_price"])), int(one["count"])) for one in found]
    shown = f"{said[-1][0]} of {said[-1][1]} orders" if said else "no record of the window yet"
    return Seen(bool(said) and said[-1] == (total, count), shown)


def _absent(stage: Stage, since: int, moment: datetime) -> Seen:
    found = _windows(stage, since, moment)
    return Seen(not found, f"{len(found)} records")


def _same(stage: Stage, run: str) -> Seen:
    latest = stage.lineage.latest(STREAM)
    return Seen(latest["id"] == run and latest["state"] == "RUNNING", latest["state"])
