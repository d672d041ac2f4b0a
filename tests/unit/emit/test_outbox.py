"""An outbox loses nothing, keeps order, and lets one process write."""

from __future__ import annotations

import gzip
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from openlineage.client.transport.transform import EventTransformer

from headwater.emit import Outbox, Sender, destinations, journal
from headwater.emit.database import SqliteOutboxDatabase
from headwater.emit.destinations import Destination, RefusedError
from headwater.emit.journal import remove, settle
from headwater.emit.outbox import OutboxInUseError, RefusedByDestination
from headwater.emit.sender import MOST_REASONS
from headwater.emit.transports import AnsweredError
from headwater.errors import HeadwaterError, UsageError
from headwater.lab.waiting import wait_until
from tests.properties import FULL

if TYPE_CHECKING:
    from collections.abc import Iterator


RUN = "01a1e245-affa-7afa-9152-c0de9c3ae55c"


def event(run: str, number: int = 0) -> bytes:
    return json.dumps(
        {"job": {"name": "j", "namespace": "n"}, "number": number, "run": run}
    ).encode()


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    box = Outbox(str(tmp_path / "state.db"))
    assert box.lead()
    box.register({"here": "here"})
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
    assert [e.body for e in outbox.pending("here")] == [event("r", 0), event("r", 1)]
    assert outbox.state() == {"count": b"2"}


def test_an_event_stays_until_every_destination_has_it(outbox: Outbox) -> None:
    outbox.register({"a": "a", "b": "b"})
    fill(outbox, 3)
    outbox.sent("a", [event.seq for event in outbox.pending("a")])
    assert outbox.pending("a") == []
    assert len(outbox.pending("b")) == 3
    assert outbox.waiting() == {"b": 3}


def test_what_waits_for_a_destination_is_for_no_other(outbox: Outbox) -> None:
    outbox.register({"a": "http a"})
    fill(outbox, 2, "first")
    outbox.register({"b": "http b"})
    fill(outbox, 1, "second")
    assert [one.run for one in outbox.pending("b")] == ["second"]
    assert [one.run for one in outbox.pending("a")] == ["first", "first"]
    assert outbox.destinations() == {"a": "http a", "b": "http b"}
    assert outbox.destinations(active=True) == {"b": "http b"}
    outbox.register({"a": "http a", "b": "http b"})
    fill(outbox, 1, "third")
    assert [one.run for one in outbox.pending("a")] == ["first", "first", "third"]
    assert [one.run for one in outbox.pending("b")] == ["second", "third"]
    outbox.sent("a", [one.seq for one in outbox.pending("a")])
    outbox.register({"b": "http b"})
    assert outbox.destinations() == {"b": "http b"}


def test_an_event_without_a_destination_is_not_taken(tmp_path: Path) -> None:
    box = Outbox(str(tmp_path / "other.db"))
    assert box.lead()
    with pytest.raises(HeadwaterError, match="before a destination is registered"):
        fill(box, 1)
    box.close()
    box.forget_connection()


OLD_TABLES = """
CREATE TABLE emit_event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE emit_cursor (destination TEXT PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE emit_parked (
  seq INTEGER NOT NULL, destination TEXT NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (seq, destination));
INSERT INTO emit_event (run, body) VALUES
  ('r', CAST('one' AS BLOB)), ('r', CAST('two' AS BLOB)), ('r', CAST('three' AS BLOB));
"""


@pytest.mark.parametrize(
    ("cursors", "waiting"),
    [
        ([("a", 1)], {"a": [b"two", b"three"]}),
        ([("a", 3), ("b", 0)], {"b": [b"one", b"two", b"three"]}),
        ([], {"": [b"one", b"two", b"three"]}),
    ],
)
def test_an_outbox_of_an_earlier_version_keeps_its_destinations(
    tmp_path: Path, cursors: list[tuple[str, int]], waiting: dict[str, list[bytes]]
) -> None:
    with sqlite3.connect(tmp_path / "old.db") as old:
        old.executescript(OLD_TABLES)
        old.executemany("INSERT INTO emit_cursor VALUES (?, ?)", cursors)
        old.execute("INSERT INTO emit_parked VALUES (9, 'a', 'HTTP 400', ?)", [b"bad"])
    old.close()
    box = Outbox(str(tmp_path / "old.db"))
    assert box.lead()
    assert set(box.destinations()) == {name for name, _ in cursors}
    assert box.waiting() == {name: len(bodies) for name, bodies in waiting.items()}
    for name, bodies in waiting.items():
        assert [one.body for one in box.pending(name)] == bodies
    assert [(one.destination, one.reason, one.body) for one in box.refused()] == [
        ("a", "HTTP 400", b"bad")
    ]
    box.close()
    box.forget_connection()


