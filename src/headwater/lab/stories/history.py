"""A moment that the lineage server no longer keeps is answered from the lake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.clients import KafkaClient
from headwater.lab.services.lake import lake_env
from headwater.lab.stories.base import CheckOutcome, Story
from headwater.lineage.openlineage.writer import facet, head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lab.stories.story_run import StoryRun

PREFIX = "history"
PRODUCER = "https://example.com/nightly"
"""Of the story's topic, of the namespace of its tables, and of its jobs."""
SPACE = "s3://history"
JOBS = "history"
REPORT, TILL, ORDERS = "sales/report", "till/dump.csv", "web/orders"
DAYS, KEPT, AGO = 730, 30, 365
MOVED = 200
"""So many days ago the till was given up and orders came from the web."""
STOP_SECONDS = 10.0
ASK_SECONDS = 120.0
FROM_LAKE = "answered from the lake"


class Nightly(NamedTuple):
    """A job of every night: what it reads, what it writes, and each column of that with its source."""

    name: str
    inputs: tuple[str, ...]
    output: str
    columns: dict[str, tuple[str, str]]


_SALES = {"shop": ("sales/raw", "shop"), "revenue": ("sales/raw", "amount")}
NIGHTLY = {
    "till": Nightly(
        "load-sales", (TILL,), "sales/raw", {"shop": (TILL, "branch"), "amount": (TILL, "total")}
    ),
    "web": Nightly(
        "load-sales", (ORDERS,), "sales/raw", {"shop": (ORDERS, "shop"), "amount": (ORDERS, "price")}
    ),
    "sum": Nightly("sum-sales", ("sales/raw",), "sales/daily", _SALES),
    "report": Nightly(
        "report", ("sales/daily",), REPORT, {"revenue": ("sales/daily", "revenue")}
    ),
}  # fmt: skip


class History(Story):
    """An auditor asks where the report of last year came from."""

    name = "history"
    title = "A year ago, on a server that keeps 30 days"
    shows = (
        "`headwater trace --at` a year ago, answered from the lake, with the source that the report"
        " had then."
    )

    def play(self, story_run: StoryRun) -> None:
        """Load two years into a lake, and the last of them into the server; then ask."""
        if story_run.lab.home.settings.hive:
            raise HeadwaterError("a lake and a Hive metastore exclude each other")
        mark, now = uuid.uuid4().hex[:6], datetime.now(timezone.utc)
        kafka, space = KafkaClient(story_run.lab, "kafka"), f"{PREFIX}_{mark}"
        topic = kafka.topic(PREFIX)
        nights = {ago: list(_events(now, ago)) for ago in range(DAYS, 0, -1)}
        years = [event for night in nights.values() for event in night]
        story_run.describe(f"{len(years):,} events of two years go to the topic {topic}.")
        kafka.produce(topic, years)
        story_run.describe("Loading them into a lake, with its derived tables.")
        story_run.batch(
            "lake.py",
            *("--once", "--topic", topic, "--namespace", space),
            name=f"{PREFIX}-load",
            env={"OPENLINEAGE_JOBNAME": f"{PREFIX}-load"},
        )
        lake = f"iceberg://lab/{space}"
        asking = _Asking(story_run, lake)
        story_run.check(
            f"the lake has {len(years):,} events, each once, and {DAYS} days of runs",
            partial(_loaded, asking, len(years)),
        )
        last = [event for ago in range(KEPT, 0, -1) for event in nights[ago]]
        story_run.describe(f"The server has the last {KEPT} days: {len(last)} events.")
        body = b"\n".join(last)
        story_run.lineage.http.post("/api/v2/events", content=body).raise_for_status()
        before = now - timedelta(days=AGO)
        at = before.isoformat()
        story_run.check(
            f"now the report comes from {ORDERS}", lambda: asking.source(ORDERS, TILL, at=None)
        )
        story_run.check(
            "the server by itself knows nothing of it a year ago",
            lambda: _unknown(asking.run("trace", asking.report, "--at", at, check=False)),
        )
        story_run.describe(f"Starting the server with --keep {KEPT}d --lake {lake}.")
        process.stop({story_run.leader("server"): signal.SIGTERM}, STOP_SECONDS)
        words = ["--keep", f"{KEPT}d", "--lake", lake]
        story_run.launch("server", server=process.Command(words, lake_env(story_run.lab.context)))
        story_run.link_page(
            "the report a year ago, from the lake",
            story_run.lineage.graph_page(f"{SPACE} {REPORT}", 6, at=at),
            lasting=False,
        )
        story_run.check(
            f"a year ago it came from {TILL}, answered from the lake",
            lambda: asking.source(TILL, ORDERS, at=at, from_lake=True),
        )
        story_run.check(
            "the server says the same as the lake asked by itself",
            lambda: asking.trace(at=at) == {**asking.trace(at=at, lake=lake), "source": "lake"},
        )
        story_run.check(
            "what it keeps is answered by the server",
            lambda: asking.source(ORDERS, TILL, at=(now - timedelta(days=1)).isoformat()),
        )
        story_run.check(
            f"headwater diff between then and now names {TILL} and {ORDERS}",
            lambda: _named(
                asking.run("diff", "--from", at, "--around", asking.report), TILL, ORDERS
            ),
        )
        story_run.show(asking.text(at))

    def undo(self, story_run: StoryRun) -> None:
        """Start the server as it was, drop the tables and the topic, and hide what was reported."""
        if "server" in process.find(story_run.lab.home.root):
            process.stop({story_run.leader("server"): signal.SIGTERM}, STOP_SECONDS)
        story_run.launch("server")
        catalog = story_run.counter.catalog
        spaces = [name for (name, *_) in catalog.list_namespaces() if name.startswith(PREFIX)]
        for space in spaces:
            for view in catalog.list_views(space):
                catalog.drop_view(view)
            for table in catalog.list_tables(space):
                catalog.purge_table(table)
            catalog.drop_namespace(space)
        admin = KafkaClient(story_run.lab, "kafka").admin
        topics = [name for name in admin.list_topics(timeout=30).topics if name.startswith(PREFIX)]
        for future in (admin.delete_topics(topics) if topics else {}).values():
            future.result(30)
        lineage = story_run.lineage
        for job in lineage.jobs():
            if job.startswith(PREFIX):
                lineage.hide_job(job)
        for namespace in (JOBS, SPACE):
            lineage.hide_namespace(namespace)
        for topic in topics:
            lineage.hide_dataset(f"kafka {topic}")
        for space in spaces:
            lineage.hide_datasets("warehouse", f"{space}/")


