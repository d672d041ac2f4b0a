"""An outbox loses nothing, keeps order, and lets one process write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from headwater.emit import Outbox, Sender, destinations
from headwater.emit.outbox import HeldError
from headwater.emit.sender import MOST_REASONS
from headwater.emit.transport import Destination, RefusedError
from headwater.errors import HeadwaterError, UsageError
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def event(run: str, number: int = 0) -> bytes:
    return json.dumps(
        {"job": {"name": "j", "namespace": "n"}, "number": number, "run": run}
    ).encode()


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(str(tmp_path / "state.db"))
    assert box.lead()
    yield box
    box.close()
    box.forget_connection()


def fill(outbox: Outbox, count: int, run: str = "r") -> None:
    with outbox.transaction() as step:
        for number in range(count):
            step.append(run, event(run, number))
        step.put("count", str(count).encode())


def test_state_and_events_are_written_together_or_not_at_all(outbox: Outbox) -> None:
    fill(outbox, 2)

    def half_a_step() -> None:
        with outbox.transaction() as step:
            step.append("r", event("r", 2))
            step.put("count", b"3")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half_a_step()
    outbox.register(["here"])
    assert [e.body for e in outbox.pending("here")] == [event("r", 0), event("r", 1)]
    assert outbox.state() == {"count": b"2"}


def test_an_event_stays_until_every_destination_has_it(outbox: Outbox) -> None:
    outbox.register(["a", "b"])
    fill(outbox, 3)
    outbox.sent("a", outbox.pending("a")[-1].seq)
    assert outbox.pending("a") == []
    assert len(outbox.pending("b")) == outbox.waiting() == 3
    outbox.register(["a"])
    fill(outbox, 1)
    outbox.sent("a", outbox.pending("a")[-1].seq)
    assert outbox.waiting() == 0


def test_one_process_writes_and_another_waits(outbox: Outbox, tmp_path: Path) -> None:
    other = Outbox(str(tmp_path / "state.db"))
    assert not other.lead()
    with pytest.raises(HeldError), other.transaction():
        pass
    other.note("restart", b"orders")
    assert outbox.notes("restart") == [b"orders"]
    assert outbox.notes("restart") == []
    outbox.close()
    assert other.lead()
    fill(other, 1)
    other.close()
    other.forget_connection()


def test_state_is_for_its_owner_alone(outbox: Outbox, tmp_path: Path) -> None:
    assert (tmp_path / "state.db").stat().st_mode & 0o077 == 0


def test_an_odd_place_for_state_is_said() -> None:
    with pytest.raises(UsageError, match=r"mysql://\*\*\*@host"):
        Outbox("mysql://user:hunter2@host/db")


class Flaky:
    """A destination that fails as it is told, and keeps what it took."""

    def __init__(self) -> None:
        self.took: list[bytes] = []
        self.down = False
        self.refuses: set[bytes] = set()

    def send(self, body: bytes) -> None:
        if self.down:
            raise HeadwaterError("HTTP 503: away")
        if body in self.refuses:
            raise RefusedError("HTTP 422: job.name: is missing")
        self.took.append(body)

    def close(self, timeout: float = 0) -> bool:
        return True

    def destination(self, name: str) -> Destination:
        return Destination(name, name, self.send, self)


def test_events_wait_for_a_server_that_is_down_and_arrive_in_order(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    down, up = Flaky(), Flaky()
    down.down = True
    sender = Sender(outbox, [down.destination("down"), up.destination("up")], longest=0.5)
    sender.start()
    fill(outbox, 120)
    wait_until(lambda: len(up.took) == 120, seconds=10, what="the one that is up")
    wait_until(lambda: sender.problems, seconds=5, what="the problem")
    assert outbox.waiting() == 120
    down.down = False
    assert outbox.drained(10)
    assert down.took == up.took == [event("r", n) for n in range(120)]
    assert sender.stop()
    assert sum("events wait" in record.message for record in caplog.records) == 1
    assert not sender.problems


def test_an_event_that_is_refused_blocks_no_other(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    to = Flaky()
    to.refuses = {event("r", 1), event("r", 3)}
    sender = Sender(outbox, [to.destination("picky")])
    fill(outbox, 5)
    sender.start()
    assert outbox.drained(10)
    assert sender.stop()
    assert to.took == [event("r", n) for n in (0, 2, 4)]
    assert [(p.body, p.reason) for p in outbox.parked()] == [
        (event("r", n), "HTTP 422: job.name: is missing") for n in (1, 3)
    ]
    assert sum("put aside" in record.message for record in caplog.records) == 1


KILLED = """
import sys
from headwater.emit import Outbox, Sender, destinations
box = Outbox(sys.argv[1])
assert box.lead()
sender = Sender(box, destinations({"type": "file", "log_file_path": sys.argv[2], "append": True}))
sender.start()
while True:
    number = int(box.state().get("number", b"0"))
    with box.transaction() as step:
        step.append("r", b'{"job":{},"number":%d}' % number)
        step.put("number", b"%d" % (number + 1))
