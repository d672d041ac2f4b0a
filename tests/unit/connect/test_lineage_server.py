"""Runs asked of a server by Marquez's API, over real sockets."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect.services import lineage_server
from headwater.connect.services.lineage_server import LineageServers

if TYPE_CHECKING:
    from collections.abc import Iterator

JOB = "/api/v1/namespaces/a%2Fb/jobs/pg.0/runs"
KNOWN = "/api/v1/namespaces"
GROUPS = "/api/v2/consumer-groups"
KAFKA = "kafka://k:9092"


class Backend:
    """Answers by path, counts what it was asked and notes who asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        backend = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                backend.asked.append(path)
                backend.tokens.append(self.headers.get("Authorization"))
                code, body = backend.answers.get(path, (404, {}))
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    yield made
    made.close()


def test_the_runs_of_a_job_the_newest_first(backend: Backend) -> None:
    states = ("NEW", "COMPLETED", "RUNNING", "FAILED", "ABORTED")
    runs = [{"id": str(n), "state": state, "more": {}} for n, state in enumerate(states)]
    backend.answers[JOB] = (200, {"runs": runs, "totalCount": 5})
    asker = LineageServers([(f"{backend.url}/", {"Authorization": "Bearer t"})])
    found = asker.runs_of("a/b", "pg.0") or []
    assert [(run.id, run.state) for run in found] == [(str(n), s) for n, s in enumerate(states)]
    assert [run.id for run in found if run.live] == ["0", "2"]
    assert backend.tokens == ["Bearer t"]
    asker.close()


@pytest.mark.parametrize(
    ("shown", "at"),
    [
        ("1970-01-01T00:00:01.000001Z", 1_000_001),
        ("1970-01-01T00:00:01.000001999Z", 1_000_001),  # never later than it was
        ("1970-01-01T01:00:01+01:00", 1_000_000),
        ("1970-01-01T00:00:01", 1_000_000),
        ("yesterday", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-01:00", None),
        (None, None),
    ],
)
def test_a_moment_is_never_later_than_it_was(
    backend: Backend, shown: str | None, at: int | None
) -> None:
    run = {"id": "1", "state": "COMPLETED", "createdAt": shown, "endedAt": shown}
    backend.answers[JOB] = (200, {"runs": [run]})
    (found,) = LineageServers([(backend.url, {})]).runs_of("a/b", "pg.0") or []
    assert (found.started, found.ended) == (at or 0, at)


def test_a_job_that_is_not_known_yet_has_none(backend: Backend) -> None:
    backend.answers[KNOWN] = (200, {"namespaces": []})
    assert LineageServers([(backend.url, {})]).runs_of("a/b", "pg.0") == []


@pytest.mark.parametrize(
    ("answer", "hope"),
    [((404, {}), False), ((403, {}), False), ((500, {}), True), ((429, {}), True),
     ((200, b"<html>"), False), ((200, {}), False)],
)  # fmt: skip
def test_who_does_not_know_is_asked_no_more_for_a_while(
    backend: Backend, answer: tuple[int, Any], hope: bool
) -> None:
    backend.answers[JOB] = answer
    asker = LineageServers([(backend.url, {})])
    assert asker.runs_of("a/b", "pg.0") is None
    assert asker.may_answer_later is hope
    asked = len(backend.asked)
    assert asker.runs_of("a/b", "pg.0") is None
    assert len(backend.asked) == asked


def test_another_server_may_know(backend: Backend) -> None:
    backend.answers[JOB] = (200, {"runs": []})
    asker = LineageServers([("http://127.0.0.1:1", {}), (backend.url, {})])
    assert asker.runs_of("a/b", "pg.0") == []
    nobody = LineageServers([])
    assert nobody.runs_of("a/b", "pg.0") is None
    assert nobody.may_answer_later is False


def test_the_groups_that_queries_name_are_those_of_all_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lineage_server, "RETRY_AFTER", 0.0)
    first, second, _marquez = backends = [Backend() for _ in range(3)]
    asker = LineageServers([(one.url, {}) for one in backends])
    try:
        first.answers[GROUPS] = (200, {"topics": {"orders": ["etl"]}, "more": 1})
        second.answers[GROUPS] = (503, {})
        # What one names is left to it, but another one may name more: it has not said so yet.
        assert asker.named_groups(KAFKA) == ({"orders": ["etl"]}, False)
        second.answers[GROUPS] = (200, {"topics": {"orders": ["mine-*"], "bids": ["etl"]}})
        whole = {"orders": ["etl", "mine-*"], "bids": ["etl"]}
        assert asker.named_groups(KAFKA) == (whole, True)
        # Of one that is away holds what it said last; of another Kafka cluster it has said nothing.
        first.answers[GROUPS] = (200, {"topics": {}})
        second.answers[GROUPS] = (403, {})
        whole["orders"].remove("etl")
        assert asker.named_groups(KAFKA) == (whole, True)
        assert asker.named_groups("kafka://other:9092").complete is False
        assert first.asked == [GROUPS] * 4
    finally:
        asker.close()
        for one in backends:
            one.close()


def test_without_servers_nobody_names_groups() -> None:
    assert LineageServers([]).named_groups(KAFKA) == ({}, True)


@pytest.mark.parametrize("answer", [(400, {}), (403, {}), (302, {}), (200, b"<html>"), (500, {})])
def test_who_does_not_list_groups_is_still_asked_for_runs(
    backend: Backend, answer: tuple[int, Any]
) -> None:
    backend.answers[GROUPS] = answer
    backend.answers[JOB] = (200, {"runs": [{"id": "1", "state": "RUNNING"}]})
    asker = LineageServers([(backend.url, {})])
    assert asker.named_groups(KAFKA) == ({}, False)
    assert asker.may_answer_later is True
    assert [run.id for run in asker.runs_of("a/b", "pg.0") or []] == ["1"]
    asker.close()
