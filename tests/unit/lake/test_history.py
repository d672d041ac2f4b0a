"""A server with a lake answers about moments that its own store has let go of."""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.errors import HeadwaterError, UsageError
from headwater.lake.answers import Scratch, answer
from headwater.lake.history import LakeHistory
from headwater.lake.iceberg import open_lake
from headwater.lineage.url_paths import path_of
from headwater.server.app import App, ServerSettings
from headwater.server.http import Response
from headwater.server.http.auth import create_token
from headwater.server.store import open_store
from headwater.server.store.keep.retention import retain

from .conftest import two_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

THEN = "2026-01-01T00:00:25Z"
NODE = {"node": "dataset:s3://lake:t", "direction": "down"}
AUDIT = path_of("api", "v2", "datasets", "s3://lake", "t", "audit")


@pytest.fixture
def server(tmp_path: Path, lake: str) -> Iterator[App]:
    """A server that has had the lake's events, and keeps none of them."""
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    assert all(receipt.error is None for receipt in store.append(two_jobs()))
    retain(store, time.time_ns() // 1000 + 1)
    app = App(store, ServerSettings(page=False))
    app.past.history = LakeHistory(lake)
    yield app
    asyncio.run(app.close())


def asked(app: App, path: str, query: dict[str, str], token: str = "") -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {token}"} if token else {}

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, params=query, headers=headers)

    response = asyncio.run(ask())
    return response.status_code, response.json()


def test_a_past_moment_is_answered_from_the_lake(server: App) -> None:
    _, now = asked(server, "/api/v2/trace", NODE)
    assert "source" not in now
    assert [row["node"] for row in now["rows"]] == [
        "dataset:s3://lake:t", "job:jobs:report", "dataset:s3://lake:u",
    ]  # fmt: skip
    code, then = asked(server, "/api/v2/trace", {**NODE, "at": THEN})
    assert code == 200
    assert then["source"] == "lake"
    assert [row["node"] for row in then["rows"]] == ["dataset:s3://lake:t"]


PAST = [
    ("/api/v2/graph/diff", {"from": "2026-01-01", "to": THEN}),
    ("/api/v2/map", {"at": THEN}),
    ("/api/v2/map", {"at": THEN, "node": "job:jobs:load"}),
    ("/api/v2/columns", {"at": THEN, "node": NODE["node"]}),
    (AUDIT, {"from": "2026-01-01", "to": THEN}),
]


@pytest.mark.parametrize(("path", "query"), PAST)
def test_every_question_about_a_moment_reaches_the_lake(
    server: App, path: str, query: dict[str, str]
) -> None:
    code, found = asked(server, path, query)
    assert code == 200, found
    assert found["source"] == "lake"


def test_a_limited_token_sees_as_little_of_the_lake(server: App) -> None:
    everything = create_token(server.store, "all", "read")
    limited = create_token(server.store, "team", "read", ["other"])
    query = {**NODE, "at": THEN}
    assert asked(server, "/api/v2/trace", query)[0] == 401
    assert asked(server, "/api/v2/trace", query, everything)[0] == 200
    code, found = asked(server, "/api/v2/trace", query, limited)
    assert code == 404
    assert "jobs" not in str(found)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/v2/trace", {**NODE, "at": THEN}),
        PAST[0],
        *(pytest.param(*one, marks=pytest.mark.full) for one in PAST[1:]),
    ],
)
@pytest.mark.parametrize("may", ["other", "jobs"])
def test_no_question_about_the_past_names_what_is_hidden(
    server: App, path: str, query: dict[str, str], may: str
) -> None:
    limited = create_token(server.store, "team", "read", [may])
    code, found = asked(server, path, query, limited)
    text = str(found)
    assert "report" not in text or may == "jobs", text
    if code == 404:  # names what was asked for
        return
    assert code == 200, found
    assert found["source"] == "lake"
    assert "s3://" not in text
    assert "load" not in text or may == "jobs"