"""


def test_refusals_that_all_differ_are_not_all_remembered(outbox: Outbox) -> None:
    def refuse(body: bytes) -> None:
        raise RefusedError(f"event {json.loads(body)['number']} is wrong")

    class Nothing:
        def close(self, _: float) -> None:
            pass

    sender = Sender(outbox, [Destination("here", "here", refuse, Nothing())])
    fill(outbox, MOST_REASONS + 50)
    sender.start()
    assert sender.stop(flush=30)
    assert len(sender._parked) == MOST_REASONS
    assert len(outbox.parked()) == MOST_REASONS + 50


def test_nothing_is_lost_by_kill_9(tmp_path: Path) -> None:
    state, events = tmp_path / "state.db", tmp_path / "events.ndjson"
    size = 0
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, state, events])
        grown = size + 2_000

        def enough(grown: int = grown) -> bool:
            return events.exists() and events.stat().st_size > grown

        wait_until(enough, seconds=30, what="events")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        size = events.stat().st_size
    box = Outbox(str(state))
    assert box.lead()
    sender = Sender(
        box, destinations({"type": "file", "log_file_path": str(events), "append": True})
    )
    sender.start()
    assert sender.stop(flush=20)
    numbers = [json.loads(line)["number"] for line in events.read_text().splitlines()]
    decided = int(box.state()["number"])
    box.close()
    box.forget_connection()
    assert set(numbers) == set(range(decided))
    seen: set[int] = set()
    firsts = [n for n in numbers if not (n in seen or seen.add(n))]  # type: ignore[func-returns-value]
    assert firsts == sorted(firsts)


class Answers(BaseHTTPRequestHandler):
    """An HTTP server that answers with the codes it was given, then 201."""

    codes: list[int]
    bodies: list[tuple[bytes, str | None]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.codes.pop(0) if self.codes else 201
        if code == 201:
            self.bodies.append((body, self.headers["Authorization"]))
        self.send_response(code)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Answers]]]:
    handler = type("Handler", (Answers,), {"codes": [], "bodies": []})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}", handler
    http.shutdown()
    http.server_close()


def test_over_http_the_bytes_are_the_same_each_time(
    outbox: Outbox, server: tuple[str, type[Answers]]
) -> None:
    url, handler = server
    handler.codes += [500, 503, 401, 404]
    config = {"type": "http", "url": url, "auth": {"type": "api_key", "apiKey": "t0ken"}}
    sender = Sender(outbox, destinations(config), longest=0.1)
    with outbox.transaction() as step:
        step.append("r", event("r", 7))
    sender.start()
    assert sender.stop(flush=15)
    assert handler.bodies == [(event("r", 7), "Bearer t0ken")]
    assert outbox.parked() == []


def test_a_bad_event_is_parked_over_http(outbox: Outbox, server: tuple[str, type[Answers]]) -> None:
    url, handler = server
    handler.codes += [400]
    fill(outbox, 2)
    sender = Sender(outbox, destinations({"type": "http", "url": url}))
    sender.start()
    assert sender.stop(flush=15)
    assert [body for body, _ in handler.bodies] == [event("r", 1)]
    assert [parked.reason for parked in outbox.parked()] == ["HTTP 400: "]


def test_a_composite_is_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = destinations(
        {
            "type": "composite",
            "transports": {
                "a": {"type": "file", "log_file_path": "a.ndjson", "append": True},
                "b": {"type": "http", "url": "http://127.0.0.1:9"},
            },
        }
    )
    assert [d.shown for d in found] == ["file a.ndjson", "http http://127.0.0.1:9/api/v1/lineage"]
    assert [d.server and d.server[0] for d in found] == [None, "http://127.0.0.1:9"]


def test_a_wrong_transport_is_said_without_its_secret() -> None:
    with pytest.raises(UsageError) as caught:
        destinations({"type": "http", "auth": {"type": "api_key", "apiKey": "s3cr3t"}})
    assert "s3cr3t" not in str(caught.value)
