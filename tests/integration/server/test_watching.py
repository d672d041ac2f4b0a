"""Watching the server: its figures, its log, and the dashboard and alert rules that are shipped."""

from __future__ import annotations

import json
import logging
import re
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.logs import LogFormat, formatter, request_id
from tests.dashboards import lacking, undocumented

from .making import event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Client, Process


def figures(text: str) -> dict[str, float]:
    found = re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_the_dashboard_and_the_rules_ask_only_for_what_there_is(client: Client) -> None:
    client.post(event("START", 0))
    client.call("POST", "/api/v1/lineage", content="{")
    client.app.forwards = (
        True  # as with --forward-kafka, which test_forward.py starts with a broker
    )
    text = client.call("GET", "/api/v2/metrics").text
    assert lacking(text, agent=False) == {}
    assert undocumented(text) == set()


def test_figures_count_what_happened(launch: Callable[..., Process]) -> None:
    url = launch().url
    with httpx.Client(base_url=url) as http:
        for n in range(3):
            assert http.post("/api/v1/lineage", json=event("START", n, run=n)).status_code == 201
        refused = http.post("/api/v1/lineage", json={}, headers={"x-request-id": "r-1"})
        assert (refused.status_code, refused.headers["x-request-id"]) == (422, "r-1")
        assert http.get("/api/v2/jobs/x/y").status_code == 404
        assert http.get("/").status_code in (200, 404)
        with http.stream("GET", "/api/v2/live") as stream:
            lines = stream.iter_lines()
            next(lines)
            found = figures(http.get("/api/v2/metrics").text)
    assert found["headwater_events_accepted_total"] == 3
    assert found['headwater_requests_total{kind="event",code="201"}'] == 3
    assert found['headwater_requests_total{kind="event",code="422"}'] == 1
    assert found['headwater_requests_total{kind="api",code="404"}'] == 1
    assert found['headwater_request_seconds_count{kind="event"}'] == 4
    assert found['headwater_request_seconds_bucket{kind="event",le="+Inf"}'] == 4
    assert 0 < found['headwater_request_seconds_sum{kind="event"}'] < 60
    assert found['headwater_request_seconds_count{kind="page"}'] == 1
    assert found["headwater_commit_events_sum"] == found["headwater_commit_events_count"] == 3
    assert found["headwater_live_clients"] == 1
    assert found["headwater_connections"] >= 2
    assert found["headwater_store_bytes"] > 4096
    assert found["headwater_failing"] == found["headwater_queue_events"] == 0


def test_a_figure_that_grows_never_falls(client: Client) -> None:
    client.post(event("START", 0))
    before = client.call("GET", "/api/v2/metrics").text
    client.post(event("COMPLETE", 1))
    after = figures(client.call("GET", "/api/v2/metrics").text)
    growing = re.findall(r"^# TYPE (\w+) counter$", before, re.MULTILINE)
    assert "headwater_commits_total" in growing
    assert [name for name in growing if not name.endswith("_total")] == []
    for name, value in figures(before).items():
        if name.partition("{")[0] in growing:
            assert after[name] >= value, name


@pytest.mark.parametrize(
    ("sent", "kept"), [("trace-1/a", True), (None, False), ("a\x7fb", False), ("x" * 200, False)]
)
def test_an_answer_has_the_id_that_the_log_speaks_of(
    client: Client,
    sent: str | None,
    kept: bool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_bodies: Any) -> Any:
        raise RuntimeError("password=hunter2 is wrong")

    headers = {"x-request-id": sent} if sent else {}
    client.post(event("START", 9))  # its writer starts with the first request
    monkeypatch.setattr(client.app.ingest, "submit", broken)
    caplog.handler.setFormatter(formatter(LogFormat.JSON))
    with caplog.at_level(logging.ERROR, logger="headwater.server"):
        answer = client.call("POST", "/api/v1/lineage", json=event("START", 0), headers=headers)
    assert answer.status_code == 500
    own = answer.headers["x-request-id"]
    assert (own == sent) == kept
    (line,) = caplog.text.splitlines()
    said = json.loads(line)
    assert (said["request_id"], said["level"]) == (own, "error")
    assert "RuntimeError" in said["trace"]
    assert "hunter2" not in line


def test_a_log_in_json_has_a_record_a_line_and_the_run(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    # No broker answers there: what the client library says of it is in the log too.
    away = ["--kafka-bootstrap", "127.0.0.1:9", "--forward-kafka", "127.0.0.1:9/log"]
    server = launch(None, "--log-format", "json", "--insecure", "--max-age", "1s", *away)
    posted = event("START", 0)
    assert httpx.post(f"{server.url}/api/v1/lineage", json=posted).status_code == 201
    run = posted["run"]["runId"]
    log = tmp_path / "server0.log"
    deadline = time.monotonic() + 60
    while not all(said in log.read_text() for said in (run, "Connection refused")):
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    server.stop()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"time", "level", "logger", "message"} <= records[0].keys()
    for said in ("no token is needed", "reading openlineage.events of 127.0.0.1:9",
                 "forwarding the log to log of 127.0.0.1:9", f"headwater server on {server.url}"):  # fmt: skip
        assert any(said in record["message"] for record in records), said
    (closed,) = [record for record in records if record.get("run_id") == run]
    assert "closed as ABORT" in closed["message"]


def test_nothing_in_a_record_can_end_its_line_or_show_a_credential() -> None:
    record = logging.makeLogRecord(
        {"msg": 'a\n{"level": "x"}\u2028 jdbc:postgresql://u:hunter2@db/x', "levelname": "INFO"}
    )
    line = formatter(LogFormat.JSON).format(record)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert "hunter2" not in line
    assert "request_id" not in json.loads(line)
    token = request_id.set("r-1")
    try:
        assert json.loads(formatter(LogFormat.JSON).format(record))["request_id"] == "r-1"
    finally:
        request_id.reset(token)
