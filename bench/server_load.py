"""Ingest and query figures of the server beside those of its peers: one table.

    python bench/server_load.py [--jobs 2000] [--history 10] [--postgres URL] [--marquez URL]

Each job has one run of three events of 8.4 KB, in components of 100 jobs; with --history 10, nine
more runs of each, and the same questions again. CPU is that of the server's process, and with
--postgres-pid of the database's processes. The targets are those for 10,000 jobs. `--write`
keeps the figures for the docs.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any
from urllib.parse import quote

from _results import keep, read
from _server_calls import Caller, batch, cpu, fill, ingest, memory, serve, size
from _server_events import Job, events, job

FEW = 2_000
# Taken once by running them.
PEERS = read("peers")
TARGETS = {
    "ingest: p99 ms": "60",
    "ingest: CPU ms an event": "0.40 (PostgreSQL 1.0)",
    "ingest, 1 connection: events/s": "1000",
    "batches of 1,000, 2 connections: events/s": "6000",
    "lineage depth 20, 100 jobs: p50 ms": "25",
    "column lineage depth 20: p50 ms": "25",
    "100 jobs of a namespace: p50 ms": "20",
    "search: p50 ms": "5",
    "memory: MB": "250",
    "database: MB": "60 (SQLite)",
}


def measure(
    url: str,
    jobs: int,
    pid: int | None = None,
    database: int | None = None,
    history: int = 1,
    store: str = "",
) -> dict[str, str]:
    namespace = f"bench{random.randrange(10**6):06d}"
    start = datetime.now(timezone.utc) - timedelta(hours=20)
    few = range(min(jobs, FEW))
    before = cpu(pid, database)
    wall, taken = ingest(url, [events(namespace, number, start) for number in few], 8)
    used = cpu(pid, database) - before
    figures = {
        "ingest, 8 connections: events/s": f"{len(taken) / wall:.0f}",
        "ingest: p99 ms": f"{1e3 * statistics.quantiles(taken, n=100)[98]:.1f}",
        "ingest: CPU ms an event": f"{1e3 * used / len(taken):.2f}" if pid else "",
    }
    if pid:
        figures |= busy(url, namespace, few, start, pid, database)
    fill(url, partial(_events, namespace, start), range(len(few), jobs))
    figures |= ask(url, namespace, jobs)
    figures |= taken_up(pid, store)
    if history > 1:
        for run in range(1, history):
            fill(url, partial(_events, namespace, start + run * timedelta(hours=1)), range(jobs))
        later = ask(url, namespace, jobs) | taken_up(pid, store)
        figures |= {f"{name}, {history}x history": value for name, value in later.items()}
    return figures


def taken_up(pid: int | None, store: str) -> dict[str, str]:
    """How much memory the server has needed, and how large its store is."""
    if not pid:
        return {}
    return {"memory: MB": f"{memory(pid):.0f}", "database: MB": f"{size(store):.0f}"}


def _events(namespace: str, start: datetime, number: int) -> list[bytes]:
    return events(namespace, number, start)


def busy(
    url: str, namespace: str, few: range, start: datetime, pid: int, database: int | None
) -> dict[str, str]:
    """What one connection gets, and what batches get."""
    alone = [events(f"{namespace}-one", number, start) for number in few[: len(few) // 4]]
    wall, taken = ingest(url, alone, 1)
    sent = [body for number in few for body in events(f"{namespace}-two", number, start)]
    before = cpu(pid, database)
    seconds = batch(url, sent, 2)
    used = cpu(pid, database) - before
    return {
        "ingest, 1 connection: events/s": f"{len(taken) / wall:.0f}",
        "batches of 1,000, 2 connections: events/s": f"{len(sent) / seconds:.0f}",
        "batches: CPU ms an event": f"{1e3 * used / len(sent):.2f}",
    }


def ask(url: str, namespace: str, jobs: int) -> dict[str, str]:
    """How long the four questions take."""
    caller, space = Caller(url), quote(f"postgres://{namespace}:5432", safe="")

    def asked(path: Any, count: int = 40) -> str:
        caller.call("GET", path())
        return f"{1e3 * statistics.median(caller.call('GET', path()) for _ in range(count)):.1f}"

    def some() -> Job:
        return job(namespace, random.randrange(jobs))

    return {
        "lineage depth 20, 100 jobs: p50 ms": asked(
            lambda: f"/api/v1/lineage?depth=20&nodeId=job:{namespace}:{some().name}"
        ),
        "column lineage depth 20: p50 ms": asked(
            lambda: f"/api/v1/column-lineage?depth=20&nodeId=dataset:{space}:{some().output}"
        ),
        "100 jobs of a namespace: p50 ms": asked(
            lambda: f"/api/v1/namespaces/{namespace}/jobs?limit=100"
        ),
        "search: p50 ms": asked(lambda: f"/api/v1/search?limit=10&q={some().output[5:]}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument(
        "--history", type=int, default=1, help="runs of each job before the questions come again"
    )
    parser.add_argument("--postgres", help="an empty database, to measure the server on it as well")
    parser.add_argument("--no-sqlite", action="store_true", help="measure PostgreSQL alone")
    parser.add_argument("--postgres-pid", type=int, help="its process, to count its CPU as well")
    parser.add_argument("--marquez", help="a running Marquez, to measure it the same way")
    parser.add_argument("--write", action="store_true", help="keep the figures for the docs")
    chosen = parser.parse_args()
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        stores = {} if chosen.no_sqlite else {"SQLite": f"sqlite:///{folder}/bench.db"}
        if chosen.postgres:
            stores["PostgreSQL"] = chosen.postgres
        for name, store in stores.items():
            process, url = serve(store)
            try:
                database = chosen.postgres_pid if name == "PostgreSQL" else None
                found[name] = measure(
                    url, chosen.jobs, process.pid, database, chosen.history, store
                )
            finally:
                process.terminate()
                process.wait()
            found[name]["load of the machine"] = f"{os.getloadavg()[1]:.1f}"
    if chosen.marquez:
        found["Marquez here"] = measure(chosen.marquez, chosen.jobs, history=chosen.history)
    show(found)
    if chosen.write:
        keep("server_load", jobs=chosen.jobs, history=chosen.history, figures=found)


def show(found: dict[str, dict[str, str]]) -> None:
    """Print the table; the peers' figures were measured on two cores, see docs/operations.md."""
    rows = list(dict.fromkeys(name for figures in found.values() for name in figures))
    heads = ["work", *found, "target", *(" ".join(one) for one in PEERS["peers"].items()), "ratio"]
    lines = []
    for row in rows:
        marquez, rentgen = PEERS["figures"].get(row, ("", ""))
        ours, ratio = next(iter(found.values())).get(row, ""), ""
        if marquez and ours:
            more = row.endswith("events/s")
            value = (
                float(ours) / float(marquez) if more else float(marquez) / max(float(ours), 1e-3)
            )
            ratio = f"{value:.0f}x"
        ours_all = [f.get(row, "") for f in found.values()]
        lines.append([row, *ours_all, TARGETS.get(row, ""), marquez, rentgen, ratio])
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    for line in [heads, ["-" * w for w in widths], *lines]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


if __name__ == "__main__":
    main()
