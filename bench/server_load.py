"""Ingest and query figures of the server beside those of its peers: one table.

    python bench/server_load.py [--jobs 2000] [--history 10] [--postgres URL] [--marquez URL]

Events are 8.4 KB: two inputs and one output of ten columns with column lineage; each job has one run
of three events, in components of 100 jobs; with --history 10, nine more runs of each, and the same
questions again. CPU is that of the server's process, and with --postgres-pid of the database's
processes. The targets are those for 10,000 jobs.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

COLUMNS = [
    "id",
    "customer",
    "amount",
    "currency",
    "status",
    "country",
    "made",
    "changed",
    "mail",
    "rest",
]
WIDTH, COMPONENT = 10, 100
FEW = 2_000
PEERS = {
    "ingest, 8 connections: events/s": ("30", "280"),
    "ingest: CPU ms an event": ("62", "3.5"),
    "lineage depth 20, 100 jobs: p50 ms": ("5600", ""),
    "column lineage depth 20: p50 ms": ("1300", ""),
    "100 jobs of a namespace: p50 ms": ("62000", ""),
    "search: p50 ms": ("37", ""),
}
TARGETS = {
    "ingest: p99 ms": "60",
    "ingest: events per CPU second": "2500 (PostgreSQL 1000)",
    "ingest, 1 connection: events/s": "1000",
    "ingest, batches of 1,000: events/s": "6000",
    "lineage depth 20, 100 jobs: p50 ms": "25",
    "column lineage depth 20: p50 ms": "25",
    "100 jobs of a namespace: p50 ms": "20",
    "search: p50 ms": "5",
    "memory: MB": "250",
}
PROGRAM = (
    "import typer; from headwater.cli.server import register; a = typer.Typer(); register(a); a()"
)


def facet(kind: str, /, **content: Any) -> dict[str, Any]:
    place = f"https://openlineage.io/spec/facets/1-0-0/{kind}.json#/$defs/{kind}"
    return {"_producer": "https://example.com/bench", "_schemaURL": place, **content}


def table(space: str, name: str) -> dict[str, Any]:
    columns = [
        {"name": c, "type": "VARCHAR(255)", "description": f"column {c} of it"} for c in COLUMNS
    ]
    source = facet("DatasourceDatasetFacet", name=space, uri=space)
    facets = {"schema": facet("SchemaDatasetFacet", fields=columns), "dataSource": source}
    return {"namespace": space, "name": name, "facets": facets}


def job(namespace: str, number: int) -> tuple[str, list[str], str]:
    """The job's name, the names it reads and the name it writes."""
    component, place = divmod(number, COMPONENT)
    layer, k = divmod(place, WIDTH)
    before = [f"shop.c{component:04d}.l{layer:02d}_{(k + i) % WIDTH}" for i in (0, 1)]
    return (
        f"{namespace}.c{component:04d}.j{layer:02d}_{k}",
        before,
        f"shop.c{component:04d}.l{layer + 1:02d}_{k}",
    )


def events(namespace: str, number: int, start: datetime) -> list[bytes]:
    space, (name, inputs, output) = f"postgres://{namespace}:5432", job(namespace, number)
    how = [
        {"type": "DIRECT", "subtype": "TRANSFORMATION", "description": "coalesce", "masking": False}
    ]
    mapped = {
        column: {
            "inputFields": [
                {"namespace": space, "name": source, "field": column, "transformations": how}
                for source in inputs[: 1 + i % 2]
            ]
        }
        for i, column in enumerate(COLUMNS)
    }
    run = str(uuid.UUID(int=random.getrandbits(128), version=4))
    made = []
    for step, state in enumerate(("START", "RUNNING", "COMPLETE")):
        target = table(space, output)
        target["facets"]["columnLineage"] = facet("ColumnLineageDatasetFacet", fields=mapped)
        moment = (start + timedelta(milliseconds=100 * number, seconds=30 * step)).isoformat()
        made.append(
            {
                "eventType": state,
                "eventTime": moment,
                "producer": "https://example.com/bench",
                "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
                "run": {"runId": run, "facets": {}},
                "job": {"namespace": namespace, "name": name, "facets": {}},
                "inputs": [table(space, source) for source in inputs],
                "outputs": [target],
            }
        )
    return [json.dumps(e, separators=(",", ":")).encode() for e in made]


class Caller:
    """One connection that is kept open."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._http = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80)
        self._http.connect()
        self._http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, method: str, path: str, body: bytes | None = None) -> float:
        started = time.perf_counter()
        headers = {"content-type": "application/json"} if body else {}
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path[:100]} answered {response.status}")
        return time.perf_counter() - started


def cpu(pid: int | None, database: int | None = None) -> float:
    """CPU seconds of a process, and of a database's process with all that it started."""
    if pid is None:
        return 0.0
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / 100
    return used[pid] + sum(
        seconds for one, seconds in used.items() if database in (one, parents[one])
    )


