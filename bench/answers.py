"""How long lineage questions take on an estate of 10,000 jobs and 110,000 columns.

    python bench/answers.py [--jobs 10000] [--postgres URL] [--write]

The questions go through the server's routes in this process: beside the time each takes there is the
CPU it uses, which another load on the machine does not change much. What is asked for differs from
call to call. Then what alert rules cost: a look by all kinds of rules, and events with them and without.
Ends with 1 if the p50 of a question, or of a look at nothing new, is over its limit. `--write` keeps the
figures in bench/results/answers.json, which `make docs` puts into the documents.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

import httpx
from _results import keep
from _server_events import COMPONENT, Job, events, job
from msgspec.structs import replace

from headwater.server.alerts.rules import read_rules
from headwater.server.app import App, ServerSettings
from headwater.server.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAMESPACE = "bench"
SPACE = f"postgres://{NAMESPACE}:5432"
LONG = f"postgres://{NAMESPACE}.corp.example:5432"
BATCH = 500
LIMITS = {
    "trace": 50,
    "why": 50,
    "impact": 50,
    "diff": 200,
    "doctor": 10_000,
    "audit": 50,
    "tags": 50,
    "reach": 1_000,
}
LOOK = 500
"""Milliseconds that a look at rules may take when nothing came since the last one."""
TAGGED = 50
"""Columns on which a tag is set: one in each so many jobs."""


def estate(jobs: int, now: datetime) -> Iterator[bytes]:
    """A run of each job two days ago; a fifth ran again today, some with another input or failed.

    Some tables that nobody reads are read by the long name of their host: doctor's pairs.
    """
    before = now - timedelta(days=2)
    for number in range(jobs):
        yield events(NAMESPACE, number, before)[2]
    today = now - timedelta(hours=6)
    for number in range(0, jobs, 5):
        made = json.loads(events(NAMESPACE, number, today)[2])
        if number % 100 == 0:
            made["inputs"] = made["inputs"][:1]
            for column in made["outputs"][0]["facets"]["columnLineage"]["fields"].values():
                column["inputFields"] = column["inputFields"][:1]
        if number % 500 == 5:
            made["eventType"] = "FAIL"
        yield json.dumps(made).encode()
    for number in range(99, jobs, 100):
        made = json.loads(events(NAMESPACE, number, today)[2])
        made["job"]["name"] += "_reader"
        made["run"]["runId"] = str(uuid.uuid4())
        made["inputs"] = [{**made["outputs"][0], "namespace": LONG}]
        made["outputs"] = []
        yield json.dumps(made).encode()


def fill(store: Any, jobs: int, now: datetime) -> None:
    waiting: list[bytes] = []
    for body in estate(jobs, now):
        waiting.append(body)
        if len(waiting) >= BATCH:
            store.append(waiting)
            waiting = []
    store.append(waiting)
    for number in range(0, jobs, TAGGED):
        name = job(NAMESPACE, number).output
        tagged = {"kind": "dataset", "namespace": SPACE, "name": name, "field": "customer"}
        store.perform({"command": "tagged", **tagged, "tag": "pii", "on": True})


class Question(NamedTuple):
    """A path to ask, and the body if it is one that is posted."""

    path: str
    body: dict[str, Any] | None = None


def questions(jobs: int, now: datetime) -> dict[str, Callable[[], Question]]:
    def some() -> Job:
        return job(NAMESPACE, random.randrange(jobs))

    def get(path: str, **query: str) -> Question:
        return Question(f"{path}?{urlencode(query)}" if query else path)

    def trace(kind: str, field: str, direction: str) -> Callable[[], Question]:
        def asked() -> Question:
            node = f"{kind}:{SPACE}:{some().output}{field}"
            return get("/api/v2/trace", node=node, direction=direction)

        return asked

    def of_dataset(what: str, **query: str) -> Callable[[], Question]:
        def asked() -> Question:
            named = f"{quote(SPACE, safe='')}/{quote(some().output, safe='')}"
            return get(f"/api/v2/datasets/{named}/{what}", **query)

        return asked

    def impact(kind: str, **change: str) -> Callable[[], Question]:
        def asked() -> Question:
            node = f"dataset:{SPACE}:{some().inputs[0]}"
            return Question("/api/v2/impact", {"node": node, "changes": [{"kind": kind, **change}]})

        return asked

    def source() -> Question:
        """A column of the first layer: all that a component has lies behind it."""
        node = f"dataset:{SPACE}:{job(NAMESPACE, random.randrange(0, jobs, COMPONENT)).inputs[0]}"
        change = {"kind": "drop", "column": "customer"}
        return Question("/api/v2/impact", {"node": node, "changes": [change]})

    day = {"from": (now - timedelta(days=1)).isoformat(), "to": now.isoformat()}
    return {
        "trace of a dataset, up": trace("dataset", "", "up"),
        "trace of a dataset, down": trace("dataset", "", "down"),
        "trace of a column, up": trace("datasetField", ":customer", "up"),
        "why": of_dataset("why"),
        "why of a column": of_dataset("why", column="customer"),
        "impact of a drop": impact("drop", column="customer"),
        "impact of a drop, at a source": source,
        "impact of a type": impact("type", column="amount", to="string"),
        "impact of a delete": impact("delete"),
        "audit of a dataset, a day": of_dataset("audit", **day),
        "audit of a column, a day": of_dataset("audit", column="customer", **day),
        "audit of a dataset, to print": of_dataset("audit/report", **day),
        "tags of a dataset": of_dataset("tags"),
        "reach of a tag on 200 columns": lambda: get("/api/v2/tags/pii"),
        "doctor": lambda: get("/api/v2/doctor"),
        "diff of a day, whole estate": lambda: get("/api/v2/graph/diff", **day),
    }


class Figures:
    """What was measured: for each question, and for each other piece of work, figures by store."""

    def __init__(self) -> None:
        self.store = ""
        self.slow: list[str] = []
        self._rows: dict[str, dict[str, dict[str, float]]] = {"questions": {}, "alerts": {}}

    def question(self, name: str, wall: float, cpu: float) -> None:
        """A question's medians, in milliseconds."""
        limit = LIMITS[name.split(maxsplit=1)[0]]
        row = self._rows["questions"].setdefault(name, {"limit: ms": limit})
        row |= {f"{self.store}: p50 ms": round(wall, 1), f"{self.store}: CPU ms": round(cpu, 1)}
        self._judge(name, wall, limit)

    def look(self, name: str, wall: float, cpu: float) -> None:
        """The medians of a look at alert rules, in milliseconds."""
        row = self._rows["alerts"].setdefault(f"a look after {name}", {})
        row |= {f"{self.store}: ms": round(wall, 1), f"{self.store}: CPU ms": round(cpu, 1)}
        if name == "nothing came":
            self._judge(f"a look after {name}", wall, LOOK)

    def event(self, what: str, cpu: float) -> None:
        """The CPU of an event, in milliseconds."""
        row = self._rows["alerts"].setdefault(f"an event, {what}", {})
        row[f"{self.store}: CPU ms"] = round(cpu, 2)

    def _judge(self, name: str, wall: float, limit: float) -> None:
        if wall > limit:
            self.slow.append(
                f"over its limit on {self.store}: {name}: {wall:.1f} ms, the limit is {limit}"
            )

    def kept(self, jobs: int) -> dict[str, Any]:
        """As bench/results/answers.json has it."""
        rows = {
            part: [{"on the server": name, **row} for name, row in found.items()]
            for part, found in self._rows.items()
        }
        machine = {"jobs": jobs, "load of the machine": round(os.getloadavg()[1], 1)}
        return {**rows, "machine": [machine]}


