"""The agent against Connect, registry and server that are broken or hostile: real HTTP, odd answers."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from headwater.connect.agent.cluster_agent import ClusterAgent
from headwater.connect.agent.cluster_lineage import ClusterLineage
from headwater.connect.config import ClusterConfig
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.lineage_server import LineageServers
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.connect.services.registry import MAX_REFERENCES, SchemaRegistry
from headwater.connect.services.rest import ConnectRest
from headwater.emit import Outbox
from tests.unit.connect.fake_connect import FakeConnect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DEEP = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
PATIENCE = 5.0
# An answer that drips is given up after a few of these.
SHORT = 0.3
# Far above what a poll takes, far below what an answer without an end would.
LONGEST = 40.0


class Hostile:
    """A service on a port of its own; `answers` has what it sends for a path, or how it sends it."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes | Callable[[Any], None]] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = unquote(self.path.partition("?")[0])
                outer.asked.append(path)
                found = outer.answers.get(path, outer.answers.get("*"))
                try:
                    if callable(found):
                        found(self)
                        return
                    self.send_response(404 if found is None else 200)
                    self.send_header("Content-Length", str(len(found or b"")))
                    self.end_headers()
                    self.wfile.write(found or b"")
                except OSError:
                    pass  # the agent hung up

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def endless(handler: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    piece = b"[" + b'"x",' * 250_000
    while True:
        handler.wfile.write(piece)


def dripping(handler: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(600):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(SHORT / 4)


class Bench:
    """The real agent and its clients; the services are hostile, the connector `good` is not."""

    def __init__(self, folder: Path, patience: float) -> None:
        self.connect, self.registry, self.lineage = Hostile(), Hostile(), Hostile()
        endpoint = Endpoint((self.connect.url,), timeout=patience)
        self.client = ConnectRest(endpoint)
        self.metadata = LiveMetadata(
            registry=SchemaRegistry(Endpoint((self.registry.url,), timeout=patience)),
            bootstrap="k:9092",
        )
        self.outbox = Outbox(str(folder / "state.db"))
        assert self.outbox.lead()
        self.outbox.register({"all": "all"})
        config = ClusterConfig(name="shop", endpoint=endpoint)
        lineage = ClusterLineage(config, self.metadata)
        self.agent = ClusterAgent("shop", self.client, self.outbox, lineage)
        fake = FakeConnect()
        fake.put("good")
        self.good = fake.connectors["good"]
        self.connect.answers = {
            "/": b'{"version": "4.3.1"}',
            "/health": b"{}",
            "/connectors/good": json.dumps(self.good["info"]).encode(),
            "/connectors/good/topics": b'{"good": {"topics": ["orders"]}}',
        }
        self.registry.answers = {"/subjects": b"[]"}
        self.listing({})

    def listing(self, more: dict[str, Any]) -> None:
        self.connect.answers["/connectors"] = json.dumps({**more, "good": self.good}).encode()

    def poll(self) -> float:
        began = time.monotonic()
        self.agent.poll()
        return time.monotonic() - began

    def poll_until_reported(self) -> None:
        """Poll until the good connector was reported, however busy the machine is."""
        for _ in range(100):
            self.agent.poll()
            if self.events:
                return
        raise AssertionError(self.problems)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(one.body) for one in self.outbox.pending("all", 1_000)]

    @property
    def problems(self) -> str:
        return json.dumps(self.agent.problems.all(), default=str)

    def close(self) -> None:
        for service in (self.connect, self.registry, self.lineage):
            service.close()
        self.client.close()
        self.metadata.close()
        self.outbox.close()
        self.outbox.forget_connection()


@pytest.fixture
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    given = getattr(request.node, "callspec", None)
    drips = given is not None and dripping in given.params.values()
    made = Bench(tmp_path, SHORT if drips else PATIENCE)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (endless, "more than"),
        (dripping, "does not answer in time"),
        (DEEP, "not a list of connectors"),
        (b"[" * 300_000, "not a list of connectors"),
        (b'{"a": ', "not a list of connectors"),
        (b"\xff\xfe", "not a list of connectors"),
        (b"[1, 2]", "not a list of connectors"),
        (b"null", "not a list of connectors"),
        (b'"\xed\xa0\x80"', "not a list of connectors"),
    ],
)
def test_a_listing_that_cannot_be_read_ends_nothing(
    bench: Bench, answer: Any, problem: str
) -> None:
    bench.poll_until_reported()
    bench.connect.answers["/connectors"] = answer
    assert bench.poll() < LONGEST
    assert problem in bench.problems
    assert [event["eventType"] for event in bench.events] == ["START"]
    bench.listing({})
    bench.poll()
    assert [event["eventType"] for event in bench.events] == ["START"]