def test_one_process_writes_and_another_waits(outbox: Outbox, tmp_path: Path) -> None:
    other = Outbox(str(tmp_path / "state.db"))
    assert not other.lead()
    with pytest.raises(OutboxInUseError), other.transaction():
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


def sending(outbox: Outbox, to: list[Destination], longest: float = 30.0) -> Sender:
    outbox.register({one.name: one.shown for one in to})
    return Sender(outbox, to, longest=longest)


def test_events_wait_for_a_server_that_is_down_and_arrive_in_order(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    down, up = Flaky(), Flaky()
    down.down = True
    sender = sending(outbox, [down.destination("down"), up.destination("up")], longest=0.5)
    sender.start()
    fill(outbox, 120)
    wait_until(lambda: len(up.took) == 120, seconds=120, what="the one that is up")
    wait_until(lambda: sender.problems, seconds=120, what="the problem")
    assert outbox.waiting() == {"down": 120}
    down.down = False
    assert outbox.drained(10)
    assert down.took == up.took == [event("r", n) for n in range(120)]
    assert sender.stop()
    assert sum("events stay queued" in record.message for record in caplog.records) == 1
    assert not sender.problems


def test_an_event_that_is_refused_blocks_no_other(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    to = Flaky()
    to.refuses = {event("r", 1), event("r", 3)}
    sender = sending(outbox, [to.destination("picky")])
    fill(outbox, 5)
    sender.start()
    assert outbox.drained(10)
    assert sender.stop()
    assert to.took == [event("r", n) for n in (0, 2, 4)]
    assert [(p.body, p.reason) for p in outbox.refused()] == [
        (event("r", n), "HTTP 422: job.name: is missing") for n in (1, 3)
    ]
    assert sum("kept aside" in record.message for record in caplog.records) == 1


KILLED = """
import sys
from headwater.emit import Outbox, Sender, destinations
from headwater.emit.transports import AnsweredError
box = Outbox(sys.argv[1])
assert box.lead()
to = destinations({"type": "file", "log_file_path": sys.argv[2], "append": True})
box.register({one.name: one.shown for one in to})
sender = Sender(box, to)
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

    sender = sending(outbox, [Destination("here", "here", refuse, Nothing())])
    fill(outbox, MOST_REASONS + 50)
    sender.start()
    assert sender.stop(flush=30)
    assert len(sender._logged) == MOST_REASONS
    assert len(outbox.refused()) == MOST_REASONS + 50


def test_nothing_is_lost_by_kill_9(tmp_path: Path) -> None:
    state, events = tmp_path / "state.db", tmp_path / "events.ndjson"
    size = 0
    for _ in range(5 if FULL else 2):
        process = subprocess.Popen([sys.executable, "-c", KILLED, state, events])
        grown = size + 2_000

        def enough(grown: int = grown) -> bool:
            return events.exists() and events.stat().st_size > grown

        wait_until(enough, seconds=120, what="events")
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


class Poisoned(Flaky):
    """A server that answers some events with an error of its own, and is down for all at times."""

    def __init__(self, poison: set[bytes]) -> None:
        super().__init__()
        self.poison = poison
        self.broken = False

    def send(self, body: bytes) -> None:
        if self.broken or body in self.poison:
            raise AnsweredError("HTTP 500: no such relation")
        super().send(body)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.emit.sender.STUCK_SECONDS", 0.3)
    monkeypatch.setattr("headwater.emit.sender.FIRST_WAIT", 0.02)


@pytest.mark.usefixtures("impatient")
def test_an_event_that_breaks_the_server_blocks_the_others_for_a_bounded_time(
    outbox: Outbox,
) -> None:
    to = Poisoned({event("r", 0), event("r", 1)})
    sender = sending(outbox, [to.destination("picky")], longest=0.1)
    fill(outbox, 8)
    sender.start()
    assert outbox.drained(20)
    assert sender.stop()
    assert sorted(to.took) == [event("r", n) for n in range(2, 8)]
    refused = outbox.refused()
    assert [one.body for one in refused] == [event("r", 0), event("r", 1)]
    assert all("HTTP 500" in one.reason and "other events" in one.reason for one in refused)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("how", ["broken", "down", "alone"])
def test_a_server_in_trouble_costs_no_event(outbox: Outbox, how: str) -> None:
    to = Poisoned({event("r", 0)} if how == "alone" else set())
    setattr(to, how, True)
    sender = sending(outbox, [to.destination("picky")], longest=0.1)
    count = 1 if how == "alone" else 5
    fill(outbox, count)
    sender.start()
    assert not outbox.drained(1.5)
    assert outbox.refused() == []
    assert outbox.waiting() == {"picky": count}
    to.broken = to.down = False
    to.poison = set()
    assert outbox.drained(10)
    assert sender.stop()
    assert to.took == [event("r", n) for n in range(count)]


class Answers(BaseHTTPRequestHandler):
    """An HTTP server that answers with the codes it was given, then 201."""

    codes: list[int]
    bodies: list[tuple[bytes, str | None]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        code = self.codes.pop(0) if self.codes else 201
        if code == 201:
            self.bodies.append((body, self.headers["Authorization"]))
        self.send_response(code)
        if 300 <= code < 400:
            self.send_header("Location", "/login?token=s3cret")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
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
    sender = sending(outbox, destinations(config), longest=0.1)
    with outbox.transaction() as step:
        step.append("r", event("r", 7))
    sender.start()
    assert sender.stop(flush=15)
    assert handler.bodies == [(event("r", 7), "Bearer t0ken")]
    assert outbox.refused() == []


@pytest.mark.parametrize("more", [{}, {"compression": "gzip"}])
def test_over_http_an_event_arrives_as_it_was_queued(
    server: tuple[str, type[Answers]], more: dict[str, str]
) -> None:
    url, handler = server
    headers = {"Authorization": "Basic abc"}
    (to,) = destinations({"type": "http", "url": url, "custom_headers": headers, **more})
    queued = b'{"run": {"runId": "r"}, "job": null}'
    to.send(queued)
    to.close()
    assert handler.bodies == [(queued, "Basic abc")]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, RefusedError),
        (413, RefusedError),
        (422, RefusedError),
        (401, AnsweredError),
        (403, AnsweredError),
        (415, AnsweredError),
        (431, AnsweredError),
        (500, AnsweredError),
        (429, HeadwaterError),
        (502, HeadwaterError),
        (503, HeadwaterError),
    ],
)
def test_what_an_answer_says_of_the_event(
    server: tuple[str, type[Answers]], code: int, kind: type[HeadwaterError]
) -> None:
    url, handler = server
    handler.codes += [code]
    (to,) = destinations({"type": "http", "url": url})
    with pytest.raises(HeadwaterError) as caught:
        to.send(event("r"))
    assert type(caught.value) is kind
    to.close()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_an_event_is_not_given_to_where_a_proxy_for_logins_redirects(
    outbox: Outbox, server: tuple[str, type[Answers]], code: int
) -> None:
    url, handler = server
    (to,) = destinations({"type": "http", "url": url})
    handler.codes += [code, code]
    with pytest.raises(HeadwaterError) as caught:
        to.send(event("r"))
    assert type(caught.value) is HeadwaterError
    assert str(caught.value).startswith(f"HTTP {code}: not followed to /login; ")
    sender = sending(outbox, [to], longest=0.1)
    fill(outbox, 1)
    sender.start()
    assert sender.stop(flush=15)
    assert [body for body, _ in handler.bodies] == [event("r")]


class Same(EventTransformer):
    """Changes nothing of an event."""

    def transform(self, event: Any) -> Any:
        return event


@pytest.mark.parametrize(
    ("wrapper", "kind"),
    [
        ("composite", "http"),
        ("composite", "async_http"),
        ("transform", "http"),
        ("transform", "async_http"),
        ("both", "http"),
        ("datadog", ""),
        ("datadog at once", ""),
    ],
)
@pytest.mark.parametrize("code", [302, 307])
def test_transports_inside_others_follow_no_redirect(
    server: tuple[str, type[Answers]], kind: str, wrapper: str, code: int
) -> None:
    url, handler = server
    one: dict[str, Any] = {"type": kind, "url": url, "retry": {"total": 0}}
    if wrapper in ("transform", "both"):
        one = {"type": "transform", "transport": one, "transformer_class": f"{__name__}.Same"}
    if wrapper in ("composite", "both"):
        one = {"type": "composite", "transports": [one], "continue_on_success": False}
    if wrapper.startswith("datadog"):
        rules = {"*": {"*": wrapper == "datadog at once"}}
        one = {"type": "datadog", "site": url, "apiKey": "k", "async_transport_rules": rules}
    (to,) = destinations(one)
    made = {
        "eventType": "START", "eventTime": "2026-01-01T00:00:00Z", "producer": "urn:t",
        "run": {"runId": RUN}, "job": {"namespace": "n", "name": "j"},
    }  # fmt: skip
    body = json.dumps(made).encode()
    try:
        handler.codes += [code]
        with pytest.raises(HeadwaterError, match=r"Exceeded 0 redirects|None of the transports"):
            to.send(body)
        assert handler.bodies == []
        to.send(body)
        assert len(handler.bodies) == 1
    finally:
        to.close()


def test_a_retried_event_is_sent_again_and_a_dropped_one_is_gone(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.emit.sender.IDLE", 0.1)
    to = Flaky()
    to.refuses = {event("r", n) for n in range(3)}
    sender = sending(outbox, [to.destination("picky")])
    fill(outbox, 3)
    sender.start()
    assert outbox.drained(10)
    to.refuses = set()
    first, second, third = outbox.refused()
    outbox.drop(second.seq)
    outbox.retry(third.seq)
    wait_until(lambda: to.took == [event("r", 2)], seconds=120, what="the retried event")
    assert [one.seq for one in outbox.refused()] == [first.seq]
    assert sender.stop(flush=5)


class OutsideTransactions(logging.Handler):
    """Log lines, and whether another process could write to the outbox while each was logged."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.lines: list[tuple[str, bool]] = []

    def emit(self, record: logging.LogRecord) -> None:
        with closing(sqlite3.connect(self._path, timeout=0, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
                db.execute("ROLLBACK")
            except sqlite3.OperationalError:
                self.lines.append((record.getMessage(), False))
            else:
                self.lines.append((record.getMessage(), True))


def test_of_too_many_refused_events_the_oldest_are_dropped_and_the_log_says_so(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.emit.outbox.REFUSED_KEPT", 2)
    fill(outbox, 11)
    noted = OutsideTransactions(Path(outbox.shown))
    logger = logging.getLogger("headwater.emit.outbox")
    logger.addHandler(noted)
    try:
        for one in outbox.pending("here", 20):
            outbox.refuse("here", one, "HTTP 422")
        assert [one.body for one in outbox.refused()] == [event("r", 9), event("r", 10)]
        more = [RefusedByDestination(0, "here", f"s{n}", event("s", n), "no", 0) for n in range(9)]
        outbox.keep_refused({"here": "here"}, more)
    finally:
        logger.removeHandler(noted)
    # Nine and nine more, in a few lines: a user's job writes this log.
    kept = "more than 2 refused events are kept: {} were dropped until now, the last of run {};"
    assert [line.partition(" `")[0] for line, _ in noted.lines] == [
        kept.format(1, "r"), kept.format(2, "r"), kept.format(4, "r"), kept.format(8, "r"),
        kept.format(18, "s6"),
    ]  # fmt: skip
    assert all(free for _, free in noted.lines)


def test_of_notes_that_nobody_takes_the_oldest_go(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.emit.outbox.NOTES_KEPT", 3)
    for number in range(5):
        outbox.note("gone" if number < 4 else "here", b"%d" % number)
    assert outbox.notes("here") == [b"4"]
    assert outbox.notes("gone") == [b"2", b"3"]


def test_a_bad_event_is_set_aside_over_http(
    outbox: Outbox, server: tuple[str, type[Answers]]
) -> None:
    url, handler = server
    handler.codes += [400]
    sender = sending(outbox, destinations({"type": "http", "url": url}))
    fill(outbox, 2)
    sender.start()
    assert sender.stop(flush=15)
    assert [body for body, _ in handler.bodies] == [event("r", 1)]
    assert [one.reason for one in outbox.refused()] == ["HTTP 400: "]


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


def test_destinations_are_told_apart_by_where_they_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name(**config: Any) -> str:
        (one,) = destinations(config)
        return one.name

    def http(url: str, key: str) -> dict[str, Any]:
        return {"type": "http", "url": url, "auth": {"type": "api_key", "apiKey": key}}

    assert name(**http("http://a", "one")) == name(**http("http://a", "two"))
    assert name(**http("http://a", "one")) != name(**http("http://b", "one"))
    file = {"type": "file", "log_file_path": "events.ndjson", "append": True}
    here = name(**file)
    monkeypatch.chdir(tmp_path)
    assert name(**file) != here
    assert name(**file) == name(**file | {"log_file_path": str(tmp_path / "events.ndjson")})

    def either(*urls: str) -> str:
        transports = [{"type": "http", "url": url} for url in urls]
        return name(type="composite", transports=transports, continue_on_success=False)

    assert either("http://a", "http://b") == either("http://a", "http://b")
    assert either("http://a", "http://b") != either("http://a", "http://c")


HOOK = "https://hooks.slack.com/services/T000000/B000000/"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://my-secret:5000", "http://my-secret:6000"),
        (f"{HOOK}{'a1' * 12}", f"{HOOK}{'b2' * 12}"),
        (f"http://a/ghp_{'a1' * 18}", f"http://a/ghp_{'b2' * 18}"),
        (f"http://AKIA{'A1' * 8}.a", f"http://AKIA{'B2' * 8}.a"),
        ("http://a/?team=a&token=x", "http://a/?team=b&token=x"),
    ],
)
def test_destinations_that_are_shown_alike_are_told_apart(one: str, other: str) -> None:
    """What waits for a server went to another one where only what is masked told the two apart."""

    def http(url: str) -> dict[str, Any]:
        return {"type": "http", "url": url, "endpoint": url}

    def wrapped(url: str) -> dict[str, Any]:
        return {"type": "composite", "transports": [http(url)], "continue_on_success": False}

    for config in (http, wrapped):
        (first,), (second,) = destinations(config(one)), destinations(config(other))
        assert first.name != second.name
        for part in ("a1a1", "b2b2", "A1A1", "B2B2", "token=x"):
            assert part not in first.shown + second.shown


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://ada:one@a", "http://ada:two@a"),
        ("http://a/?token=one", "http://a/?token=two"),
        ("http://a/x?team=a&sig=one", "http://a/x?team=a&sig=two"),
        (
            f"https://ada:one@{HOOK[8:]}{'a1' * 12}?token=one",
            f"https://bob:two@{HOOK[8:]}{'a1' * 12}?token=two",
        ),
    ],
)
def test_a_destination_stays_the_same_when_its_secret_changes(one: str, other: str) -> None:
    names = [
        destinations({"type": "http", "url": url, "endpoint": url})[0].name for url in (one, other)
    ]
    assert names[0] == names[1]


def test_a_wrong_transport_is_said_without_its_secret() -> None:
    with pytest.raises(UsageError) as caught:
        destinations({"type": "http", "auth": {"type": "api_key", "apiKey": "s3cr3t"}})
    assert "s3cr3t" not in str(caught.value)


def test_an_outbox_that_is_being_made_is_removed_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that starts meanwhile takes what no process holds for what one has left."""
    made = Outbox(str(tmp_path / "made.db"))
    connect = SqliteOutboxDatabase.connect

    def and_another_process_starts(database: SqliteOutboxDatabase) -> Any:
        connection = connect(database)
        monkeypatch.setattr(SqliteOutboxDatabase, "connect", connect)
        settle(tmp_path / "made.db", {"type": "noop"}, 0, "inferred")
        return connection

    monkeypatch.setattr(SqliteOutboxDatabase, "connect", and_another_process_starts)
    assert made.lead()
    made.register({"here": "here"})
    fill(made, 1)
    assert made.waiting() == {"here": 1}
    made.close()
    made.forget_connection()


def test_an_outbox_that_is_done_is_held_until_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "done.db"
    left = Outbox(str(path))
    assert left.lead()
    left.close()
    left.forget_connection()
    held: list[bool] = []

    def remove_late(path: Path) -> None:
        held.append(not Outbox(str(path)).lead())
        remove(path)

    monkeypatch.setattr(journal, "remove", remove_late)
    assert settle(path, {"type": "noop"}, 0, "inferred")
    assert held == [True]
    assert list(tmp_path.iterdir()) == []
    # Who found it before it went makes no new one.
    assert not Outbox(str(path)).lead(create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.timeout(300)
def test_no_run_of_processes_that_start_together_is_lost(tmp_path: Path) -> None:
    program = (
        "import sys, headwater\n"
        "with headwater.run(sys.argv[1], namespace='race') as run:\n"
        "    run.inputs('s3://a/in')\n"
        "    run.outputs('s3://a/out')\n"
    )
    log = tmp_path / "events"
    transport = {"type": "file", "log_file_path": str(log), "append": True}
    environment = {
        **os.environ,
        "HEADWATER_STATE_DIR": str(tmp_path / "state"),
        "OPENLINEAGE__TRANSPORT": json.dumps(transport),
    }
    jobs = [f"{turn}-{number}" for turn in range(8) for number in range(6)]
    for turn in range(8):
        started = [
            subprocess.Popen([sys.executable, "-c", program, job], env=environment)
            for job in jobs[turn * 6 : turn * 6 + 6]
        ]
        assert [one.wait() for one in started] == [0] * 6
    told = [json.loads(line) for line in log.read_text().splitlines()]
    ends = sorted(one["job"]["name"] for one in told if one["eventType"] == "COMPLETE")
    assert ends == sorted(jobs)
