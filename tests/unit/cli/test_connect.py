"""`headwater connect` as typed, where no cluster is needed."""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from headwater.cli.main import _run
from headwater.connect.commands.apply import require_class
from headwater.connect.model import ConnectorStatus
from headwater.connect.services.rest import ConnectorEntry, ConnectRest, Info
from headwater.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = {
    "name": "archive",
    "config": {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "orders",
        "s3.bucket.name": "lake",
        "topics.dir": "raw",
        "aws.secret.access.key": "hunter2",
    },
}
AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the log back: `watch` sets it up for a process of its own."""
    root = logging.getLogger("headwater")
    for setting in ("handlers", "level", "propagate"):
        monkeypatch.setattr(root, setting, getattr(root, setting))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "archive.json"
    path.write_text(json.dumps(CONFIG))
    return path


def test_apply_says_of_what_is_masked_that_it_changes(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words for people, and as data for scripts."""
    connector = json.loads(file.read_text())
    before = ConnectorEntry(
        Info("archive", "sink", {**connector["config"], "aws.secret.access.key": "hunter1"}),
        ConnectorStatus("RUNNING", ""),
    )
    answers = {"plugins": [], "exists": True, "entry": before, "validate": {}, "passwords": ()}
    for name, answer in answers.items():
        monkeypatch.setattr(ConnectRest, name, lambda *_, answer=answer, **__: answer)
    words = ["connect", "apply", str(file), "--dry-run", "--url", "http://127.0.0.1:9"]
    assert _run(words, debug=False) == 0
    assert "+ aws.secret.access.key = ***  (what changes is masked)" in capsys.readouterr().out
    assert _run([*words, "--json"], debug=False) == 0
    (applied,) = json.loads(capsys.readouterr().out)
    key = {"key": "aws.secret.access.key", "before": "***", "after": "***", "masked": True}
    assert key in applied["changes"]


def test_preview_prints_the_start_event(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "orders.avsc"
    schema.write_text(json.dumps(AVRO))
    words = ["connect", "preview", "--config", str(file), "--type", "sink", "--topics", "orders"]
    words += ["--kafka-bootstrap", "k:9092", "--schema", f"orders={schema}", "--namespace", "shop"]
    assert _run([*words, "--json"], debug=False) == 0
    event = json.loads(capsys.readouterr().out)
    assert event["eventType"] == "START"
    assert (event["job"]["namespace"], event["job"]["name"]) == ("shop", "archive")
    assert [(d["namespace"], d["name"]) for d in event["inputs"]] == [("kafka://k:9092", "orders")]
    assert [(d["namespace"], d["name"]) for d in event["outputs"]] == [("s3://lake", "raw/orders")]
    assert [f["name"] for f in event["inputs"][0]["facets"]["schema"]["fields"]] == ["id"]
    assert "hunter2" not in json.dumps(event)
    assert _run(words, debug=False) == 0
    said = capsys.readouterr().out
    assert said.count("config key: topics") == 1
    assert "observed" not in said, "nothing was asked: what was given by options is derived"
    assert said.count("--topics") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["preview", "--config", "none.json"], "none.json"),
        (["preview", "--config", "BYTES"], "not a text in UTF-8"),
        (["preview", "--config", "FILE", "--schema", "orders=BYTES"], "not a text in UTF-8"),
        (["preview", "--config", "FILE", "--type", "drain"], "neither source nor sink"),
        (["preview", "--config", "FILE", "--schema", "orders"], "not topic=FILE"),
        (["list"], "where is Connect?"),
        (["watch"], "where is Connect?"),
        (["watch", "--url", "http://c:8083", "--clusters", "x.yml"], "exclude"),
        (["watch", "--clusters", "none.yml"], "none.yml"),
        (["watch", "--clusters", "BYTES"], "not a text in UTF-8"),
        (["watch", "--url", "http://c:8083", "--worker-properties", "BYTES"], "not a text"),
        (["watch", "--url", "http://c:8083", "--mappings", "BYTES"], "not a text in UTF-8"),
        (["apply", "BYTES", "--url", "http://c:8083"], "not a text in UTF-8"),
        (["list", "--url", "http://c:8083", "--token-file", "BYTES"], "not a text in UTF-8"),
        (["watch", "--url", "http://c:8083", "--poll", "0"], "above zero"),
        (["watch", "--url", "ftp://c"], "not an http address"),
        (["status", "--url", "http://c", "--user", "u"], "CONNECT_PASSWORD is not set"),
    ],
)
def test_what_cannot_be_asked_is_said(
    words: list[str],
    said: str,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CONNECT_URL", "CONNECT_PASSWORD", "KAFKA_BOOTSTRAP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEADWATER_STATE_DIR", str(file.parent))
    (noise := file.with_name("noise")).write_bytes(b"\xff\xfe")
    given = [word.replace("BYTES", str(noise)).replace("FILE", str(file)) for word in words]
    assert _run(["connect", *given], debug=False) == 2
    assert said in capsys.readouterr().err.replace("\n", "")


def test_a_connect_that_is_away_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["connect", "list", "--url", "http://127.0.0.1:9"], debug=False) == 1
    said = capsys.readouterr().err
    assert "cannot be reached" in said
    assert "--url or CONNECT_URL" in said


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A web server that is not Connect; below /any every page is there."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            raw = b"<html>welcome</html>"
            self.send_response(200 if self.path == "/" or self.path.startswith("/any") else 404)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_PUT = do_GET  # noqa: N815  (as http.server calls it)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("at", ["", "/any"])