def ingest(url: str, work: list[list[bytes]], connections: int) -> tuple[float, list[float]]:
    pending, lock, taken = iter(work), threading.Lock(), []

    def send() -> None:
        caller = Caller(url)
        while True:
            with lock:
                group = next(pending, None)
            if group is None:
                return
            taken.extend([caller.call("POST", "/api/v1/lineage", body) for body in group])

    started = time.perf_counter()
    threads = [threading.Thread(target=send) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, taken


def batch(url: str, namespace: str, jobs: range, start: datetime) -> tuple[float, int]:
    """Seconds to send one run of these jobs through the batch endpoint, and how many events."""
    sent = [body for number in jobs for body in events(namespace, number, start)]
    caller, started = Caller(url), time.perf_counter()
    for place in range(0, len(sent), 1_000):
        caller.call("POST", "/api/v2/events", b"\n".join(sent[place : place + 1_000]))
    return time.perf_counter() - started, len(sent)


def fill(url: str, namespace: str, jobs: range, start: datetime) -> None:
    """The same for many jobs, some at a time. A Marquez takes them one by one."""
    for first in range(jobs.start, jobs.stop, FEW):
        some = range(first, min(first + FEW, jobs.stop))
        try:
            batch(url, namespace, some, start)
        except SystemExit:
            ingest(url, [events(namespace, number, start) for number in some], 8)


def measure(
    url: str, jobs: int, pid: int | None, database: int | None = None, history: int = 1
) -> dict[str, str]:
    namespace = f"bench{random.randrange(10**6)}"
    start = datetime.now(timezone.utc) - timedelta(hours=20)
    few = min(jobs, FEW)
    work = [events(namespace, number, start) for number in range(few)]
    before = cpu(pid, database)
    wall, taken = ingest(url, work, 8)
    used = cpu(pid, database) - before
    figures = {
        "ingest, 8 connections: events/s": f"{len(taken) / wall:.0f}",
        "ingest: p99 ms": f"{1e3 * statistics.quantiles(taken, n=100)[98]:.1f}",
        "ingest: CPU ms an event": f"{1e3 * used / len(taken):.2f}" if pid else "",
        "ingest: events per CPU second": f"{len(taken) / used:.0f}" if pid else "",
    }
    if pid:
        alone = [events(f"{namespace}-one", number, start) for number in range(few // 4)]
        wall, taken = ingest(url, alone, 1)
        figures["ingest, 1 connection: events/s"] = f"{len(taken) / wall:.0f}"
        before = cpu(pid, database)
        wall, count = batch(url, f"{namespace}-many", range(few), start)
        figures["ingest, batches of 1,000: events/s"] = f"{count / wall:.0f}"
        figures["batches: CPU ms an event"] = f"{1e3 * (cpu(pid, database) - before) / count:.2f}"
    fill(url, namespace, range(few, jobs), start)
    figures |= ask(url, namespace, jobs)
    if history > 1:
        for run in range(1, history):
            fill(url, namespace, range(jobs), start + run * timedelta(hours=1))
        later = ask(url, namespace, jobs).items()
        figures |= {f"{name}, {history}x history": value for name, value in later}
    return figures


def ask(url: str, namespace: str, jobs: int) -> dict[str, str]:
    """How long the four questions take."""
    caller, space = Caller(url), quote(f"postgres://{namespace}:5432", safe="")

    def asked(path: Any, count: int = 40) -> str:
        caller.call("GET", path())
        return f"{1e3 * statistics.median(caller.call('GET', path()) for _ in range(count)):.1f}"

    def some() -> tuple[str, list[str], str]:
        return job(namespace, random.randrange(jobs))

    return {
        "lineage depth 20, 100 jobs: p50 ms": asked(
            lambda: f"/api/v1/lineage?depth=20&nodeId=job:{namespace}:{some()[0]}"
        ),
        "column lineage depth 20: p50 ms": asked(
            lambda: f"/api/v1/column-lineage?depth=20&nodeId=dataset:{space}:{some()[2]}"
        ),
        "100 jobs of a namespace: p50 ms": asked(
            lambda: f"/api/v1/namespaces/{namespace}/jobs?limit=100"
        ),
        "search: p50 ms": asked(lambda: f"/api/v1/search?limit=10&q={some()[2][5:]}"),
    }


def serve(store: str) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, "server", "--port", str(port), "--store", store]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            Caller(url).call("GET", "/api/v2/health")
        except OSError:
            time.sleep(0.05)
        else:
            return process, url
    raise SystemExit("the server did not start")


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
                found[name] = measure(url, chosen.jobs, process.pid, database, chosen.history)
                memory = (
                    Path(f"/proc/{process.pid}/status").read_text().split("VmHWM:")[1].split()[0]
                )
                found[name]["memory: MB"] = f"{int(memory) / 1024:.0f}"
            finally:
                process.terminate()
                process.wait()
        if "SQLite" in found:
            size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
            found["SQLite"]["database at the end: MB"] = f"{size:.0f}"
    if chosen.marquez:
        found["Marquez here"] = measure(chosen.marquez, chosen.jobs, None, history=chosen.history)
    show(found)


def show(found: dict[str, dict[str, str]]) -> None:
    """Print the table; the peers' figures were measured on two cores, see docs/operations.md."""
    rows = list(dict.fromkeys(name for figures in found.values() for name in figures))
    heads = ["work", *found, "target", "Marquez 0.51", "Data.Rentgen 0.7", "ratio"]
    lines = []
    for row in rows:
        marquez, rentgen = PEERS.get(row, ("", ""))
        ours, ratio = next(iter(found.values())).get(row, ""), ""
        if marquez and ours:
            more = row.endswith("events/s")
            value = (
                float(ours) / float(marquez) if more else float(marquez) / max(float(ours), 1e-3)
            )
            ratio = f"{value:.0f}x"
        target = TARGETS.get(row, "")
        ours_all = [f.get(row, "") for f in found.values()]
        lines.append([row, *ours_all, target, marquez, rentgen, ratio])
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    for line in [heads, ["-" * w for w in widths], *lines]:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


if __name__ == "__main__":
    main()
