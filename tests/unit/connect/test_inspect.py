"""What a person is told who looks at a cluster while somebody else does not answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from pwd import getpwuid
from typing import TYPE_CHECKING, Any

import pytest

from headwater.cli.main import _run
from headwater.connect.commands import inspect
from headwater.connect.services.rest import ConnectRest
from headwater.emit import Outbox
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADWATER = str(Path(sys.executable).with_name("headwater"))
NAMES = ("sink-1", "sink-2")


@pytest.fixture
def mute() -> Iterator[str]:
    """A catalog that takes what one says and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def connect(mute: str) -> Iterator[str]:
    """A cluster with two Iceberg sinks."""
    entries = {name: entry(name, mute) for name in NAMES}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].strip("/").split("/")
            found: Any = {"version": "4.3.1"}
            if path == ["connectors"]:
                found = entries
            elif path[-1] == "topics":
                found = {path[1]: {"topics": ["orders"]}}
            elif path[0] == "connectors" and path[1] not in entries:
                found = {"error_code": 404, "message": f"Connector {path[1]} not found"}
            elif path[0] == "connectors":
                found = entries[path[1]]["status" if path[-1] == "status" else "info"]
            raw = json.dumps(found).encode()
            self.send_response(found.get("error_code", 200))
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def entry(name: str, catalog: str) -> dict[str, Any]:
    config = {
        "name": name,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": "orders",
        "iceberg.tables": f"shop.{name}",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": catalog,
        "iceberg.catalog.warehouse": "s3://lake",
    }
    part = {"state": "RUNNING", "worker_id": "w:1"}
    return {
        "info": {"name": name, "config": config, "tasks": [], "type": "sink"},
        "status": {"name": name, "connector": part, "tasks": [{"id": 0, **part}], "type": "sink"},
    }


def test_a_catalog_that_does_not_answer_is_said_and_not_waited_for(
    connect: str, mute: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["connect", "explain", NAMES[0], "--url", connect], debug=False) == 0
    # A process of its own: what still waits for the catalog must not keep it from its end either.
    ended = subprocess.run(
        [HEADWATER, "connect", "list", "--url", connect],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for notes in (capsys.readouterr().err, ended.stderr):
        assert f"Iceberg catalog {mute}: no answer within 3 s" in notes.replace("\n", " ")
        assert notes.count(mute) == 1


@pytest.mark.parametrize("words", [("explain",), ("pause",), ("status",), ("restart", "sink-1")])
def test_a_connector_that_is_not_there_is_the_same_answer_everywhere(
    connect: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["connect", *words, "sink-3", "--url", connect], debug=False) == 4
    assert capsys.readouterr().err == (
        f"error: {connect} has no connector sink-3\nhint: near it: sink-2, sink-1\n"
    )


@pytest.mark.parametrize("action", ["pause", "resume", "stop", "restart"])
def test_a_command_notes_for_the_agent_what_it_does_and_for_whom(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, action: str
) -> None:
    """By the system's name of the user, and with nothing else of the environment."""
    url, outbox = "http://127.0.0.1:9", Outbox(str(tmp_path / "agent.db"))
    outbox.register({"all": "all"})
    found: list[list[Any]] = []

    def look(*_: Any) -> None:
        found.append([json.loads(body) for body in outbox.notes(f"order/{url}")])

    monkeypatch.setattr(inspect, "require", lambda *_: None)
    monkeypatch.setattr(ConnectRest, "act", look)
    monkeypatch.setenv("USER", "mallory")
    monkeypatch.setenv("LOGNAME", "mallory")
    words = ["connect", action, "sink", "--url", f"{url}/", "--state", str(tmp_path / "agent.db")]
    began = time.time_ns() // 1000
    assert _run(words, debug=False) == 0
    look()
    # A poll that shows it has to find whose it is; a restart is one though no poll shows it once it is done.
    before, after = found
    actions = [["restarting"], ["restart"]] if action == "restart" else [[action], []]
    assert [[one[2] for one in notes] for notes in found] == actions
    name, at, _, by = before[0]
    assert (name, by) == ("sink", getpwuid(os.getuid()).pw_name)
    assert [[*one[:2], one[3]] for one in after] == [[name, at, by]] * len(after)
    assert began <= at <= time.time_ns() // 1000
    outbox.close()
    outbox.forget_connection()


@pytest.mark.parametrize("action", ["pause", "stop", "restart"])
def test_the_note_of_what_connect_refuses_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, action: str
) -> None:
    url, outbox = "http://127.0.0.1:9", Outbox(str(tmp_path / "agent.db"))
    outbox.register({"all": "all"})
    monkeypatch.setattr(inspect, "require", lambda *_: None)
    words = ["connect", action, "sink", "--url", url, "--state", str(tmp_path / "agent.db")]
    assert _run(words, debug=False) == 1  # nobody listens there
    notes = [json.loads(body) for body in outbox.notes(f"order/{url}")]
    assert [one[2] for one in notes][-1] == "withdrawn"
    assert {one[0] for one in notes} == {"sink"}
    outbox.close()
    outbox.forget_connection()


@pytest.mark.parametrize("action", ["pause", "resume", "stop", "restart", "delete"])
@pytest.mark.parametrize("state", ["no-database", "postgresql://nobody:s3cret@127.0.0.1:1/none"])
def test_what_is_done_does_not_depend_on_the_agents_state(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    action: str, state: str,
) -> None:  # fmt: skip
    (tmp_path / "no-database").write_text("somebody else's file, and no database at all")
    monkeypatch.chdir(tmp_path)
    done: list[str] = []
    monkeypatch.setattr(inspect, "require", lambda *_: None)
    monkeypatch.setattr(ConnectRest, "act", lambda _, name, __: done.append(name))
    words = ["connect", action, "a", "b", "--url", "http://127.0.0.1:9", "--state", state]
    assert _run(words, debug=False) == 0
    assert done == ["a", "b"]
    shown = capsys.readouterr()
    assert shown.out.endswith("ed a, b\n")
    assert shown.err.startswith("note: the agent gets no notice of it: ")
    assert shown.err.count("note:") == 1
    assert "s3cret" not in shown.err


def test_explain_reads_a_record_where_it_is_asked_to(
    connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def derive(config: Any, name: str) -> Any:
        asked.append((config.sample, name))
        raise HeadwaterError("seen")

    monkeypatch.setattr(inspect, "derive_connector", derive)
    for words in ((), ("--sample",)):
        assert _run(["connect", "explain", "sink-1", "--url", connect, *words], debug=False) == 1
    assert asked == [(False, "sink-1"), (True, "sink-1")]
