"""Alerts from end to end: events in, messages at a real receiver, incidents in the store."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvloop
from typer.testing import CliRunner

import headwater.cli.server.client
from headwater.cli.main import app as command_line
from headwater.errors import HeadwaterError
from headwater.server.alerts import incidents
from headwater.server.alerts.channels import _converse
from headwater.server.alerts.conditions import Conditions
from headwater.server.alerts.rules import read_rules
from headwater.server.alerts.schema_breaks import CHANGES
from headwater.server.alerts.watch import Alerts
from headwater.server.app import App, ServerSettings
from headwater.server.store import open_store

from .conftest import Client
from .making import columns, dataset, event, facet, run_id, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Process

SECRET = "s3cr3t-Tok3n-of-the-pager"


class Receiver:
    """A webhook's other end: keeps what it gets, and can be down, slow or elsewhere."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.code = 200
        self.reply = b""
        self.open = threading.Event()
        self.open.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.open.wait(60)
                receiver.paths.append(self.path)
                if receiver.code == 200:
                    receiver.got.append(json.loads(body))
                    receiver.headers.append({k.lower(): v for k, v in self.headers.items()})
                self.send_response(receiver.code)
                self.send_header("content-length", str(len(receiver.reply)))
                if receiver.code == 302:
                    self.send_header("location", "/elsewhere")
                self.end_headers()
                self.wfile.write(receiver.reply)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def statuses(self) -> list[tuple[str, str]]:
        return [(one["status"], one["subject"]["name"]) for one in self.got]

    def close(self) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def wait(condition: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def moment(ago: float = 0) -> str:
    return (datetime.now(timezone.utc) - timedelta(seconds=ago)).isoformat()


def now_event(state: str, *, ago: float = 0, **more: Any) -> dict[str, Any]:
    return {**event(state, 0, **more), "eventTime": moment(ago)}


STREAM = {"jobType": facet(processingType="STREAMING", integration="SPARK", jobType="QUERY")}

BEATING = {
    "jobType": facet(
        processingType="STREAMING",
        integration="X",
        emissionPattern={"eventTrigger": "PERIODIC", "windowDuration": 1},
    )
}


class Alerting:
    """A server with rules, on either store; its look comes every twentieth of a second."""

    def __init__(self, store_url: str, folder: Path, receiver: Receiver, rules: str) -> None:
        self.file = folder / "alerts.toml"
        self.file.write_text(
            f'[channels.hook]\nurl = "{receiver.url}"\ntimeout = "30s"\n{rules}', encoding="utf-8"
        )
        settings = ServerSettings(alerts=read_rules(self.file), alerts_every=0.05, stale_every=0.2)
        self.client = Client(open_store(store_url), settings)
        # The first request starts the loops; from the first look on, what comes is new.
        self.post(now_event("COMPLETE", job="before", run=99, ago=1))
        wait(lambda: self.get()["lookedAt"])

    def post(self, *events: dict[str, Any]) -> None:
        self.client.post(*events)

    def get(self) -> Any:
        return self.client.get("/api/v2/alerts")

    def looked(self) -> None:
        """Wait until there has been a whole look after now."""
        for _ in range(2):
            self._looked_after(self.get()["lookedAt"])

    def _looked_after(self, last: str) -> None:
        wait(lambda: self.get()["lookedAt"] != last)

    def settled(self) -> Any:
        """The list, once nothing waits to be sent."""
        self.looked()

        def quiet() -> Any:
            found = self.get()
            every = [d for one in found["open"] + found["resolved"] for d in one["deliveries"]]
            return found if all(d["state"] != "waiting" for d in every) else None

        return wait(quiet)


@pytest.fixture
def alerting(
    store_url: str, tmp_path: Path, receiver: Receiver
) -> Iterator[Callable[[str], Alerting]]:
    started: list[Alerting] = []

    def start(rules: str) -> Alerting:
        started.append(Alerting(store_url, tmp_path, receiver, rules))
        return started[-1]

    yield start
    for one in started:
        one.client.close()


FAILED = '[rules.failed]\nwhen = "run-failed"\nto = ["hook"]\n'
STALE = '[rules.stale]\nwhen = "stale"\nto = ["hook"]\nfor = "1s"\n'


def test_a_failed_run_is_told_once_and_its_recovery_once(
    alerting: Callable[[str], Alerting], receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headwater.server")
    server = alerting(FAILED)
    error = {"errorMessage": facet(message="disk full", programmingLanguage="PYTHON")}
    owned = {"ownership": facet(owners=[{"name": "team:lake", "type": "MAINTAINER"}])}
    server.post(
        now_event("COMPLETE", job="report", run=2, inputs=["b"], outputs=["c"]),
        now_event("START", job="load", run=1, inputs=["a"], outputs=["b"], job_facets=owned),
        now_event("FAIL", job="load", run=1, inputs=["a"], outputs=["b"], run_facets=error),
    )
    wait(lambda: receiver.got)
    server.post(now_event("FAIL", job="load", run=3, run_facets=error))
    server.settled()
    (told,) = receiver.got
    assert told["status"] == "opened"
    assert told["kind"] == "run-failed"
    assert told["title"] == "load failed"
    assert told["detail"] == "disk full"
    assert told["subject"] == {"type": "job", "namespace": "jobs", "name": "load"}
    assert told["owners"] == ["team:lake"]
    assert told["rules"] == ["failed"]
    names = {(one["type"], one["name"]) for one in told["affected"]["names"]}
    assert names == {("dataset", "b"), ("dataset", "c"), ("job", "report")}
    assert (told["affected"]["datasets"], told["affected"]["jobs"]) == (2, 1)
    # A retry that runs has not made it good yet; one that completes has.
    server.post(now_event("START", job="load", run=4))
    server.settled()
    assert len(receiver.got) == 1
    server.post(now_event("COMPLETE", job="load", run=4))
    wait(lambda: len(receiver.got) == 2)
    found = server.settled()
    assert [one["status"] for one in receiver.got] == ["opened", "resolved"]
    assert receiver.got[0]["id"] == receiver.got[1]["id"]
    assert found["open"] == []
    assert [one["id"] for one in found["resolved"]] == [told["id"]]
    assert [h["idempotency-key"] for h in receiver.headers] == [
        f"{told['id']}-opened",
        f"{told['id']}-resolved",
    ]
    logged = [text for text in caplog.messages if told["id"] in text]
    assert [text.split(":")[0] for text in logged] == ["alert open", "alert resolved"]


def test_a_batch_that_completed_is_well_though_other_runs_hang(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(FAILED)
    # Runs by the order in which they began; the last one began first and is complete last.
    server.post(
        now_event("START", job="load", run=1, ago=50),
        now_event("START", job="load", run=2, ago=40),
        now_event("FAIL", job="load", run=2, ago=30),
        now_event("START", job="load", run=3, ago=20),
    )
    wait(lambda: receiver.statuses() == [("opened", "load")])
    server.post(now_event("COMPLETE", job="load", run=1, ago=10))
    wait(lambda: len(receiver.got) == 2)
    assert receiver.statuses() == [("opened", "load"), ("resolved", "load")]
    server.post(now_event("FAIL", job="load", run=4, ago=5))
    wait(lambda: len(receiver.got) == 3)
    server.post(now_event("COMPLETE", job="load", run=5))
    wait(lambda: len(receiver.got) == 4)
    assert server.settled()["open"] == []


def test_a_failure_that_is_made_good_between_two_looks_is_told(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(FAILED)
    error = {"errorMessage": facet(message="disk full", programmingLanguage="PYTHON")}
    owned = {"ownership": facet(owners=[{"name": "team:lake"}])}
    server.post(now_event("COMPLETE", job="report", run=3, inputs=["b"], outputs=["c"]))
    sent = [
        now_event("FAIL", job="load", run=1, outputs=["b"], job_facets=owned, run_facets=error),
        now_event("COMPLETE", job="load", run=2, outputs=["b"]),
    ]
    lines = "\n".join(map(json.dumps, sent))
    assert server.client.call("POST", "/api/v2/events", content=lines).status_code == 201
    wait(lambda: len(receiver.got) == 2)
    server.settled()
    assert receiver.statuses() == [("opened", "load"), ("resolved", "load")]
    told = receiver.got[0]
    assert (told["title"], told["detail"], told["run"]) == ("load failed", "disk full", run_id(1))
    assert told["owners"] == ["team:lake"]
    assert {one["name"] for one in told["affected"]["names"]} == {"b", "c", "report"}


def test_a_stream_that_fails_again_is_told_again_and_is_stale_since_then(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(FAILED)

    def send(state: str, run: int) -> str:
        sent = now_event(state, job="sink", run=run, outputs=["d"], job_facets=STREAM)
        server.post(sent)
        return str(sent["eventTime"])

    def got(number: int) -> None:
        wait(lambda: len(receiver.got) == number)

    for run in (1, 2, 3):
        for state in ("START", "RUNNING") if run != 3 else ("START",):
            send(state, run)
        got(2 * (run - 1))
        server.looked()
        failed = send("FAIL", run)
        got(2 * run - 1)
        assert receiver.statuses()[-1] == ("opened", "sink")
        (incident,) = server.settled()["open"]
        fresh = server.client.get("/api/v2/datasets/s3%3A%2F%2Flake/d/freshness")
        why = server.client.get("/api/v2/datasets/s3%3A%2F%2Flake/d/why")
        found = [incident["since"], fresh["since"], why["causes"][0]["since"]]
        # Answers have milliseconds.
        assert {one[:23] for one in found} == {failed[:23]}
    # Attempts that never run are the same trouble.
    send("FAIL", 4)
    server.settled()
    assert server.get()["open"][0]["since"] == incident["since"]
    assert len({one["id"] for one in receiver.got}) == 3
    assert len(receiver.got) == 5


def test_a_failed_job_and_all_that_is_stale_behind_it_is_one_incident(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(FAILED + STALE)
    chain = "abcdef"
    for number, (left, right) in enumerate(itertools.pairwise(chain), 1):
        name = f"copy-{right}"
        server.post(
            now_event(
                "RUNNING", job=name, run=number, inputs=[left], outputs=[right], job_facets=STREAM
            )
        )
    server.post(
        now_event("FAIL", job="copy-b", run=1, ago=5),
        # It fails because of the first, and does so a little later.
        now_event("FAIL", job="copy-c", run=2, ago=3),
    )
    wait(lambda: receiver.got)
    found = server.settled()
    assert receiver.statuses() == [("opened", "copy-b")]
    (incident,) = found["open"]
    assert incident["rules"] == ["failed", "stale"]
    assert [one["name"] for one in incident["with"]] == ["copy-c"]
    assert {one["name"] for one in incident["stale"]} == set("bcdef")
    # The cause is mended and what followed from it is not: that is an incident of its own now.
    server.post(
        now_event("RUNNING", job="copy-b", run=11, inputs=["a"], outputs=["b"], job_facets=STREAM)
    )
    wait(lambda: len(receiver.got) == 3)
    server.settled()
    assert sorted(receiver.statuses()[1:]) == [("opened", "copy-c"), ("resolved", "copy-b")]


def test_what_somebody_paused_or_stopped_is_no_incident(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(FAILED + STALE)
    stopped = {"headwater_end": facet(reason="stopped")}
    paused = {"headwater_connect": facet(state="PAUSED")}
    server.post(
        now_event("RUNNING", job="one", run=1, inputs=["a"], outputs=["b"], job_facets=STREAM),
        now_event("RUNNING", job="two", run=2, inputs=["b"], outputs=["c"], job_facets=STREAM),
        now_event("COMPLETE", job="one", run=1, run_facets=stopped, ago=5),
        now_event("COMPLETE", job="two", run=2, run_facets=paused, ago=5),
    )
    server.looked()
    assert server.settled()["open"] == []
    # The same end that nobody asked for is one.
    server.post(
        now_event("RUNNING", job="two", run=3, inputs=["b"], outputs=["c"], job_facets=STREAM)
    )
    server.post(now_event("COMPLETE", job="two", run=3, ago=5))
    wait(lambda: receiver.got)
    server.settled()
    assert receiver.statuses() == [("opened", "two")]
    assert receiver.got[0]["kind"] == "stale"


def test_an_application_whose_stream_somebody_stopped_is_no_incident_and_well_when_it_runs_again(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    """An application says of itself that it is a batch: it starts before its stream does."""
    server = alerting(FAILED + STALE)

    def both(kind: str, run: int, ago: float, **facets: Any) -> None:
        above = {"runId": f"00000000-0000-4000-8000-{run:012}"}
        parent = {"parent": facet(run=above, job={"namespace": "jobs", "name": "app"})}
        server.post(
            now_event(kind, job="app", run=run, run_facets=facets, ago=ago),
            now_event(
                kind, job="app.query", run=run + 1, inputs=["a"], outputs=["b"],
                run_facets={**parent, **facets}, job_facets=STREAM, ago=ago,
            ),
        )  # fmt: skip

    both("RUNNING", 1, 60)
    both("ABORT", 1, 50, headwater_end=facet(reason="signal SIGTERM"))
    server.looked()
    assert server.settled()["open"] == []
    assert server.client.get("/api/v2/overview")["troubles"]["jobs"] == []
    both("RUNNING", 3, 40)
    both("ABORT", 3, 30)  # killed: nobody says why
    wait(lambda: receiver.got)
    both("RUNNING", 5, 20)
    wait(lambda: len(receiver.got) == 2)
    assert server.settled()["open"] == []
    assert {status for status, _ in receiver.statuses()} == {"opened", "resolved"}
    # A batch that somebody ended has not done its work.
    server.post(
        now_event("RUNNING", job="batch", run=7, outputs=["c"], ago=20),
        now_event("ABORT", job="batch", run=7, ago=10, run_facets={"headwater_end": facet(reason="signal SIGTERM")}),
    )  # fmt: skip
    wait(lambda: len(receiver.got) == 3)
    assert receiver.statuses()[-1] == ("opened", "batch")


@pytest.mark.parametrize("first", ["app", "other"], ids=["run", "shared_id"])
def test_an_application_and_its_query_that_fail_together_are_one_incident(
    alerting: Callable[[str], Alerting], receiver: Receiver, first: str
) -> None:
    """Also where another job was the first to report under the id of the application's run."""
    server = alerting(FAILED)
    server.post(now_event("RUNNING", job=first, run=1))
    parent = {
        "parent": facet(
            run={"runId": "00000000-0000-4000-8000-000000000001"},
            job={"namespace": "jobs", "name": "app"},
        )
    }
    server.post(
        now_event("RUNNING", job="app", run=1),
        now_event(
            "RUNNING",
            job="app.query",
            run=2,
            inputs=["a"],
            outputs=["b"],
            run_facets=parent,
            job_facets=STREAM,
        ),
        now_event("FAIL", job="app.query", run=2, run_facets=parent),
    )
    wait(lambda: receiver.got)
    server.post(now_event("FAIL", job="app", run=1))
    found = server.settled()
    assert receiver.statuses() == [("opened", "app.query")]
    assert [one["name"] for one in found["open"][0]["with"]] == ["app"]
    rows = server.client.get("/api/v2/overview")["troubles"]["jobs"]
    assert [one["name"] for one in rows] == ["app.query"]
    assert [one["name"] for one in rows[0]["with"]] == ["app"]


def test_a_schema_change_that_breaks_a_reader_is_told_until_the_reader_follows(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting('[rules.schema]\nwhen = "schema-breaks"\nto = ["hook"]\n')
    into = dataset("c", columnLineage=columns(total=("b", "price")), schema=schema("total"))
    server.post(
        now_event(
            "COMPLETE",
            job="make",
            run=1,
            ago=60,
            outputs=[dataset("b", schema=schema("id", "price"))],
        ),
        now_event("COMPLETE", job="sum", run=2, ago=59, inputs=["b"], outputs=[into]),
        # A new column breaks nobody.
        now_event(
            "COMPLETE",
            job="make",
            run=3,
            outputs=[dataset("b", schema=schema("id", "price", "tax"))],
        ),
    )
    server.looked()
    assert receiver.got == []
    server.post(
        now_event("COMPLETE", job="make", run=4, outputs=[dataset("b", schema=schema("id", "tax"))])
    )
    wait(lambda: receiver.got)
    (told,) = receiver.got
    assert told["kind"] == "schema-breaks"
    assert told["subject"]["name"] == "b"
    assert "sum" in told["title"]
    assert "price" in told["detail"]
    assert told["affected"]["names"][0]["name"] == "sum"
    server.post(
        now_event(
            "COMPLETE", job="sum", run=5, inputs=["b"],
            outputs=[dataset("c", columnLineage=columns(total=("b", "tax")), schema=schema("total"))],
        )
    )  # fmt: skip
    wait(lambda: len(receiver.got) == 2)
    server.settled()
    assert receiver.statuses() == [("opened", "b"), ("resolved", "b")]


class Evaluated:
    """A store whose rules are evaluated at the moments that a test chooses, in seconds from now."""

    def __init__(self, store_url: str, folder: Path, rules: str) -> None:
        file = folder / "alerts.toml"
        file.write_text(f'[channels.none]\ncommand = ["true"]\n{rules}', encoding="utf-8")
        self.rules = read_rules(file)
        self.store = open_store(store_url)
        self.app = App(self.store, ServerSettings(alerts=self.rules))
        self.now = time.time_ns() // 1000

    def post(self, *events: dict[str, Any]) -> None:
        self.store.append([json.dumps(one).encode() for one in events])

    def schema(self, name: str, run: int, second: float, *fields: str) -> None:
        """A dataset has these columns from a moment on."""
        outputs = [dataset(name, schema=schema(*fields))]
        self.post(now_event("COMPLETE", job="make", run=run, ago=-second, outputs=outputs))

    def look(self, second: float) -> dict[str, str]:
        """The incidents that open or end, by the name of what they are about."""
        now, alerts, connection = (
            self.now + int(second * 1e6),
            self.app.alerts,
            self.store.connection,
        )
        assert alerts is not None
        changes, *_ = alerts.conditions.evaluate(self.app, now)
        connection.begin()
        incidents.register(connection, self.rules, now)
        incidents.write(connection, changes, now)
        connection.commit()
        return {one.name: "open" if one.resolved is None else "over" for one in changes.write}


@pytest.fixture
def evaluated(store_url: str, tmp_path: Path) -> Iterator[Callable[[str], Evaluated]]:
    started: list[Evaluated] = []

    def start(rules: str) -> Evaluated:
        started.append(Evaluated(store_url, tmp_path, rules))
        return started[-1]

    yield start
    for one in started:
        one.store.close()


def summed(number: int, name: str) -> dict[str, Any]:
    """A job that reads the price of a dataset."""
    into = dataset(f"{name}-sum", columnLineage=columns(total=(name, "price")))
    return now_event("COMPLETE", job=f"sum-{name}", run=number, ago=50, inputs=[name], outputs=[into])  # fmt: skip


def test_a_schema_change_is_told_once_it_has_broken_a_reader_for_as_long_as_a_rule_says(
    evaluated: Callable[[str], Evaluated],
) -> None:
    server = evaluated('[rules.r]\nwhen = "schema-breaks"\nto = ["none"]\nfor = "1h"\n')
    for number, name in enumerate("ab"):
        server.schema(name, 10 + number, -60, "id", "price")
        server.post(summed(20 + number, name))
    assert server.look(-30) == {}
    for number, name in enumerate("ab"):
        server.schema(name, 30 + number, -10, "id")
    assert server.look(0) == {}
    assert server.look(1_800) == {}
    server.schema("b", 40, -5, "id", "price")
    assert server.look(3_580) == {}
    assert server.look(3_600) == {"a": "open"}
    server.schema("a", 41, -4, "id", "price")
    assert server.look(3_610) == {"a": "over"}


def test_every_schema_change_of_a_burst_is_judged(evaluated: Callable[[str], Evaluated]) -> None:
    server = evaluated('[rules.r]\nwhen = "schema-breaks"\nto = ["none"]\n')
    names = [f"t{number}" for number in range(CHANGES + 10)]
    for number, name in enumerate(names):
        server.schema(name, 1_000 + number, -60, "id", "price")
        server.post(summed(2_000 + number, name))
    assert server.look(-30) == {}
    for number, name in enumerate(names):
        server.schema(name, 3_000 + number, -20 + number / 100, "id")
    told = [server.look(second) for second in (0, 1, 2)]
    assert [len(one) for one in told] == [CHANGES, 10, 0]
    assert set(told[0]) | set(told[1]) == set(names)


def test_a_schema_change_of_a_source_and_its_topic_is_one_incident(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting('[rules.schema]\nwhen = "schema-breaks"\nto = ["hook"]\n')

    def source(run: int, ago: float, *fields: str, topic: tuple[str, ...] = ()) -> dict[str, Any]:
        lineage = columns(**{one: ("table", one) for one in topic or fields})
        into = dataset("topic", schema=schema(*(topic or fields)), columnLineage=lineage)
        inputs = [dataset("table", schema=schema(*fields))]
        sides = {"inputs": inputs, "outputs": [into]}
        return now_event("RUNNING", job="cdc", run=run, ago=ago, job_facets=STREAM, **sides)

    reads = dataset("sums", columnLineage=columns(total=("topic", "price")), schema=schema("total"))
    looks = dataset("view", columnLineage=columns(p=("table", "price")), schema=schema("p"))
    server.post(
        source(1, 60, "id", "price"),
        now_event("COMPLETE", job="sum", run=2, ago=59, inputs=["topic"], outputs=[reads]),
        now_event("COMPLETE", job="look", run=3, ago=59, inputs=["table"], outputs=[looks]),
        source(1, 0, "id"),
    )
    wait(lambda: receiver.got)
    server.settled()
    assert receiver.statuses() == [("opened", "table")]
    assert {one["name"] for one in receiver.got[0]["with"]} >= {"topic", "sum", "look"}
    assert receiver.got[0]["title"] == "table changed its schema and breaks look, sum"
    assert receiver.got[0]["affected"]["datasets"] == 2
    # The source is mended and the topic is not: that is an incident of its own now.
    server.post(source(1, 0, "id", "price", topic=("id",)))
    wait(lambda: len(receiver.got) == 3)
    server.settled()
    assert sorted(receiver.statuses()[1:]) == [("opened", "topic"), ("resolved", "table")]


def test_a_new_reader_of_a_tagged_column_is_told_and_the_old_ones_are_not(
    alerting: Callable[[str], Alerting], receiver: Receiver, store_url: str
) -> None:
    def reader(job: str, run: int, column: str) -> dict[str, Any]:
        into = dataset(f"of-{job}", columnLineage=columns(x=("people", column)), schema=schema("x"))
        return now_event("COMPLETE", job=job, run=run, inputs=["people"], outputs=[into])

    before = Client(open_store(store_url), ServerSettings())
    before.post(
        now_event(
            "COMPLETE", job="make", run=1, outputs=[dataset("people", schema=schema("id", "email"))]
        ),
        reader("known", 2, "email"),
    )
    tag = "/api/v1/namespaces/s3%3A%2F%2Flake/datasets/people/fields/email/tags/pii"
    assert before.call("POST", tag).is_success
    before.close()
    server = alerting('[rules.pii]\nwhen = "new-reader"\nto = ["hook"]\ntags = ["pii"]\n')
    server.post(
        reader("known", 3, "email"), reader("harmless", 4, "id"), reader("curious", 5, "email")
    )
    wait(lambda: receiver.got)
    server.settled()
    assert [one["title"] for one in receiver.got] == ["curious began to read people.email (pii)"]
    assert receiver.got[0]["with"] == [{"type": "job", "namespace": "jobs", "name": "curious"}]
    # The tag gets to the column that `known` writes from it, and not to that of `harmless`.
    for run, name in ((6, "of-harmless"), (7, "of-known")):
        into = dataset(f"copy-{name}", columnLineage=columns(y=(name, "x")), schema=schema("y"))
        server.post(
            now_event("COMPLETE", job=f"copy-{name}", run=run, inputs=[name], outputs=[into])
        )
    wait(lambda: len(receiver.got) == 2)
    server.settled()
    assert [one["title"] for one in receiver.got[1:]] == [
        "copy-of-known began to read of-known.x (pii)"
    ]


def test_a_tag_that_is_set_on_a_column_makes_nobody_who_reads_it_a_new_reader(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    def reader(job: str, run: int, column: str = "email", of: str = "people") -> dict[str, Any]:
        into = dataset(f"of-{job}", columnLineage=columns(x=(of, column)), schema=schema("x"))
        return now_event("COMPLETE", job=job, run=run, inputs=[of], outputs=[into])

    server = alerting('[rules.pii]\nwhen = "new-reader"\nto = ["hook"]\ntags = ["pii"]\n')
    people = dataset("people", schema=schema("id", "email", "phone"))
    server.post(
        now_event("COMPLETE", job="make", run=1, outputs=[people]),
        reader("old", 2),
        reader("other", 3, "id"),
        reader("behind", 4, "x", "of-old"),
    )
    server.settled()
    for column in ("email", "phone"):
        tag = f"/api/v1/namespaces/s3%3A%2F%2Flake/datasets/people/fields/{column}/tags/pii"
        assert server.client.call("POST", tag).is_success
    server.settled()
    assert receiver.got == []
    # A job that read the dataset before and now reads the column, and one behind a new table.
    server.post(reader("other", 5, "phone"), reader("fresh", 6), reader("last", 7, "x", "of-fresh"))
    wait(lambda: len(receiver.got) == 3)
    server.settled()
    assert {one["title"] for one in receiver.got} == {
        "other began to read people.phone (pii)",
        "fresh began to read people.email (pii)",
        "last began to read of-fresh.x (pii)",
    }


def test_rules_that_change_while_they_are_evaluated_hold_from_the_next_evaluation_on(
    alerting: Callable[[str], Alerting],
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # One rule changes its filter, and one is new; the tags that they ask about stay the same.
    rule = '[rules.{}]\nwhen = "new-reader"\nto = ["hook"]\ntags = ["pii"]\nnames = ["{}"]\n'
    server = alerting(rule.format("first", "nothing"))
    people = dataset("people", schema=schema("id", "email"))
    server.post(now_event("COMPLETE", job="make", run=1, outputs=[people]))
    tag = "/api/v1/namespaces/s3%3A%2F%2Flake/datasets/people/fields/email/tags/pii"
    assert server.client.call("POST", tag).is_success
    server.settled()
    alerts = server.client.app.alerts
    assert alerts is not None
    text = server.file.read_text().replace('"nothing"', '"people"')
    server.file.with_name("new.toml").write_text(text + rule.format("second", "people"))
    new = read_rules(server.file.with_name("new.toml"))
    read, swapped = incidents.list_incidents, threading.Event()

    def reading(*given: Any, **named: Any) -> Any:
        if threading.current_thread().name.startswith("headwater-alerts") and not swapped.is_set():
            alerts.use(new)
            swapped.set()
        return read(*given, **named)

    monkeypatch.setattr(incidents, "list_incidents", reading)
    assert swapped.wait(60)
    server.settled()
    into = dataset("copy", columnLineage=columns(x=("people", "email")))
    server.post(now_event("COMPLETE", job="late", run=4, inputs=["people"], outputs=[into]))
    (told,) = wait(lambda: receiver.got)
    assert told["title"] == "late began to read people.email (pii)"
    assert told["rules"] == ["first", "second"]
    assert "could not be evaluated" not in caplog.text


def test_who_reads_a_tagged_column_is_asked_again_when_anything_it_depends_on_has_changed(
    client: Client, tmp_path: Path
) -> None:
    """Rules that remember find what rules that are evaluated for the first time in their life find."""

    def reader(
        job: str, run: int, column: str = "email", of: str = "people", **more: Any
    ) -> dict[str, Any]:
        into = dataset(f"of-{job}", columnLineage=columns(x=(of, column)), schema=schema("x"))
        return now_event("COMPLETE", job=job, run=run, inputs=[of], outputs=[into], **more)

    def tag(column: str, method: str = "POST") -> None:
        name = f"/api/v1/namespaces/s3%3A%2F%2Flake/datasets/people/fields/{column}/tags/pii"
        assert client.call(method, name).is_success

    def same_name() -> None:
        names = {"namespace": "s3://lake", "name": "leute"}
        target = {"namespace": "s3://lake", "name": "people"}
        path = "/api/v2/aliases"
        assert client.call("POST", path, json={"alias": names, "dataset": target}).is_success

    def unread() -> dict[str, Any]:
        evidence = {
            "edges": [
                {
                    "input": {"namespace": "s3://lake", "name": "people"},
                    "output": {"namespace": "s3://lake", "name": "of-other"},
                    "columns": True,
                }
            ]
        }
        return now_event("COMPLETE", job="wildcard", run=9, inputs=["people"],
                         outputs=["of-other"], job_facets={"headwater_evidence": facet(**evidence)})  # fmt: skip

    people = dataset("people", schema=schema("id", "email", "phone"))
    steps: list[Callable[[], Any]] = [
        lambda: client.post(now_event("COMPLETE", job="make", run=1, outputs=[people])),
        lambda: tag("email"),
        lambda: client.post(reader("first", 2)),
        lambda: client.post(reader("first", 2)),
        lambda: client.post(reader("other", 3, "id")),
        lambda: client.post(reader("other", 4, "email")),
        lambda: client.post(reader("behind", 5, "x", "of-first")),
        lambda: tag("phone"),
        lambda: client.post(reader("phone", 6, "phone")),
        lambda: client.post(reader("foreign", 7, "email", "leute")),
        same_name,
        lambda: client.post(now_event("COMPLETE", job="wildcard", run=8, inputs=["people"],
                                      outputs=["of-other"])),
        lambda: client.post(unread()),
        lambda: tag("email", "DELETE"),
        lambda: tag("email"),
        lambda: client.post(now_event("COMPLETE", job="first", run=10, outputs=["of-first"])),
    ]  # fmt: skip
    file = tmp_path / "rules.toml"
    file.write_text(
        '[channels.c]\ncommand = ["true"]\n'
        '[rules.pii]\nwhen = "new-reader"\nto = ["c"]\ntags = ["pii"]\n'
    )
    rules = read_rules(file)
    remembering = Conditions(rules)
    found = []
    for step in steps:
        step()
        now = time.time_ns() // 1000
        changes, *_ = remembering.evaluate(client.app, now)
        anew, *_ = Conditions(rules).evaluate(client.app, now)
        assert (changes.seen, changes.write) == (anew.seen, anew.write)
        found.append(len(changes.seen))
    assert len(set(found)) > 8  # nearly each step changed what was found


def test_a_failed_check_is_told_until_it_holds(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    def checked(run: int, held: bool) -> dict[str, Any]:
        made = dataset("orders")
        made["inputFacets"] = {
            "dataQualityAssertions": facet(
                assertions=[{"assertion": "not_null", "column": "price", "success": held}]
            )
        }
        return now_event("COMPLETE", job="dbt-test", run=run, inputs=[made])

    server = alerting('[rules.quality]\nwhen = "check-failed"\nto = ["hook"]\n')
    server.post(now_event("COMPLETE", job="use", run=9, inputs=["orders"], outputs=["report"]))
    server.post(checked(1, held=True))
    server.looked()
    assert receiver.got == []
    server.post(checked(2, held=False))
    wait(lambda: receiver.got)
    server.post(checked(3, held=False))
    server.settled()
    (told,) = receiver.got
    assert (told["kind"], told["detail"]) == ("check-failed", "not_null price")
    assert {one["name"] for one in told["affected"]["names"]} >= {"use", "report"}
    server.post(checked(4, held=True))
    wait(lambda: len(receiver.got) == 2)
    assert receiver.statuses() == [("opened", "orders"), ("resolved", "orders")]


def test_what_one_job_found_is_told_until_that_job_finds_it_good_or_is_deleted(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    def checked(run: int, job: str, held: bool, severity: str = "error") -> dict[str, Any]:
        made = dataset("orders")
        found = {"assertion": job, "column": "price", "success": held, "severity": severity}
        made["inputFacets"] = {"dataQualityAssertions": facet(assertions=[found])}
        return now_event("COMPLETE", job=job, run=run, inputs=[made])

    server = alerting('[rules.quality]\nwhen = "check-failed"\nto = ["hook"]\n')
    server.post(checked(1, "warns", held=False, severity="warn"))
    server.looked()
    assert receiver.got == []
    server.post(checked(2, "not_null", held=False))
    wait(lambda: receiver.got)
    assert receiver.got[0]["detail"] == "not_null price"
    server.post(checked(3, "unique", held=True))
    # Its next run has checked nothing yet.
    server.post(now_event("START", job="not_null", run=4, inputs=["orders"]))
    (incident,) = server.settled()["open"]
    assert (incident["detail"], len(receiver.got)) == ("not_null price", 1)
    server.post(checked(5, "unique", held=False))
    server.settled()
    assert server.get()["open"][0]["detail"] == "not_null price, unique price"
    server.post(checked(6, "unique", held=True))
    assert server.client.call("DELETE", "/api/v1/namespaces/jobs/jobs/not_null").is_success
    wait(lambda: len(receiver.got) == 2)
    assert receiver.statuses() == [("opened", "orders"), ("resolved", "orders")]


def test_a_producer_that_falls_silent_is_one_incident_for_all_its_runs(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(
        FAILED + STALE
        + '[rules.silent]\nwhen = "producer-silent"\nto = ["hook"]\nfor = "10m"\nnamespaces = "agent-*"\n'
    )  # fmt: skip
    for number in range(1, 4):
        beat = now_event(
            "RUNNING",
            job=f"sink-{number}",
            run=number,
            ago=3_600,
            inputs=[f"t{number}"],
            outputs=[f"d{number}"],
            job_facets=BEATING,
        )
        beat["job"]["namespace"] = "agent-1"
        server.post(beat)
    wait(lambda: receiver.got)
    # The server closes what is silent: that is the same trouble.
    runs = "/api/v1/jobs/runs/00000000-0000-4000-8000-00000000000"
    wait(lambda: all(server.client.get(f"{runs}{n}")["state"] == "ABORTED" for n in (1, 2, 3)))
    found = server.settled()
    (told,) = receiver.got
    assert told["kind"] == "producer-silent"
    assert told["subject"] == {"type": "namespace", "namespace": "agent-1", "name": ""}
    assert [one["kind"] for one in found["open"]] == ["producer-silent"]
    back = now_event(
        "RUNNING", job="sink-1", run=11, inputs=["t1"], outputs=["d1"], job_facets=STREAM
    )
    back["job"]["namespace"] = "agent-1"
    server.post(back)
    wait(lambda: ("resolved", "") in receiver.statuses())


def test_what_was_wrong_before_the_rule_is_listed_and_not_sent(
    alerting: Callable[[str], Alerting], receiver: Receiver, store_url: str
) -> None:
    before = Client(open_store(store_url), ServerSettings())
    before.post(now_event("FAIL", job="old", run=1))
    before.close()
    server = alerting(FAILED)
    found = server.settled()
    assert [one["title"] for one in found["open"]] == ["old failed"]
    assert found["open"][0]["deliveries"] == []
    server.post(now_event("COMPLETE", job="old", run=2), now_event("FAIL", job="new", run=3))
    wait(lambda: receiver.got)
    server.settled()
    assert receiver.statuses() == [("opened", "new")]


def test_filters_choose_by_name_owner_and_tag(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    owned = {
        "ownership": facet(owners=[{"name": "team:lake"}]),
        "tags": facet(tags=[{"key": "gold", "value": "true"}]),
    }
    rule = '[rules.r]\nwhen = "run-failed"\nto = ["hook"]\nowners = ["team:*"]\ntags = ["gold"]\nnames = ["load-*"]\n'
    server = alerting(rule)
    server.post(
        now_event("FAIL", job="load-a", run=1),
        now_event("FAIL", job="other", run=2, job_facets=owned),
        now_event("FAIL", job="load-b", run=3, job_facets=owned),
    )
    wait(lambda: receiver.got)
    server.settled()
    assert receiver.statuses() == [("opened", "load-b")]


def test_a_receiver_that_is_down_gets_it_later_and_redirects_are_not_followed(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(FAILED)
    receiver.code, receiver.reply = 302, b""
    server.post(now_event("FAIL", job="load", run=1))
    refused = wait(
        lambda: [d for one in server.get()["open"] for d in one["deliveries"] if d["error"]]
    )
    assert refused[0]["error"] == "HTTP 302: redirects are not followed"
    assert refused[0]["state"] == "waiting"
    assert set(receiver.paths) == {"/hook"}
    receiver.code = 200
    wait(lambda: receiver.got)
    found = server.settled()
    assert receiver.statuses() == [("opened", "load")]
    assert found["open"][0]["deliveries"][0]["attempts"] >= 2


def test_a_message_that_is_sent_while_the_next_are_read_is_not_sent_again(
    alerting: Callable[[str], Alerting], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Alerts._due
    overtaken = threading.Event()

    def slow(self: Alerts, app: Any, now: int) -> Any:
        found = read(self, app, now)
        if found and not all(task.done() for task in self._sending.values()):
            receiver.open.set()
            wait(lambda: all(task.done() for task in self._sending.values()))
            overtaken.set()
        return found

    monkeypatch.setattr(Alerts, "_due", slow)
    receiver.open.clear()
    server = alerting(FAILED)
    server.post(now_event("FAIL", job="load", run=1))
    wait(overtaken.is_set)
    server.settled()
    assert receiver.statuses() == [("opened", "load")]


def test_a_slow_receiver_slows_nobody_who_sends_events(
    alerting: Callable[[str], Alerting], receiver: Receiver
) -> None:
    server = alerting(FAILED)

    def slowest() -> float:
        took = []
        for number in range(60):
            start = time.perf_counter()
            server.post(now_event("START", job=f"j{number}", run=1_000 + number))
            took.append(time.perf_counter() - start)
        return sorted(took)[len(took) * 9 // 10]

    usual = slowest()
    receiver.open.clear()
    for number in range(20):
        server.post(now_event("FAIL", job=f"f{number}", run=2_000 + number))
    wait(lambda: len(server.get()["open"]) == 20)
    busy = slowest()
    assert receiver.got == []
    receiver.open.set()
    # A request that waited for the receiver would have taken half a minute.
    assert busy < usual + 0.25, (usual, busy)
    wait(lambda: {name for _, name in receiver.statuses()} >= {f"f{n}" for n in range(20)})


def test_no_secret_is_logged_or_answered(
    alerting: Callable[[str], Alerting],
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOOK_URL", receiver.url + "/T000/B000/" + SECRET)
    (tmp_path / "pager.token").write_text(f"Bearer {SECRET}\n")
    caplog.set_level(logging.DEBUG)
    server = alerting(
        '[channels.secret]\nurl = { env = "HOOK_URL" }\n'
        'headers.Authorization = { file = "pager.token" }\n'
        + FAILED.replace('"hook"', '"secret"')
    )  # fmt: skip
    # A receiver that gives back what it was sent, as some do.
    receiver.code, receiver.reply = 500, f"no such path /hook/T000/B000/{SECRET}".encode()
    server.post(now_event("FAIL", job="load", run=1))
    wait(lambda: [d for one in server.get()["open"] for d in one["deliveries"] if d["error"]])
    tested = server.client.call("POST", "/api/v2/alerts/test", content="{}")
    listed = json.dumps(server.get())
    receiver.code = 200
    wait(lambda: receiver.got)
    assert receiver.headers[0]["authorization"] == f"Bearer {SECRET}"
    for text in (tested.text, listed, caplog.text, repr(server.client.app.settings)):
        assert SECRET not in text
    assert "could not be sent to secret" in caplog.text


def test_a_command_gets_the_message_on_its_standard_input(
    alerting: Callable[[str], Alerting], tmp_path: Path
) -> None:
    script, got = tmp_path / "page.py", tmp_path / "got.json"
    script.write_text(
        "import pathlib, sys\n"
        f"pathlib.Path({str(got)!r}).open('a').write(sys.stdin.read())\n"
        "print('paged ' * 1000)\n"
        "sys.exit(3 if sys.argv[1] == 'no; touch x' else 0)\n"
    )
    command = [sys.executable, str(script)]
    server = alerting(
        f"[channels.run]\ncommand = {json.dumps([*command, 'yes'])}\n"
        f"[channels.bad]\ncommand = {json.dumps([*command, 'no; touch x'])}\n"
        f'[channels.hangs]\ncommand = {json.dumps(["sleep", "60"])}\ntimeout = "1s"\n'
        + FAILED.replace('"hook"', '"run", "bad", "hangs"')
    )  # fmt: skip
    server.post(now_event("FAIL", job="load", run=1))

    def outcome() -> Any:
        found = [d for one in server.get()["open"] for d in one["deliveries"]]
        return found if found and all(d["attempts"] for d in found) else None

    by_channel = {one["channel"]: one for one in wait(outcome)}
    assert by_channel["run"]["state"] == "sent"
    assert by_channel["bad"]["error"].startswith("exit code 3: paged paged")
    assert len(by_channel["bad"]["error"]) < 400
    assert by_channel["hangs"]["error"] == "no answer within 1 s"
    first = json.loads(got.read_text().splitlines()[0])
    assert (first["status"], first["title"]) == ("opened", "load failed")


def test_a_command_need_not_read_its_standard_input() -> None:
    """On the server's own loop, which refuses to write where nobody reads any more."""

    async def converse() -> bytes:
        process = await asyncio.create_subprocess_exec(
            "echo", "done", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        return await _converse(process, b"{}")

    loop = uvloop.new_event_loop()
    try:
        assert loop.run_until_complete(converse()) == b"done\n"
    finally:
        loop.close()


def test_the_file_is_read_again_when_it_changes_and_a_broken_one_leaves_the_old_rules(
    alerting: Callable[[str], Alerting], receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    server = alerting(STALE)
    good = server.file.read_text()

    def rules() -> list[str]:
        return [one["name"] for one in server.get()["rules"]]

    def warned() -> list[str]:
        found: list[str] = server.client.get("/api/v2/health").get("warnings", [])
        return [one for one in found if one.startswith("alerts: ")]

    server.post(now_event("FAIL", job="earlier", run=1))
    server.file.write_text(good + FAILED)
    wait(lambda: rules() == ["stale", "failed"])
    server.looked()
    server.post(now_event("FAIL", job="load", run=2))
    wait(lambda: receiver.got)
    server.settled()
    # What was wrong before the rule is not told of, as at a start.
    assert receiver.statuses() == [("opened", "load")]
    server.file.write_text(good + FAILED.replace("hook", "nobody"))
    (warning,) = wait(warned)
    assert str(server.file) not in warning
    assert "rules.failed: to names nobody, which is no channel" in caplog.text
    assert rules() == ["stale", "failed"]
    server.file.unlink()
    server.post(now_event("COMPLETE", job="load", run=3))
    wait(lambda: len(receiver.got) == 2)
    server.file.write_text(good)
    wait(lambda: rules() == ["stale"])
    assert warned() == []


class Command:
    """A command whose server is the app of this test."""

    def __init__(self, client: Client, patch: pytest.MonkeyPatch) -> None:
        def request(method: str, url: str, **more: Any) -> Any:
            more.pop("timeout")
            return client.call(method, url, **more)

        patch.setattr("httpx.request", request)
        patch.setattr(headwater.cli.server.client, "SERVER", "http://server")
        patch.delenv("OPENLINEAGE_URL", raising=False)

    def __call__(self, *words: str) -> Any:
        return CliRunner().invoke(command_line, ["alerts", *words])


def test_the_commands_list_incidents_and_send_a_marked_test_message(
    alerting: Callable[[str], Alerting], receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = alerting('[channels.chat]\nurl = "http://127.0.0.1:9/x"\n' + FAILED + STALE)
    command = Command(server.client, monkeypatch)
    assert "no incident is open" in command("list").stdout
    sent = command("test", "failed")
    assert sent.exit_code == 0, sent.output
    (told,) = receiver.got
    assert told["status"] == "test"
    assert "Test of the alert rule failed" in told["title"]
    server.post(now_event("FAIL", job="load", run=1, outputs=["b"]))
    wait(lambda: len(receiver.got) > 1)
    server.settled()
    text = command("list").stdout
    assert "open" in text
    assert "load failed" in text
    listed = json.loads(command("list", "--json").stdout)
    assert [one["title"] for one in listed["open"]] == ["load failed"]
    assert command("test", "--all", "--json").exit_code == 0
    receiver.code = 500
    for words, code in ((("failed",), 1), (("nothing",), 4), ((), 2)):
        refused = command("test", *words).exception
        assert isinstance(refused, HeadwaterError)
        assert refused.exit_code == code


@pytest.mark.full
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_a_killed_server_loses_no_message_and_sends_none_twice(
    store: str,
    request: pytest.FixtureRequest,
    launch: Callable[..., Process],
    receiver: Receiver,
    tmp_path: Path,
) -> None:
    url = None if store == "sqlite" else request.getfixturevalue("postgres").database()
    rules = tmp_path / "alerts.toml"
    rules.write_text(f'[channels.hook]\nurl = "{receiver.url}"\n' + FAILED)
    server = launch(url, "--alerts", str(rules))

    def alerts() -> Any:
        return httpx.get(f"{server.url}/api/v2/alerts").json()

    def post(sent: dict[str, Any]) -> None:
        answer = httpx.post(f"{server.url}/api/v1/lineage", content=json.dumps(sent))
        assert answer.status_code == 201, answer.text

    wait(lambda: alerts()["lookedAt"])
    post(now_event("FAIL", job="told", run=1))
    wait(lambda: receiver.got)
    wait(lambda: alerts()["open"][0]["deliveries"][0]["state"] == "sent")
    receiver.code = 503
    post(now_event("FAIL", job="owed", run=2))
    wait(lambda: len(alerts()["open"]) == 2)
    # Acknowledged, and nobody has looked since: the next server has to find it.
    post(now_event("FAIL", job="unseen", run=3))
    server.kill()
    receiver.code = 200
    server.start()
    wait(lambda: len(receiver.got) == 3)
    post(now_event("COMPLETE", job="told", run=4))
    wait(lambda: len(receiver.got) == 4)
    names = [(one["status"], one["subject"]["name"]) for one in receiver.got]
    assert sorted(names) == [
        ("opened", "owed"),
        ("opened", "told"),
        ("opened", "unseen"),
        ("resolved", "told"),
    ]
    log = (tmp_path / "server0.log").read_text()
    assert receiver.url not in log


def test_of_two_servers_one_sends_and_the_other_takes_over(
    postgres: Any, launch: Callable[..., Process], receiver: Receiver, tmp_path: Path
) -> None:
    rules = tmp_path / "alerts.toml"
    rules.write_text(f'[channels.hook]\nurl = "{receiver.url}"\n' + FAILED)
    store = postgres.database()
    one = launch(store, "--alerts", str(rules))
    wait(lambda: httpx.get(f"{one.url}/api/v2/alerts").json()["lookedAt"])
    two = launch(store, "--alerts", str(rules))
    sent = json.dumps(now_event("FAIL", job="first", run=1))
    assert httpx.post(f"{two.url}/api/v1/lineage", content=sent).status_code == 201
    wait(lambda: receiver.got)

    def alerts() -> Any:
        return httpx.get(f"{two.url}/api/v2/alerts").json()

    # Killed before it has noted that the message arrived, the other server would send it again.
    wait(lambda: alerts()["open"][0]["deliveries"][0]["state"] == "sent")
    assert alerts()["lookedAt"] is None
    one.kill()
    sent = json.dumps(now_event("FAIL", job="second", run=2))
    assert httpx.post(f"{two.url}/api/v1/lineage", content=sent).status_code == 201
    wait(lambda: len(receiver.got) == 2)
    assert receiver.statuses() == [("opened", "first"), ("opened", "second")]


@pytest.mark.parametrize(
    ("options", "linked"),
    [
        ((), True),
        pytest.param(("--no-page",), False, marks=pytest.mark.full),
        pytest.param(("--root-path", "/lineage"), False, marks=pytest.mark.full),
        (("--host", "0.0.0.0", "--insecure"), False),
    ],
)
def test_without_a_page_in_the_rules_links_lead_to_the_server_itself(
    launch: Callable[..., Process],
    tmp_path: Path,
    receiver: Receiver,
    options: tuple[str, ...],
    linked: bool,
) -> None:
    rules = tmp_path / "alerts.toml"
    rules.write_text(f'[channels.hook]\nurl = "{receiver.url}"\n{FAILED}', encoding="utf-8")
    server = launch(None, "--alerts", str(rules), *options)
    sent = httpx.post(f"{server.url}/api/v2/alerts/test", json={"rule": "failed"}, timeout=60)
    assert sent.status_code == 200, sent.text
    wait(lambda: httpx.get(f"{server.url}/api/v2/alerts").json()["lookedAt"])
    failed = now_event("FAIL", job="load", run=1, outputs=["b"])
    httpx.post(f"{server.url}/api/v1/lineage", json=failed).raise_for_status()
    wait(lambda: len(receiver.got) == 2)
    links = [one.get("link", "none") for one in receiver.got]
    assert links == ([f"{server.url}/", f"{server.url}/jobs/jobs/load"] if linked else ["none"] * 2)
    if linked:
        assert httpx.get(links[1]).status_code == 200
