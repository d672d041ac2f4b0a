"""A record that nobody can read stops a sink."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headwater.lab.stories.base import Seen, Story

if TYPE_CHECKING:
    from headwater.lab.stories.stage import Stage

SINK = "orders-iceberg-sink"
TABLE = "warehouse default/orders_landing"
BESIDE = "warehouse default/orders"
TOPIC = "orders"
DEAD = "orders-dead-letter"
RECORD = b"this is no order"


class Poison(Story):
    """Garbage in a topic: the strict reader fails, the careful one puts it aside."""

    name = "poison"
    title = "A bad record fails a sink task"
    shows = "FAIL with the task and its trace; what lies downstream is no longer fresh."

    def play(self, stage: Stage) -> None:
        """Write a record that is no Avro, and watch the Iceberg sink stop."""
        before = stage.check_state(SINK, "RUNNING")
        dead = stage.gauge.end_offset(DEAD)
        stage.look("what fails, and what hangs on it", stage.lineage.page("/"))
        stage.look("the run that failed, with its trace", stage.lineage.job_page(SINK))
        stage.look("the table that is no longer fresh", stage.lineage.dataset_page(TABLE))
        stage.tell(f"Writing {RECORD.decode()!r} into the topic {TOPIC}, where Avro belongs.")
        stage.produce(TOPIC, RECORD)
        stage.check("Connect says that a task has failed", lambda: _failed_task(stage))
        stage.check(f"{SINK} is FAILED, with the task and its trace", lambda: _told(stage, before))
        stage.check(
            "the landing table is stale, and the sink is named as the cause",
            lambda: _stale(stage),
        )
        stage.check(
            "the table of the stream beside it is still live: it read the same topic",
            lambda: _verdict(stage, BESIDE, "live"),
        )
        stage.check("the stream put the record aside, with the reason", lambda: _aside(stage, dead))

    def undo(self, stage: Stage) -> None:
        """Let the sink skip what it cannot read, then be strict again."""
        if _states(stage) != {"RUNNING"}:
            stage.tell("The operator lets the sink pass over what it cannot read.")
            end = stage.gauge.end_offset(TOPIC)
            stage.shop.apply(SINK, **{"errors.tolerance": "all"})
            stage.order()  # its offset is committed with the next record that can be read
            stage.check(
                "the sink has passed the bad record",
                lambda: _beyond(stage.gauge.committed(f"connect-{SINK}", TOPIC, 0), end),
            )
        if stage.shop.config(SINK).get("errors.tolerance"):
            stage.shop.apply(SINK)
            stage.check("the sink is strict again and runs", lambda: _states(stage) == {"RUNNING"})
        stage.check_state(SINK, "RUNNING")
        stage.check("the landing table is live again", lambda: _verdict(stage, TABLE, "live"))


def _states(stage: Stage) -> set[str]:
    found = [part.get("state", "gone") for part in stage.shop.states(SINK)]
    return set(found) if len(found) > 1 else {"no tasks"}


def _failed_task(stage: Stage) -> Seen:
    parts = stage.shop.states(SINK)
    failed = [part for part in parts if part.get("state") == "FAILED"]
    return Seen(bool(failed), ", ".join(str(part.get("state")) for part in parts))


def _told(stage: Stage, before: str) -> Seen:
    run = stage.lineage.latest(SINK)
    error, trace = run.get("error") or "", run.get("stackTrace") or ""
    ok = run["state"] == "FAILED" and run["id"] == before and "task" in error and bool(trace)
    return Seen(ok, f"{run['state']}: {error.splitlines()[0] if error else 'no message'}"[:120])


def _stale(stage: Stage) -> Seen:
    found = stage.lineage.dataset(TABLE, "/freshness")
    causes = [cause["job"]["name"] for cause in found.get("causes", []) if cause["root"]]
    said = f"{found.get('verdict')} since {found.get('since')}, because of {', '.join(causes)}"
    return Seen(found.get("verdict") == "stale" and SINK in causes, said)


def _verdict(stage: Stage, table: str, wanted: str) -> Seen:
    verdict = stage.lineage.dataset(table, "/freshness").get("verdict")
    return Seen(verdict == wanted, str(verdict))


def _aside(stage: Stage, since: int) -> Seen:
    for record in stage.gauge.records(DEAD, since):
        if record.value == RECORD and record.key:
            return Seen(ok=True, found=str(json.loads(record.key).get("reason")))
    return Seen(ok=False, found=f"{DEAD} does not hold it")


def _beyond(committed: int, end: int) -> Seen:
    return Seen(committed >= end, f"at offset {committed}, the record before {end}")
