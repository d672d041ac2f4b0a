"""Replay recorded events against two source trees and compare what their servers answer.

    python -m scripts.replay select RECORDED... > events.ndjson
    python -m scripts.replay answers --tree TREE --events events.ndjson > answers.ndjson
    python -m scripts.replay compare before.ndjson before-again.ndjson after.ndjson
    python -m scripts.replay producers BEFORE_FOLDER AFTER_FOLDER

`select` takes recordings (one JSON object a line: `body` is an event, `test` who sent it), leaves
out repetitions and bounds how much one test contributes. `answers` starts the server of a source
tree on SQLite and on PostgreSQL, posts the events group by group, and asks every GET
route that the tree's own OpenAPI page lists, for every job, dataset, run and namespace of the
group. `compare` prints, by route, where the answers differ. Two runs of the tree before the change
tell which parts of an answer never repeat (times of receipt, random ids): those are not compared.
`producers` compares the events themselves. Differences that are meant are in
scripts/replay_intended.json, each with its reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

INTENDED = Path(__file__).with_name("replay_intended.json")
EVENTS_PER_TEST = 40
EVENTS_PER_GROUP = 800
NODES_PER_GROUP = 60
# The server closes silent runs every few seconds; answers are asked for once it has.
SETTLE_SECONDS = 12.0
MASKS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?", "<time>"),
    (r"\b\w+_[0-9a-f]{10}\b", "<name>"),  # names the lab's fixtures make unique
    (r"(?:127\.0\.0\.1|localhost):\d{2,5}", "<host>"),
    (r"/tmp/[^\"\s,;]*", "<path>"),
    (r"\b\d{9,}\b", "<number>"),
)


def normalised(text: str) -> str:
    """An event without what differs between two runs of the same program."""
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    return text


def recorded(paths: Iterable[Path], kinds: str = "out,in") -> Iterator[dict[str, Any]]:
    for path in paths:
        files = sorted(f for kind in kinds.split(",") for f in path.glob(f"{kind}-*.ndjson"))
        for file in files if path.is_dir() else [path]:
            with file.open(encoding="utf-8") as lines:
                yield from map(json.loads, lines)


def event_of(body: str) -> dict[str, Any] | None:
    try:
        event = json.loads(body)
    except (RecursionError, ValueError):
        return None
    shaped = isinstance(event, dict) and isinstance(event.get("job", event.get("dataset")), dict)
    return event if shaped else None


def group_of(test: str, event: dict[str, Any]) -> str:
    """Events that share a store: a test file may use names that another uses otherwise."""
    if not test:
        return "demo"
    producer = str(event.get("producer"))
    for part in ("connect", "emit", "spark", "debezium"):
        if f":{part}:" in producer or f"/{part}/" in producer:
            return part
    file = test.partition("::")[0].rpartition("/")[2].removesuffix(".py")
    return f"made-up-{int(hashlib.sha256(file.encode()).hexdigest(), 16) % 4}"


def select(paths: list[Path]) -> Iterator[str]:
    seen: set[str] = set()
    of_test: Counter[str] = Counter()
    of_group: Counter[str] = Counter()
    for line in recorded(paths):
        event = event_of(line["body"])
        if event is None or len(line["body"]) > 200_000:
            continue
        test = line.get("test", "")
        group = group_of(test, event)
        # A test's own events count one by one; a producer's heartbeats repeat with new times.
        text = line["body"] if group.startswith("made-up") else normalised(line["body"])
        same = hashlib.sha256(text.encode()).hexdigest()
        if same in seen or of_test[test] >= EVENTS_PER_TEST * (1 if test else 20):
            continue
        if of_group[group] >= EVENTS_PER_GROUP:
            continue
        seen.add(same)
        of_test[test] += 1
        of_group[group] += 1
        yield json.dumps({"group": group, "test": test, "body": line["body"]})
    print(dict(of_group), file=sys.stderr)


class Server:
    """`headwater server` of a source tree."""

    def __init__(self, tree: Path, store: str, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        own = tree / ".venv" / "bin" / "python"
        python = str(own) if own.exists() else sys.executable
        command = [python, "-m", "headwater", "server", "--port", str(port)]
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [*command, "--store", store, "--no-page"],
                stdout=out,
                stderr=out,
                env={**os.environ, "PYTHONPATH": str(tree / "src")},
            )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False)
        deadline = time.monotonic() + 180
        while True:
            try:
                if self.http.get("/api/v2/health").is_success:
                    return
            except httpx.HTTPError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server of {tree} did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        self.http.close()
        self.process.terminate()
        self.process.wait(60)


class Entities:
    """What the events of a group are about."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        jobs: dict[tuple[str, str], None] = {}
        datasets: dict[tuple[str, str], None] = {}
        runs: dict[str, None] = {}
        for event in events:
            if isinstance(job := event.get("job"), dict):
                jobs[str(job.get("namespace")), str(job.get("name"))] = None
            if isinstance(run := event.get("run"), dict):
                runs[str(run.get("runId"))] = None
            sides = [event.get("inputs"), event.get("outputs"), [event.get("dataset")]]
            for dataset in [one for side in sides if isinstance(side, list) for one in side]:
                if isinstance(dataset, dict):
                    datasets[str(dataset.get("namespace")), str(dataset.get("name"))] = None
        self.jobs = spread(list(jobs), NODES_PER_GROUP)
        self.datasets = spread(list(datasets), NODES_PER_GROUP)
        self.runs = spread(list(runs), NODES_PER_GROUP)
        self.namespaces = sorted({namespace for namespace, _ in (*jobs, *datasets)})[:40]
        self.nodes = [f"job:{a}:{b}" for a, b in self.jobs]
        self.nodes += [f"dataset:{a}:{b}" for a, b in self.datasets]