def test_a_lake_that_is_away_is_said_and_costs_nothing_else(server: App) -> None:
    server.past.history = LakeHistory("iceberg://unit/nowhere")
    code, found = asked(server, "/api/v2/trace", {**NODE, "at": THEN})
    assert code == 503
    assert "older than this server keeps" in found["message"]
    assert asked(server, "/api/v2/trace", NODE)[0] == 200


def test_an_answer_that_needs_too_much_of_the_lake_is_refused(
    server: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lake.history.NODES", 1)
    code, found = asked(server, "/api/v2/map", {"at": THEN})
    assert code == 422
    assert "ask about one node" in found["message"]


def test_an_answer_that_needs_too_many_events_is_refused_before_they_are_read(
    server: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = scratch_folders()
    monkeypatch.setattr("headwater.lake.history.RECORDS", 2)
    code, found = asked(server, "/api/v2/trace", {**NODE, "at": THEN})
    assert code == 422
    assert "more than 2 events" in found["message"]
    assert scratch_folders() == folders


def test_a_lake_whose_files_are_away_is_said_too(
    server: App, own_lake: str, tmp_path: Path
) -> None:
    server.past.history = LakeHistory(own_lake)
    for file in (tmp_path / "warehouse").rglob("*.parquet"):
        file.unlink()
    code, found = asked(server, "/api/v2/trace", {**NODE, "at": THEN})
    assert code == 503
    assert "cannot be read" in found["message"]


def test_nothing_is_left_of_a_store_that_could_not_be_filled() -> None:
    def records() -> Iterator[Any]:
        yield from ()
        raise HeadwaterError("away")

    folders = scratch_folders()
    with pytest.raises(HeadwaterError) as raised:
        Scratch(records())
    assert scratch_folders() == folders, raised


def scratch_folders() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("headwater-lake-*")}


def test_an_audit_until_a_past_moment_is_answered_from_the_lake(server: App) -> None:
    code, found = asked(server, AUDIT, {"to": THEN})
    assert (code, found["source"]) == (200, "lake")
    assert [job["name"] for job in found["writers"]] == ["load"]
    now = datetime.now(timezone.utc) + timedelta(minutes=1)
    assert "source" not in asked(server, AUDIT, {"to": now.isoformat()})[1]


def test_a_period_that_ends_before_it_begins_is_not_looked_for_in_the_lake(
    server: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.lake.history.open_lake", None)
    query = {"from": THEN, "to": "2026-01-01"}
    assert asked(server, "/api/v2/graph/diff", query)[0] == 400


def test_a_server_that_stops_lets_a_question_of_the_lake_end_first(tmp_path: Path) -> None:
    steps: list[str] = []
    asking, may_answer = threading.Event(), threading.Event()

    class SlowHistory:
        def answer(self, *_: object) -> Response:
            asking.set()
            assert may_answer.wait(30)
            steps.append("answered")
            return Response({})

        def close(self) -> None:
            steps.append("closed")

        def renewed(self) -> SlowHistory:
            raise AssertionError("it does not hang")

    async def run() -> None:
        store = open_store(f"sqlite:///{tmp_path}/a.db")
        store.append(two_jobs())
        retain(store, time.time_ns() // 1000 + 1)
        app = App(store, ServerSettings(page=False))
        app.past.history = SlowHistory()
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            query = {**NODE, "at": THEN}
            answer = asyncio.ensure_future(client.get("/api/v2/trace", params=query))
            assert await asyncio.to_thread(asking.wait, 30)
            closing = asyncio.ensure_future(app.close())
            await asyncio.wait({closing}, timeout=0.2)
            may_answer.set()
            await closing
            assert (await answer).json() == {"source": "lake"}

    asyncio.run(run())
    assert steps == ["answered", "closed"]


def test_what_was_read_for_a_question_is_kept_for_the_next(
    server: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked(server, "/api/v2/trace", {**NODE, "at": THEN})
    monkeypatch.setattr("headwater.lake.history.open_lake", None)
    assert asked(server, "/api/v2/trace", {**NODE, "at": THEN}) == first


class HungHistory:
    """A lake that answers nothing until it is let go; the ones after it answer at once."""

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps
        self.asking, self.let_go = threading.Event(), threading.Event()

    def answer(self, *_: object) -> Response:
        self.asking.set()
        self.let_go.wait(60)
        self.steps.append("answered")
        return Response({})

    def close(self) -> None:
        self.steps.append("closed")

    def renewed(self) -> HungHistory:
        after = HungHistory(self.steps)
        after.let_go.set()
        return after


@pytest.fixture
def hung(server: App) -> Iterator[HungHistory]:
    history = HungHistory([])
    server.past.history = history
    yield history
    history.let_go.set()


def test_a_lake_that_hangs_is_given_up_and_asked_anew(
    server: App, hung: HungHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.server.history.SECONDS", 0.5)
    code, found = asked(server, "/api/v2/trace", {**NODE, "at": THEN})
    assert (code, hung.steps) == (503, [])
    assert "not answered in time" in found["message"]
    assert asked(server, "/api/v2/trace", {**NODE, "at": THEN}) == (200, {"source": "lake"})
    # What it uses is closed once its answer came, which nobody waits for any more.
    hung.let_go.set()
    (old,) = server.past._hanging
    old.join(30)
    assert hung.steps == ["answered", "answered", "closed"]


def test_a_server_stops_though_the_lake_hangs(server: App, hung: HungHistory) -> None:
    async def run() -> tuple[int, float]:
        transport = httpx.ASGITransport(app=server)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            query = {**NODE, "at": THEN}
            answer = asyncio.ensure_future(client.get("/api/v2/trace", params=query))
            assert await asyncio.to_thread(hung.asking.wait, 30)
            began = time.monotonic()
            await server.close()
            return (await answer).status_code, time.monotonic() - began

    code, seconds = asyncio.run(run())
    assert code == 503
    assert seconds < 3
    assert hung.steps == []


def test_no_more_questions_hang_than_there_is_room_for(
    server: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.server.history.SECONDS", 0.2)
    started: list[HungHistory] = []

    class AlwaysHung(HungHistory):
        def renewed(self) -> HungHistory:
            started.append(AlwaysHung([]))
            return started[-1]

    server.past.history = AlwaysHung([])
    started.append(server.past.history)
    codes = [asked(server, "/api/v2/trace", {**NODE, "at": THEN}) for _ in range(5)]
    assert [code for code, _ in codes] == [503] * 5
    assert "the lake does not answer: 3 questions to it hang" in codes[-1][1]["message"]
    assert len(started) == 4
    for one in started:
        one.let_go.set()


def test_a_young_server_asks_the_lake_about_what_was_before_it_keeps(
    tmp_path: Path, lake: str
) -> None:
    store = open_store(f"sqlite:///{tmp_path}/young.db")
    assert all(receipt.error is None for receipt in store.append(two_jobs()[-1:]))
    app = App(store, ServerSettings(page=False, keep=60.0))
    app.past.history = LakeHistory(lake)
    try:
        assert "source" not in asked(app, "/api/v2/trace", NODE)[1]
        minute = (datetime.now(timezone.utc) - timedelta(seconds=30)).isoformat()
        assert "source" not in asked(app, "/api/v2/trace", {**NODE, "at": minute})[1]
        code, then = asked(app, "/api/v2/trace", {**NODE, "at": THEN})
        assert (code, then["source"]) == (200, "lake")
    finally:
        asyncio.run(app.close())


def test_whoever_has_the_tables_gets_the_servers_answer(lake: str) -> None:
    found = answer(
        open_lake(lake), f"/api/v2/trace?node=dataset:s3://lake:t&direction=down&at={THEN}"
    )
    assert [row["node"] for row in found.json()["rows"]] == ["dataset:s3://lake:t"]
    audit = answer(open_lake(lake), f"{AUDIT}?from=2026-01-01&to={THEN}").json()
    assert [job["name"] for job in audit["writers"]] == ["load"]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("/api/v2/trace?node=dataset:s3://lake:t", "nothing about the past"),
        ("/api/v2/health", "nothing about the past"),
        ("/nowhere?at=2026-01-01", "404"),
        ("/api/v2/trace?at=2026-01-01", "node"),
    ],
)
def test_what_is_no_question_about_the_past_is_told(lake: str, target: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        answer(open_lake(lake), target)