@pytest.mark.parametrize("path", ["/connectors/good/topics", "/health", "/"])
@pytest.mark.parametrize("answer", [endless, dripping, DEEP, b"[]", b'{"good": 7}', b"\xff"])
def test_odd_answers_beside_the_listing_are_bounded(bench: Bench, path: str, answer: Any) -> None:
    bench.connect.answers[path] = answer
    assert bench.poll() < LONGEST
    bench.connect.answers |= {
        "/": b'{"version": "4"}', "/health": b"{}", "/connectors/good/topics": b'{"good": {}}',
    }  # fmt: skip
    bench.poll_until_reported()
    assert bench.events[0]["job"]["name"] == "good"


ENTRIES: list[Any] = [
    None, 7, "x", [], {}, {"status": 7, "info": {}}, {"status": {}, "info": {"config": {}}},
    {"status": {"connector": {"state": 7}}, "info": {"config": {}}},
    {"status": {"connector": {"state": "RUNNING"}, "tasks": {}}, "info": {"config": {}}},
    {"status": {"connector": {"state": "RUNNING"}}, "info": {"config": {"a": {"b": 1}}}},
    {"status": {"connector": {"state": "RUNNING"}}, "info": {"config": [1]}},
    {"status": {"connector": {"state": "\x1b[2J" * 10_000}}, "info": {"config": {}}},
    {"status": {"connector": {"state": "RUNNING"}, "tasks": [{"id": 10**30, "state": "RUNNING"}]},
     "info": {"config": {}}},
    {"status": {"connector": {"state": "RUNNING"},
                "tasks": [{"id": n, "state": "RUNNING"} for n in range(60_000)]
                + [{"id": 60_000 + n, "state": "FAILED", "worker_id": "w" * 99} for n in range(9)]},
     "info": {"config": {}}},
    {"status": {"connector": {"state": "RUNNING"}},
     "info": {"config": {"connector.class": "x" * 1_000_000, "topics": "," * 1_000_000}}},
    {"status": {"connector": {"state": "RUNNING"}},
     "info": {"config": {"connector.class": "x", "topics.regex": "(a+)+$" * 50,
                         "transforms": ",".join(f"t{n}" for n in range(5_000))}}},
]  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: repr(entry)[:40])
def test_one_odd_connector_costs_no_other_its_events(bench: Bench, entry: Any) -> None:
    bench.listing({"odd": entry})
    assert bench.poll() < LONGEST
    assert "START" in [e["eventType"] for e in bench.events if e["job"]["name"] == "good"]
    assert all(len(json.dumps(event)) < 1_000_000 for event in bench.events)
    for event in bench.events:
        tasks = event["run"]["facets"]["headwater_connect"]["tasks"]
        assert len(tasks) < 25_000
        assert len(tasks) < 100 or [task["id"] for task in tasks[:9]] == list(range(60_000, 60_009))