def spread(items: list[Any], limit: int) -> list[Any]:
    """At most so many of a list, from all of its length."""
    step = max(1, len(items) / limit)
    return [items[int(number * step)] for number in range(min(limit, len(items)))]


NOT_ASKED = ("/api/v2/live", "/api/v2/metrics", "/api/docs", "/api/v2/openapi.json", "/api/v2/health")  # fmt: skip


def calls(description: dict[str, Any], found: Entities) -> Iterator[tuple[str, str]]:
    """Every GET route with each address to ask it at."""
    for route, methods in sorted(description["paths"].items()):
        one = methods.get("get")
        if one is None or route in NOT_ASKED:
            continue
        query = {p["name"] for p in one.get("parameters", []) if p["in"] == "query"}
        for path in filled(route, found):
            yield route, path
            for question in questions(query, found):
                yield route, f"{path}?{question}"


def questions(query: set[str], found: Entities) -> Iterator[str]:
    """Query strings for the parameters that a route takes."""
    for name in sorted(query & {"nodeId", "node"}):
        for value in found.nodes:
            yield f"{name}={quote(value, safe='')}"
            if "withDownstream" in query:
                yield f"{name}={quote(value, safe='')}&withDownstream=true"
    if "q" in query:
        yield from (f"q={word}" for word in ("o", "order", "load", "shop", "%25", "s3"))
    if "runId" in query:
        yield from (f"runId={value}" for value in found.runs)


def filled(route: str, found: Entities) -> list[str]:
    """The addresses of a route: its parameters filled with what the events are about."""
    if "{" not in route:
        return [route]

    def put(**values: str) -> str:
        path = route
        for name, value in values.items():
            path = path.replace("{" + name + "}", quote(value, safe=""))
        return path

    if "{job}" in route:
        made = [put(namespace=a, job=b) for a, b in found.jobs]
    elif "{dataset}" in route:
        made = [put(namespace=a, dataset=b) for a, b in found.datasets]
    elif "{id}" in route:
        made = [put(id=run) for run in found.runs]
    else:
        made = [put(namespace=name, source=name) for name in found.namespaces]
    return [path for path in made if "{" not in path]


def answer_of(server: Server, path: str) -> Any:
    response = server.http.get(path)
    try:
        body = response.json()
    except (RecursionError, ValueError):
        body = response.text
    return {"status": response.status_code, "body": body}