async def measure(app: App, jobs: int, now: datetime, count: int, figures: Figures) -> None:
    """Ask every question some times."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        print(f"{'question':32} {'p50 ms':>8} {'CPU ms':>8} {'limit':>6} {'KB':>6}")
        for name, asked in questions(jobs, now).items():
            times, used, size = [], [], 0
            for number in range(count + 2):
                path, body = asked()
                began, cpu = time.perf_counter(), time.process_time()
                answer = await client.request("POST" if body else "GET", path, json=body)
                if number >= 2:
                    times.append(time.perf_counter() - began)
                    used.append(time.process_time() - cpu)
                    size = max(size, len(answer.content))
                answer.raise_for_status()
            limit = LIMITS[name.split()[0]]
            wall, spent = (1e3 * statistics.median(some) for some in (times, used))
            print(f"{name:32} {wall:8.1f} {spent:8.1f} {limit:6} {size // 1000:6}", flush=True)
            figures.question(name, wall, spent)
    await app.close()


RULES = {
    "channels": {"none": {"command": ["true"]}},
    "rules": {
        "failed": {"when": "run-failed", "to": "none"},
        "stale": {"when": "stale", "for": "30m", "to": "none"},
        "breaks": {"when": "schema-breaks", "to": "none"},
        "readers": {"when": "new-reader", "tags": ["pii"], "to": "none"},
        "silent": {"when": "producer-silent", "for": "1h", "to": "none"},
        "checks": {"when": "check-failed", "to": "none"},
    },
}
INGESTED = 2_000
"""Events by which the cost of rules beside them is measured."""


def looks(app: App, jobs: int, now: datetime, count: int, figures: Figures) -> None:
    """What rules cost: a look at the whole estate, one after nothing came, one after some events."""
    alerts = app.alerts
    assert alerts is not None
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(count + 1):
        names = ["nothing came", f"{BATCH} events came"] if number else ["a server started"]
        for name in names:
            if name.startswith(str(BATCH)):
                app.store.append(list(fresh(jobs, now, BATCH)))
            began, cpu = time.perf_counter(), time.process_time()
            alerts.conditions.evaluate(app, time.time_ns() // 1000)
            spent = (time.perf_counter() - began, time.process_time() - cpu)
            found.setdefault(name, []).append(spent)
    for name, some in found.items():
        wall, cpu = (1e3 * statistics.median(part) for part in zip(*some, strict=True))
        print(f"{f'alerts, a look after {name}':40} {wall:8.1f} {cpu:8.1f}", flush=True)
        figures.look(name, wall, cpu)


def fresh(jobs: int, now: datetime, count: int) -> Iterator[bytes]:
    """The ends of new runs of some jobs."""
    start = now - timedelta(milliseconds=100 * jobs)
    for _ in range(count):
        yield events(NAMESPACE, random.randrange(jobs), start)[2]


async def ingest(app: App, jobs: int, now: datetime, what: str, figures: Figures) -> None:
    """The CPU of an event, with all that the server does beside it."""
    bodies = list(fresh(jobs, now, INGESTED))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        (await client.get("/api/v2/health")).raise_for_status()
        # A server's first look takes in the whole estate.
        while app.alerts is not None and app.alerts.evaluated_at is None:
            await asyncio.sleep(0.1)
        began, cpu = time.perf_counter(), time.process_time()
        for start in range(0, len(bodies), 50):
            sent = await client.post(
                "/api/v2/events", content=b"\n".join(bodies[start : start + 50])
            )
            sent.raise_for_status()
        wall, used = time.perf_counter() - began, 1e3 * (time.process_time() - cpu) / len(bodies)
    print(f"{f'ingest, {what}':40} {wall:8.1f} s  {used:8.2f} ms of CPU an event", flush=True)
    figures.event(what, used)
    await app.close()


def bench(url: str, chosen: argparse.Namespace, rules: Path, figures: Figures) -> None:
    """Everything on one store, which must be empty."""
    random.seed(1)
    now = datetime.now(timezone.utc)
    settings = ServerSettings(page=False, stale_every=3_600)
    alerting = replace(settings, alerts=read_rules(rules))
    store = open_store(url)
    fill(store, chosen.jobs, now)
    asyncio.run(measure(App(store, settings), chosen.jobs, now, chosen.count, figures))
    store = open_store(url)
    looks(App(store, alerting), chosen.jobs, now, chosen.count, figures)
    store.close()
    for what, how in (("without rules", settings), ("with rules", alerting)):
        app = App(open_store(url), how)
        asyncio.run(ingest(app, chosen.jobs, now, what, figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--count", type=int, default=20, help="how often each question is asked")
    parser.add_argument("--postgres", help="an empty database, to measure on it as well")
    parser.add_argument("--write", action="store_true", help="keep the figures for the docs")
    chosen = parser.parse_args()
    figures = Figures()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "alerts.json"
        rules.write_text(json.dumps(RULES))
        stores = {"SQLite": f"sqlite:///{folder}/bench.db"}
        if chosen.postgres:
            stores["PostgreSQL"] = chosen.postgres
        for name, url in stores.items():
            print(f"{name}, {chosen.jobs} jobs")
            figures.store = name
            bench(url, chosen, rules, figures)
    if chosen.write:
        keep("answers", **figures.kept(chosen.jobs))
    for line in figures.slow:
        print(line)
    sys.exit(bool(figures.slow))


if __name__ == "__main__":
    main()
