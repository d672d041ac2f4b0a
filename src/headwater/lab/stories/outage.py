"""The lineage server is away for a while."""

from __future__ import annotations

import signal
import time
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

import httpx

from headwater.lab import process
from headwater.lab.demo.connectors import CONNECTORS
from headwater.lab.demo.run import STREAMS
from headwater.lab.services.lineage import HEARTBEAT_SECONDS
from headwater.lab.stories.base import Seen, Story

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lab.stories.stage import Stage

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

    def play(self, stage: Stage) -> None:
        """Stop the server, let life go on, start it, and look for a gap."""
        runs = {job: stage.check_state(job, "RUNNING") for job in (*STEADY, PAUSED)}
        processes = {name: stage.leader(name) for name in ("agent", "connect", *STREAMS)}
        stage.look("events a minute, and what changed", stage.lineage.page("/"))
        stage.look("what happened meanwhile, delivered afterwards", stage.lineage.page("/events"))
        stage.tell(f"Stopping the lineage server for {stage.seconds:.0f} s.")
        process.stop({stage.leader("server"): signal.SIGTERM}, STOP_SECONDS)
        gone, since = time.monotonic(), _now()
        stage.check("the lineage server does not answer", lambda: _away(stage))
        self._meanwhile(stage, gone)
        until = _now()
        for name, leader in processes.items():
            stage.check(f"{name} is still the same process", partial(process.alive, leader))
        stage.tell("Starting the lineage server again.")
        stage.launch("server")
        stage.check(
            f"the pause of {PAUSED} in the meantime is told, and that it went on",
            lambda: _meantime(stage, PAUSED, since, until, {"COMPLETE", "START"}),
        )
        stage.check_state(PAUSED, "RUNNING", not_run=runs[PAUSED])
        for job in STEADY:
            stage.check(f"{job} is RUNNING in the same run", partial(_same, stage, job, runs[job]))
            if stage.seconds >= SURE_SECONDS:
                stage.check(
                    f"heartbeats of {job} from the time without a server have come",
                    partial(_meantime, stage, job, since, until, {"RUNNING"}),
                )

    def undo(self, stage: Stage) -> None:
        """Have the server and every connector run."""
        stage.launch("server")
        for name in CONNECTORS:
            stage.shop.resume(name)

    def _meanwhile(self, stage: Stage, gone: float) -> None:
        """Data flows, and a connector is paused and resumed while nobody can be told."""
        gauge = stage.gauge
        counters: dict[str, Callable[[], int]] = {
            "orders in Kafka": partial(gauge.end_offset, "orders"),
            "window totals in Kafka": partial(gauge.end_offset, "supplier-stats"),
            "rows in default.orders": partial(gauge.rows, "default.orders"),
        }
        before = {what: count() for what, count in counters.items()}
        stage.traffic.send(5)
        stage.tell(f"Pausing {PAUSED} in the meantime.")
        stage.shop.pause(PAUSED)
        _until(stage, "the first half", gone + stage.seconds / 2)
        stage.shop.resume(PAUSED)
        for what, count in counters.items():
            stage.check(f"{what} go on", partial(_more, before[what], count))
        _until(stage, "the rest of the time", gone + stage.seconds)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def _until(stage: Stage, what: str, moment: float) -> None:
    """Let time pass: the outage lasts as long as it was asked to."""
    whole = max(0.0, moment - time.monotonic())
    while (left := moment - time.monotonic()) > 0:
        stage.audience.wait(what, whole - left, whole)
        time.sleep(min(0.5, left))


def _away(stage: Stage) -> Seen:
    try:
        stage.lineage.get("/api/v2/health")
    except httpx.TransportError as error:
        return Seen(ok=True, found=type(error).__name__)
    return Seen(ok=False, found="it answers")


def _more(before: int, count: Callable[[], int]) -> Seen:
    now = count()
    return Seen(now > before, f"{before:,} → {now:,}")


def _same(stage: Stage, job: str, run: str) -> Seen:
    latest = stage.lineage.latest(job)
    same = "the same run" if latest["id"] == run else "another run"
    return Seen(latest["id"] == run and latest["state"] == "RUNNING", f"{latest['state']}, {same}")


def _meantime(stage: Stage, job: str, since: str, until: str, kinds: set[str]) -> Seen:
    events = stage.lineage.events(job, since, ",".join(sorted(kinds)))
    told = sorted((event["eventTime"], event["eventType"]) for event in events)
    inside = [kind for at, kind in told if at <= until]
    return Seen(kinds <= set(inside), ", ".join(inside) or "nothing from that time")
