"""The lineage server is away for a while."""

from __future__ import annotations

import signal
import time
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

import httpx

from headwater.connect.life.state import load
from headwater.emit.outbox import Outbox
from headwater.lab import process
from headwater.lab.demo.connectors import CONNECTORS
from headwater.lab.demo.run import STREAMS
from headwater.lab.services.headwater import HEARTBEAT_SECONDS
from headwater.lab.stories.base import CheckOutcome, Story

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lab.stories.story_run import StoryRun

PAUSED = "orders-s3-sink"
STEADY = ("orders-source", "orders-iceberg-sink", *STREAMS)
STOP_SECONDS = 10.0
# A heartbeat is due within this time after the server is gone.
SURE_SECONDS = HEARTBEAT_SECONDS + 10


class Outage(Story):
    """Somebody upgrades the lineage server at noon."""

    name = "outage"
    title = "The lineage server is down for a minute"
    shows = "The pipeline does not notice, and nothing is missing after."

    def play(self, story_run: StoryRun) -> None:
        """Stop the server, let life go on, start it, and look for a gap."""
        runs = {job: story_run.check_state(job, "RUNNING") for job in (*STEADY, PAUSED)}
        processes = {name: story_run.leader(name) for name in ("agent", "connect", *STREAMS)}
        story_run.link_page("events a minute, and what changed", story_run.lineage.page("/"))
        story_run.link_page(
            "what happened meanwhile, delivered afterwards", story_run.lineage.page("/events")
        )
        story_run.describe(f"Stopping the lineage server for {story_run.seconds:.0f} s.")
        process.stop({story_run.leader("server"): signal.SIGTERM}, STOP_SECONDS)
        gone, since = time.monotonic(), _now()
        story_run.check("the lineage server does not answer", lambda: _away(story_run))
        self._meanwhile(story_run, gone)
        until = _now()
        for name, leader in processes.items():
            story_run.check(f"{name} is still the same process", partial(process.alive, leader))
        story_run.describe("Starting the lineage server again.")
        story_run.launch("server")
        story_run.check(
            f"the pause of {PAUSED} in the meantime is reported, and that it went on",
            lambda: _meantime(story_run, PAUSED, since, until, {"COMPLETE", "START"}),
        )
        story_run.check_state(PAUSED, "RUNNING", not_run=runs[PAUSED])
        for job in STEADY:
            story_run.check(
                f"{job} is RUNNING in the same run", partial(_same, story_run, job, runs[job])
            )
            if story_run.seconds >= SURE_SECONDS:
                story_run.check(
                    f"heartbeats of {job} from the time without a server have come",
                    partial(_meantime, story_run, job, since, until, {"RUNNING"}),
                )

    def undo(self, story_run: StoryRun) -> None:
        """Have the server and every connector run."""
        story_run.launch("server")
        for name in CONNECTORS:
            story_run.shop.resume(name)

    def _meanwhile(self, story_run: StoryRun, gone: float) -> None:
        """Data flows, and a connector is paused and resumed while no server takes events."""
        counter = story_run.counter
        counters: dict[str, Callable[[], int]] = {
            "orders in Kafka": partial(counter.end_offset, "orders"),
            "window totals in Kafka": partial(counter.end_offset, "supplier-stats"),
            "rows in default.orders": partial(counter.rows, "default.orders"),
        }
        before = {what: count() for what, count in counters.items()}
        story_run.traffic.send(5)
        story_run.describe(f"Pausing {PAUSED} in the meantime.")
        story_run.shop.pause(PAUSED)
        _until(story_run, "the first half", gone + story_run.seconds / 2)
        story_run.check("the agent saw the pause", partial(_seen, story_run, PAUSED, running=False))
        story_run.shop.resume(PAUSED)
        for what, count in counters.items():
            story_run.check(f"{what} go on", partial(_more, before[what], count))
        _until(story_run, "the rest of the time", gone + story_run.seconds)
        story_run.check(
            f"the agent saw that {PAUSED} went on", partial(_seen, story_run, PAUSED, running=True)
        )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def _until(story_run: StoryRun, what: str, moment: float) -> None:
    """Let time pass: the outage lasts as long as it was asked to."""
    whole = max(0.0, moment - time.monotonic())
    while (left := moment - time.monotonic()) > 0:
        story_run.listener.wait(what, whole - left, whole)
        time.sleep(min(0.5, left))


def _away(story_run: StoryRun) -> CheckOutcome:
    try:
        story_run.lineage.get("/api/v2/health")
    except httpx.TransportError as error:
        return CheckOutcome(ok=True, found=type(error).__name__)
    return CheckOutcome(ok=False, found="it answers")


def _seen(story_run: StoryRun, connector: str, *, running: bool) -> CheckOutcome:
    """Whether the agent has taken note of a connector's state; no server can be asked for it now."""
    outbox = Outbox(str(story_run.lab.home.data("agent") / "state.db"))
    try:
        stored = [load(value) for value in outbox.state().values()]
    finally:
        outbox.close()
    noted = any(one is not None and one.name == connector and one.open == running for one in stored)
    return CheckOutcome(noted, "" if noted else "its state has not changed")


def _more(before: int, count: Callable[[], int]) -> CheckOutcome:
    now = count()
    return CheckOutcome(now > before, f"{before:,} → {now:,}")


def _same(story_run: StoryRun, job: str, run: str) -> CheckOutcome:
    latest = story_run.lineage.latest(job)
    same = "the same run" if latest["id"] == run else "another run"
    return CheckOutcome(
        latest["id"] == run and latest["state"] == "RUNNING", f"{latest['state']}, {same}"
    )


def _meantime(
    story_run: StoryRun, job: str, since: str, until: str, kinds: set[str]
) -> CheckOutcome:
    events = story_run.lineage.events(job, since, ",".join(sorted(kinds)))
    reported = sorted((event["eventTime"], event["eventType"]) for event in events)
    inside = [kind for at, kind in reported if at <= until]
    return CheckOutcome(kinds <= set(inside), ", ".join(inside) or "nothing from that time")
