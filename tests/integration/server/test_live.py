from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.server.live import KEPT, QUEUE, Live

from .making import event, facet, run_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.app import App

    from .conftest import Client, Process


def listen(app: App, after: int | None, count: int, *, headers: Any = ()) -> list[dict[str, Any]]:
    """The first messages of a stream, read as a client's parser would."""

    async def read() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        async for chunk in app.live.listen(after):
            lines = dict(
                line.split(": ", 1) for line in chunk.decode().strip().split("\n") if ": " in line
            )
            if "event" in lines:
                found.append({**lines, "data": json.loads(lines["data"])})
            if len(found) == count:
                return found
        return found

    return asyncio.run(read())


def until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("steps", range(8))
def test_a_stream_ends_though_a_message_comes_together_with_its_end(steps: int) -> None:
    """As when a token is revoked, or the client goes, while much happens."""

    async def ended() -> bool:
        live = Live()

        async def read() -> None:
            async for _ in live.listen(None):
                pass

        reading = asyncio.ensure_future(read())
        await asyncio.sleep(0)
        while not live.listeners:
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        live.broadcast("flow", {})
        for _ in range(steps):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading}, timeout=1)
        return reading.done()

    assert asyncio.run(ended())


def test_a_listener_goes_on_where_it_stopped(client: Client) -> None:
    client.post(event("START", 0, outputs=["b"]), event("COMPLETE", 5))
    until(lambda: len(client.app.live._kept) >= 5)
    everything = listen(client.app, 0, 5)
    assert [m["event"] for m in everything] == ["job", "dataset", "edges", "run", "run"]
    assert everything[-1]["data"] == {
        "run": run_id(1), "state": "COMPLETED", "namespace": "jobs", "name": "load", "decides": True,
    }  # fmt: skip
    (last,) = listen(client.app, 1, 1)
    assert (last["id"], last["data"]["state"]) == ("2", "COMPLETED")


def test_a_listener_hears_that_somebody_stopped_a_stream(client: Client) -> None:
    stream = {"jobType": facet(processingType="STREAMING", integration="SPARK")}
    stop = {"headwater_end": facet(reason="stopped")}
    client.post(
        event("START", 0, run=1, job="stream", job_facets=stream),
        event("ABORT", 5, run=1, job="stream", job_facets=stream, run_facets=stop),
        event("START", 0, run=2, job="batch"),
        event("ABORT", 5, run=2, job="batch", run_facets=stop),
    )
    until(lambda: len(client.app.live._kept) >= 6)
    heard = [m["data"] for m in listen(client.app, 0, 6) if m["event"] == "run"]
    assert [(one["name"], one["state"], one.get("planned")) for one in heard] == [
        ("stream", "RUNNING", None),
        ("stream", "ABORTED", "stopped"),
        ("batch", "RUNNING", None),
        ("batch", "ABORTED", None),
    ]


def test_a_listener_away_too_long_is_told_to_start_again() -> None:
    live = Live()
    live.publish(1, [{"change": "job", "name": str(i)} for i in range(KEPT + 5)])

    async def first() -> bytes:
        stream = live.listen(0)
        await anext(stream)
        return await anext(stream)

    assert b"event: reset" in asyncio.run(first())


def test_a_slow_listener_holds_nobody_up() -> None:
    async def follow(live: Live) -> int:
        return len([chunk async for chunk in live.listen(None)])

    async def go() -> int:
        live = Live()
        following = asyncio.ensure_future(follow(live))
        while not live.listeners:
            await asyncio.sleep(0)
        live.publish(1, [{"change": "job", "name": "x"}] * (QUEUE * 2))
        return await following

    assert asyncio.run(go()) < QUEUE


def test_the_stream_is_server_sent_events(client: Client) -> None:
    client.post(event("START", 0))
    until(lambda: client.app.live._kept)
    client.app.live.close()
    response = client.call("GET", "/api/v2/live", headers={"last-event-id": "0"})
    assert response.headers["content-type"] == "text/event-stream"
    assert response.text.startswith("retry: 2000\n\nid: 1\nevent: job\ndata: {")


def sample(**changes: Any) -> dict[str, Any]:
    now = datetime.now(timezone.utc).isoformat()
    return {
        "run": run_id(1),
        "time": now,
        "dataset": {"namespace": "kafka://k:9092", "name": "orders"},
        "direction": "input",
        "recordsPerSecond": 20.0,
        "lag": 7,
        "lastRecordAt": now,
        **changes,
    }


@pytest.mark.parametrize("wrapped", [True, False])
def test_flow_is_rolled_up_and_read(client: Client, wrapped: bool) -> None:
    samples = [sample(), sample(recordsPerSecond=40.0, lag=3), sample(direction="sideways")]
    body = {"samples": samples} if wrapped else samples
    response = client.call("POST", "/api/v2/flow", content=json.dumps(body))
    assert (response.status_code, response.json()["accepted"]) == (202, 2)
    assert response.json()["refused"][0]["sample"] == 2
    client.app.flow.flush(client.store, time.time())
    (now,) = client.get("/api/v2/flow")["flow"]
    assert (now["recordsPerSecond"], now["peakRecordsPerSecond"], now["lag"]) == (30.0, 40.0, 3)
    (past,) = client.get("/api/v2/flow", run=run_id(1))["flow"]
    assert past["dataset"]["name"] == "orders"
    assert client.get("/api/v1/events/lineage")["totalCount"] == 0


@pytest.mark.parametrize("body", ["nope", "{}", '{"samples": 5}', '[{"run": 1}]'])
def test_bad_flow_is_refused(client: Client, body: str) -> None:
    assert client.call("POST", "/api/v2/flow", content=body).status_code in (400, 422)


def test_an_open_stream_does_not_keep_a_server_from_ending(launch: Callable[..., Process]) -> None:
    server = launch()
    with httpx.stream("GET", f"{server.url}/api/v2/live", timeout=30) as stream:
        words = stream.iter_text()
        assert "retry" in next(words)
        began = time.monotonic()
        server.stop()
        # Streams had kept it for its whole grace time of ten seconds.
        assert time.monotonic() - began < 8
        assert "".join(words) == ""