@pytest.mark.parametrize("words", [["list"], ["status"], ["pause", "x"], ["explain", "x"]])
def test_an_address_of_something_else_is_asked_about(
    words: list[str], at: str, elsewhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["connect", *words, "--url", elsewhere + at], debug=False) == 1
    assert "is this the address of Kafka Connect's REST interface?" in capsys.readouterr().err


@pytest.fixture
def worker() -> Iterator[str]:
    """A Connect with one connector and one class, which takes what is put."""
    plugin = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    lists: dict[str, Any] = {
        "/": {"version": "4.3.1"},
        "/connectors": {"orders-sink": {}},
        "/connector-plugins": [{"class": plugin, "type": "sink"}],
    }

    class Worker(BaseHTTPRequestHandler):
        def answer(self, code: int, found: Any) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            raw = json.dumps(found).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path in lists:
                self.answer(200, lists[path])
            elif path.endswith("/config") and "plugins" in path:
                self.answer(200, [])
            else:
                name = path.split("/")[2]
                self.answer(404, {"error_code": 404, "message": f"Connector {name} not found"})

        def do_PUT(self) -> None:
            valid = {"error_count": 0, "configs": []}
            self.answer(200 if "plugins" in self.path else 201, valid)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Worker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "word", ["pause", "resume", "stop", "restart", "delete", "explain", "status"]
)
def test_a_connector_that_is_not_there_is_answered_alike(
    word: str, worker: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["connect", word, "order-sink", "--url", worker], debug=False) == 4
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"error: {worker} has no connector order-sink",
        "hint: near it: orders-sink",
    ]


def test_a_new_connector_is_one_line_and_its_settings_are_asked_for(
    worker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        **{f"setting.{n}": "x" for n in range(30)},
    }
    (file := tmp_path / "new.json").write_text(json.dumps({"name": "new", "config": config}))
    apply = ["connect", "apply", str(file), "--url", worker]
    assert _run(apply, debug=False) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("new new, 3")
    assert _run([*apply, "--dry-run"], debug=False) == 0
    assert len(capsys.readouterr().out.splitlines()) > 30


def test_an_unknown_class_names_those_there_are(
    worker: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"connector.class": "com.example.Nope"}
    (file := tmp_path / "new.json").write_text(json.dumps({"name": "new", "config": config}))
    assert _run(["connect", "apply", str(file), "--url", worker], debug=False) == 4
    said = capsys.readouterr().err
    assert "com.example.Nope" in said
    assert "org.apache.kafka.connect.file.FileStreamSinkConnector" in said
    assert "java" not in said.lower()


CLASSES = [
    {"class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "type": "sink"},
    {"class": "io.debezium.connector.postgresql.PostgresConnector", "type": "source"},
    {"class": "org.apache.kafka.connect.transforms.Cast$Value", "type": "transformation"},
]


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("org.apache.kafka.connect.file.FileStreamSinkConnector", True),
        ("FileStreamSinkConnector", True),
        ("FileStreamSink", True),
        ("org.apache.kafka.connect.file.FileStreamSinkConector", False),
        ("io.debezium.connector.mysql.MySqlConnector", False),
        ("Cast$Value", False),
    ],
)
def test_a_class_that_the_worker_lacks_is_answered_by_those_it_has(name: str, there: bool) -> None:
    if there:
        require_class({"connector.class": name}, CLASSES)
        return
    with pytest.raises(NotFoundError) as caught:
        require_class({"connector.class": name}, CLASSES)
    assert caught.value.names == (CLASSES[1]["class"], CLASSES[0]["class"])
    assert all(one in caught.value.message for one in caught.value.names)
    near = "FileStreamSinkConnector? " if name.endswith("Conector") else "nothing was changed"
    assert near in (caught.value.hint or "")
    require_class({"connector.class": name}, [])  # a worker that lists none may still have it