class _Asking:
    """The commands that people use, on the story's report."""

    def __init__(self, story_run: StoryRun, lake: str) -> None:
        self._run = story_run
        self.lake = lake
        self.report = f"{SPACE}:{REPORT}"

    def run(
        self, *words: str, url: bool = True, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        lab = self._run.lab.context
        settings = lab.home.settings
        token = {"HEADWATER_TOKEN": settings.logins.server} if settings.secure else {}
        where = ["--url", self._run.lineage.url] if url else []
        return subprocess.run(
            [sys.executable, "-m", "headwater", *words, *where],
            env={**os.environ, **lake_env(lab), **token, "COLUMNS": "200"},
            capture_output=True,
            timeout=ASK_SECONDS,
            check=check,
        )

    def trace(self, *, at: str | None, lake: str = "") -> dict[str, Any]:
        words = ["trace", self.report, "--json", *(["--at", at] if at else [])]
        done = self.run(*words, *(["--lake", lake] if lake else []), url=not lake)
        found: dict[str, Any] = msgspec.json.decode(done.stdout)
        return found

    def source(self, wanted: str, other: str, *, at: str | None, from_lake: bool = False) -> Any:
        """Whether a trace leads to one dataset and not to another, and says where it is from."""
        words = ["trace", self.report, *(["--at", at] if at else [])]
        done = self.run(*words)
        shown, notes = done.stdout.decode(), done.stderr.decode()
        ok = wanted in shown and other not in shown and (FROM_LAKE in notes) is from_lake
        return CheckOutcome(ok, (notes if ok else shown + notes).strip())

    def text(self, at: str) -> str:
        """What a person sees."""
        done = self.run("trace", self.report, "--at", at)
        return f"$ headwater trace {self.report} --at {at}\n{done.stdout.decode()}{done.stderr.decode()}"


def _loaded(asking: _Asking, count: int) -> CheckOutcome:
    query = (
        "SELECT (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM events_unique) AS unique_,"
        " count(DISTINCT CAST(first AS date)) AS days FROM runs"
    )
    done = asking.run("lake", "sql", query, "--lake", asking.lake, "--json", url=False)
    (row,) = msgspec.json.decode(done.stdout)
    ok = row["events"] == row["unique_"] == count and row["days"] in (DAYS, DAYS + 1)
    return CheckOutcome(ok, f"{row['events']:,} events of {row['days']} days")


def _unknown(done: subprocess.CompletedProcess[bytes]) -> CheckOutcome:
    error = " ".join(done.stderr.decode().split())
    return CheckOutcome(done.returncode != 0 and "Nothing was known" in error, error)


def _named(done: subprocess.CompletedProcess[bytes], *names: str) -> CheckOutcome:
    shown = done.stdout.decode()
    return CheckOutcome(all(name in shown for name in names), "" if TILL in shown else shown)


def _events(now: datetime, ago: int) -> Iterator[bytes]:
    """What the jobs of one night reported, START and COMPLETE of each."""
    night = now - timedelta(days=ago)
    load = "till" if ago > MOVED else "web"
    for number, key in enumerate((load, "sum", "report")):
        job, run = NIGHTLY[key], str(uuid.uuid4())
        for minute, kind in enumerate(("START", "COMPLETE")):
            at = night + timedelta(minutes=10 * number + 5 * minute)
            yield json.dumps(
                {
                    **head(PRODUCER, "RunEvent", at),
                    "eventType": kind,
                    "run": {"runId": run},
                    "job": {"namespace": JOBS, "name": job.name},
                    "inputs": [{"namespace": SPACE, "name": name} for name in job.inputs],
                    "outputs": [{"namespace": SPACE, "name": job.output, "facets": _facets(job)}],
                }
            ).encode()


def _facets(job: Nightly) -> dict[str, Any]:
    fields = [{"name": column, "type": "string"} for column in job.columns]
    mapped = {
        column: {"inputFields": [{"namespace": SPACE, "name": name, "field": field}]}
        for column, (name, field) in job.columns.items()
    }
    return {
        "schema": facet(PRODUCER, "schema", fields=fields),
        "columnLineage": facet(PRODUCER, "columnLineage", fields=mapped),
    }