def answers_of_group(
    tree: Path, stores: dict[str, str], bodies: list[str], folder: Path
) -> Iterator[dict[str, Any]]:
    events = [event for body in bodies if (event := event_of(body))]
    servers = {name: Server(tree, url, folder / f"{name}.log") for name, url in stores.items()}

    def work(name: str) -> list[dict[str, Any]]:
        server = servers[name]
        # In one request: the server closes silent runs between requests, never within one.
        taken = server.http.post(
            "/api/v2/events",
            content=f"[{','.join(bodies)}]",
            headers={"content-type": "application/json"},
        ).json()
        time.sleep(SETTLE_SECONDS)
        description = server.http.get("/api/v2/openapi.json").json()
        made = [{"route": "POST /api/v2/events", "path": "", "answer": taken}]
        for route, path in calls(description, Entities(events)):
            made.append({"route": route, "path": path, "answer": answer_of(server, path)})
        return [{"store": name, **one} for one in made]

    try:
        with ThreadPoolExecutor(len(servers)) as pool:
            for found in pool.map(work, servers):
                yield from found
    finally:
        for server in servers.values():
            server.stop()


def answers(tree: Path, events: Path) -> Iterator[str]:
    from headwater.lab.clients import PostgresClient
    from headwater.lab.lab import Lab

    groups: dict[str, list[str]] = defaultdict(list)
    for line in recorded([events]):
        groups[line["group"]].append(line["body"])
    with tempfile.TemporaryDirectory(prefix="headwater-replay") as folder:
        lab = Lab(Path(folder) / "lab")
        lab.up(["postgres"])
        postgres = PostgresClient(lab, "postgres")
        try:
            for group, bodies in sorted(groups.items()):
                stores = {
                    "sqlite": f"sqlite:///{folder}/{group}.db",
                    "postgresql": postgres.database("replay"),
                }
                count = 0
                for found in answers_of_group(tree, stores, bodies, Path(folder)):
                    count += 1
                    yield json.dumps({"group": group, **found}, sort_keys=True)
                print(f"{group}: {len(bodies)} events, {count} answers", file=sys.stderr)
        finally:
            lab.down()


def differences(before: Any, after: Any, path: str = "$") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ.

    Members of lists that have an identity are compared with their like, wherever they stand: what
    is in one list only has a path that ends in `[gone]` or `[new]`, another order one in `[order]`;
    a member that an object did not have before has `[new]` behind its name.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            mark = "" if key in before else "[new]"
            yield from differences(before.get(key), after.get(key), f"{path}.{key}{mark}")
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_differences(before, after, path)
    elif before != after:
        yield path, before, after


def _list_differences(
    before: list[Any], after: list[Any], path: str
) -> Iterator[tuple[str, Any, Any]]:
    old, new = _by_identity(before), _by_identity(after)
    both = [one for one in old if one in new] if old and new else []
    if both:
        yield from ((f"{path}[gone]", old[one], None) for one in old if one not in new)
        yield from ((f"{path}[new]", None, new[one]) for one in new if one not in old)
        if both != [one for one in new if one in old]:
            yield f"{path}[order]", list(old), list(new)
        for one in both:
            yield from differences(old[one], new[one], f"{path}[]")
    elif len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from differences(one, other, f"{path}[]")
    else:
        yield path, before, after


IDENTITIES = (
    ("id",), ("node",), ("namespace", "name"), ("name",), ("from", "to"), ("facet",), ("run",),
    ("kind", "node", "field", "tag"),
)  # fmt: skip
OPTIONAL = {"field", "tag"}


def _by_identity(items: list[Any]) -> dict[str, Any]:
    """The members of a list by what names each of them; empty where nothing does."""
    for keys in IDENTITIES:
        needed = set(keys) - OPTIONAL
        if all(isinstance(item, dict) and needed <= item.keys() for item in items):
            found = {
                json.dumps([item.get(key) for key in keys], sort_keys=True): item for item in items
            }
            if len(found) == len(items):
                return found
    return {}