def test_no_name_or_message_writes_a_line_of_its_own_into_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "headwater")
    odd = "a\nERROR headwater: forged \x1b[2J\u2028"
    running = {"status": {"connector": {"state": "RUNNING"}}, "info": {"config": {}}}
    bench.listing({odd: running, "b" * 5_000: running, "c": {"status": odd}})
    bench.connect.answers["/connectors/good/topics"] = json.dumps(
        {"good": {"topics": [odd, "orders"]}}
    ).encode()
    bench.poll()

    def refusing(handler: Any) -> None:
        body = json.dumps({"message": odd * 100}).encode()
        handler.send_response(500)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    bench.connect.answers["/connectors"] = refusing
    bench.poll()
    lines = [
        record.getMessage() for record in caplog.records if record.name.startswith("headwater")
    ]
    assert lines
    assert [line for line in lines if "\n" in line or "\x1b" in line or "\u2028" in line] == []
    assert {event["job"]["name"] for event in bench.events} == {"good"}
    assert "\\n" not in json.dumps([event["inputs"] for event in bench.events])


@pytest.mark.parametrize(
    "answer",
    [endless, dripping, DEEP, b"null", b"[7]", b'{"a": 1}', b'["orders-value", 7]', b"\xff"],
)
def test_a_hostile_list_of_subjects_costs_columns_only(bench: Bench, answer: Any) -> None:
    bench.registry.answers["/subjects"] = answer
    assert bench.poll() < LONGEST
    bench.poll_until_reported()
    assert bench.events[0]["inputs"][0]["name"] == "orders"


@pytest.mark.parametrize(
    "schema",
    [
        b"7", b"{}", b'{"schema": 7}', b'{"schema": "{}", "version": "x"}', DEEP,
        json.dumps({"schema": "[" * 100_000}).encode(),
        json.dumps({"schema": '{"type":"array","items":' * 20_000}).encode(),
        json.dumps({"schema": "message A {" * 20_000, "schemaType": "PROTOBUF"}).encode(),
        json.dumps({"schema": json.dumps({"type": "record", "name": "R", "fields": [
            {"name": "\x1b[2J\n", "type": "string"}, {"name": "n" * 100_000, "type": "string"}]})
        }).encode(),
        endless, dripping,
    ],
    ids=range(11),
)  # fmt: skip
def test_a_hostile_schema_costs_columns_only(bench: Bench, schema: Any) -> None:
    bench.registry.answers |= {"/subjects": b'["orders-value"]', "*": schema}
    assert bench.poll() < LONGEST
    bench.poll_until_reported()
    assert len(json.dumps(bench.events[0])) < 2_000_000


def test_schemas_that_refer_to_ever_more_schemas_are_asked_for_up_to_a_limit(bench: Bench) -> None:
    def referring(handler: Any) -> None:
        number = len(bench.registry.asked)
        more = [
            {"name": f"n{number}.{i}", "subject": f"s{number}.{i}", "version": 1} for i in range(9)
        ]
        body = json.dumps({"schema": '"string"', "version": 1, "references": more}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    bench.registry.answers |= {"/subjects": b'["orders-value"]', "*": referring}
    bench.poll()
    assert len(bench.registry.asked) <= MAX_REFERENCES + 10


@pytest.mark.parametrize("answer", [endless, DEEP, b"null", b'{"runs": [{"id": 7}]}', b"\xff"])
def test_a_hostile_list_of_runs_is_no_answer(bench: Bench, answer: Any) -> None:
    bench.lineage.answers["*"] = answer
    runs = LineageServers([(bench.lineage.url, {})])
    try:
        assert runs.runs_of("shop", "cdc.0") is None
    finally:
        runs.close()


def test_a_list_of_runs_is_read_up_to_a_limit(bench: Bench) -> None:
    many = [{"id": str(number), "state": "RUNNING"} for number in range(10_000)]
    bench.lineage.answers["*"] = json.dumps({"runs": many}).encode()
    runs = LineageServers([(bench.lineage.url, {})])
    try:
        assert len(runs.runs_of("shop", "cdc.0") or ()) == 20
    finally:
        runs.close()
