"""A record that nobody can read stops a sink."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headwater.lab.stories.base import CheckOutcome, Story

if TYPE_CHECKING:
    from headwater.lab.stories.story_run import StoryRun

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
    shows = (
        "FAIL with the task and its trace; what lies downstream is no longer fresh, and `headwater"
        " why` says because of what."
    )

    def play(self, story_run: StoryRun) -> None:
        """Write a record that is no Avro, and watch the Iceberg sink stop."""
        before = story_run.check_state(SINK, "RUNNING")
        dead = story_run.counter.end_offset(DEAD)
        lineage = story_run.lineage
        story_run.link_page("the run that fails, with its trace", lineage.page(f"/runs/{before}"))
        for what, page in (
            ("what fails, and what hangs on it", lineage.page("/")),
            ("the table that is no longer fresh", lineage.dataset_page(TABLE)),
        ):
            story_run.link_page(what, page, lasting=False)
        story_run.describe(
            f"Writing {RECORD.decode()!r} into the topic {TOPIC}, where Avro belongs."
        )
        story_run.produce(TOPIC, RECORD)
        story_run.check("Connect reports that a task has failed", lambda: _failed_task(story_run))
        story_run.check(
            f"{SINK} is FAILED, with the task and its trace", lambda: _failed(story_run, before)
        )
        story_run.check(
            "the landing table is stale, and the sink is named as the cause",
            lambda: _stale(story_run),
        )
        story_run.check(
            "the table of the stream beside it is still live: it read the same topic",
            lambda: _verdict(story_run, BESIDE, "live"),
        )
        story_run.check(
            "the stream put the record aside, with the reason", lambda: _aside(story_run, dead)
        )
        name = story_run.lineage.name(TABLE)[1]
        story_run.describe(f"Asking: headwater why {name} --url {story_run.lineage.url}")
        story_run.check(
            f"the answer is {SINK} and its error, and no other job", lambda: _because(story_run)
        )

    def undo(self, story_run: StoryRun) -> None:
        """Let the sink skip what it cannot read, then be strict again."""
        if _states(story_run) != {"RUNNING"}:
            story_run.describe("The operator lets the sink pass over what it cannot read.")
            end = story_run.counter.end_offset(TOPIC)
            story_run.shop.apply(SINK, **{"errors.tolerance": "all"})
            story_run.order()  # its offset is committed with the next record that can be read
            story_run.check(
                "the sink has passed the bad record",
                lambda: _beyond(story_run.counter.committed(f"connect-{SINK}", TOPIC, 0), end),
            )
        if story_run.shop.config(SINK).get("errors.tolerance"):
            story_run.shop.apply(SINK)
            story_run.check(
                "the sink is strict again and runs", lambda: _states(story_run) == {"RUNNING"}
            )
        story_run.check_state(SINK, "RUNNING")
        story_run.check(
            "the landing table is live again", lambda: _verdict(story_run, TABLE, "live")
        )


def _states(story_run: StoryRun) -> set[str]:
    found = [part.get("state", "gone") for part in story_run.shop.states(SINK)]
    return set(found) if len(found) > 1 else {"no tasks"}


def _failed_task(story_run: StoryRun) -> CheckOutcome:
    parts = story_run.shop.states(SINK)
    failed = [part for part in parts if part.get("state") == "FAILED"]
    return CheckOutcome(bool(failed), ", ".join(str(part.get("state")) for part in parts))


def _failed(story_run: StoryRun, before: str) -> CheckOutcome:
    run = story_run.lineage.latest(SINK)
    error, trace = run.get("error") or "", run.get("stackTrace") or ""
    ok = run["state"] == "FAILED" and run["id"] == before and "task" in error and bool(trace)
    return CheckOutcome(
        ok, f"{run['state']}: {error.splitlines()[0] if error else 'no message'}"[:120]
    )


def _stale(story_run: StoryRun) -> CheckOutcome:
    found = story_run.lineage.dataset(TABLE, "/freshness")
    causes = [cause["job"]["name"] for cause in found.get("causes", []) if cause["root"]]
    text = f"{found.get('verdict')} since {found.get('since')}, because of {', '.join(causes)}"
    return CheckOutcome(found.get("verdict") == "stale" and SINK in causes, text)


def _because(story_run: StoryRun) -> CheckOutcome:
    found = story_run.lineage.dataset(TABLE, "/why")
    roots = [one for one in found.get("causes", []) if one["root"] and not one["planned"]]
    text = "; ".join(
        f"{one['named']['name']} {one['kind']}: {str(one['detail'] or '').partition(chr(10))[0]}"
        for one in roots
    )
    # A story played before may have taken a column back: a change of the schema is named beside.
    blamed = [(one["named"]["name"], one["kind"]) for one in roots if one["kind"] != "schema"]
    ok = (
        found.get("verdict") == "stale"
        and blamed == [(SINK, "failed")]
        and roots[0]["kind"] == "failed"
        and "task" in str(roots[0]["detail"])
        and roots[0]["path"][-1] == story_run.lineage.node(TABLE)
    )
    return CheckOutcome(ok, f"{found.get('verdict')}, because {text}"[:200])


def _verdict(story_run: StoryRun, table: str, wanted: str) -> CheckOutcome:
    verdict = story_run.lineage.dataset(table, "/freshness").get("verdict")
    return CheckOutcome(verdict == wanted, str(verdict))


def _aside(story_run: StoryRun, since: int) -> CheckOutcome:
    for record in story_run.counter.records(DEAD, since):
        if record.value == RECORD and record.key:
            return CheckOutcome(ok=True, found=str(json.loads(record.key).get("reason")))
    return CheckOutcome(ok=False, found=f"{DEAD} does not hold it")


def _beyond(committed: int, end: int) -> CheckOutcome:
    return CheckOutcome(committed >= end, f"at offset {committed}, the record before {end}")