def loaded(path: Path) -> dict[tuple[str, str, str, str], Any]:
    return {
        (line["group"], line["store"], line["route"], line["path"]): line["answer"]
        for line in recorded([path])
    }


class Intended:
    """The differences that are meant: routes by their name, paths as they are or with `*`."""

    def __init__(self) -> None:
        entries = json.loads(INTENDED.read_text(encoding="utf-8"))["answers"]
        self._reasons: list[tuple[set[str], list[str], str]] = [
            (set(one["routes"]), [path.replace("[", "[[]") for path in one["paths"]], one["reason"])
            for one in entries
        ]

    def reason(self, route: str, path: str) -> str | None:
        """Why answers of a route may differ there; None where they may not."""
        for routes, paths, reason in self._reasons:
            if route in routes and any(fnmatchcase(path, one) for one in paths):
                return reason
        return None


def compare(before: Path, again: Path, after: Path, examples: int) -> int:
    first, second, third = loaded(before), loaded(again), loaded(after)
    noise = {
        key: tuple(path for path, _, _ in differences(first[key], second[key]))
        for key in first.keys() & second.keys()
    }
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    meant: Counter[str] = Counter()
    allowed = Intended()
    for key in sorted(first):
        gone = [("no such route", "", "")] if key not in third else []
        for path, old, new in gone or differences(first[key], third[key]):
            if path.startswith(noise.get(key, ())):
                continue
            if reason := allowed.reason(key[2], path):
                meant[reason] += 1
            else:
                found[key[2], path].append((key, old, new))
    for (route, path), cases in sorted(found.items()):
        print(f"{route} {path}: {len(cases)} differences")
        for key, old, new in cases[:examples]:
            print(f"    {key[0]}/{key[1]} {key[3]}")
            print(f"      before {json.dumps(old)[:300]}\n      after  {json.dumps(new)[:300]}")
    for reason, count in meant.items():
        print(f"intended: {count} of: {reason}")
    total = sum(map(len, found.values()))
    print(
        f"{len(first)} answers, {sum(map(len, noise.values()))} parts that never repeat, {total} differences"
    )
    return 1 if total else 0


def producers(before: Path, after: Path, examples: int) -> int:
    """Compare the events that the same tests made producers emit in two trees."""

    def emitted(folder: Path) -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for line in recorded([folder], "out"):
            found[line["test"].partition("[")[0].rpartition("::")[2]][normalised(line["body"])] = 1
        return found

    old, new = emitted(before), emitted(after)
    total = 0
    for test in sorted(old.keys() & new.keys()):
        gone, come = old[test] - new[test], new[test] - old[test]
        if not gone and not come:
            continue
        total += 1
        print(f"{test}: {len(gone)} events only before, {len(come)} only after")
        for one, other in list(zip(sorted(gone), sorted(come), strict=False))[:examples]:
            a, b = event_of(one), event_of(other)
            for path, was, now in list(differences(a, b))[:6]:
                print(f"    {path}: {json.dumps(was)[:200]} -> {json.dumps(now)[:200]}")
    print(f"{len(old.keys() & new.keys())} tests emit in both, {total} of them differently")
    return 1 if total else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    selecting = commands.add_parser("select")
    selecting.add_argument("recorded", nargs="+", type=Path)
    answering = commands.add_parser("answers")
    answering.add_argument("--tree", type=Path, required=True)
    answering.add_argument("--events", type=Path, required=True)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("again", type=Path)
    comparing.add_argument("after", type=Path)
    emitting = commands.add_parser("producers")
    emitting.add_argument("before", type=Path)
    emitting.add_argument("after", type=Path)
    for one in (comparing, emitting):
        one.add_argument("--examples", type=int, default=2)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.before, given.again, given.after, given.examples)
    if given.command == "producers":
        return producers(given.before, given.after, given.examples)
    if given.command == "select":
        lines = select(given.recorded)
    else:
        lines = answers(given.tree.resolve(), given.events)
    for line in lines:
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
