"""Runs of one job overlap, or two producers report it: which run decides about the job's state."""

from __future__ import annotations

import json
import tempfile
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.server.store import open_store
from headwater.server.store.deciding_run import deciding_key
from headwater.server.store.entities import decode_job, to_job, to_run
from headwater.server.store.keep.rebuild import rebuild
from headwater.server.store.keep.retention import retain
from headwater.server.store.view import JOBS, RUNS
from tests.properties import examples, in_another_order, orders

from .conftest import job_url
from .making import at, dataset, event, facet, run_id
from .test_schemas import static

if TYPE_CHECKING:
    from headwater.server.store.store import Store

    from .conftest import Client

STREAM, BATCH = (
    {"jobType": facet(processingType=kind, integration="KAFKA_CONNECT", jobType="CONNECTOR")}
    for kind in ("STREAMING", "BATCH")
)
Events = list[tuple[str, int]]
"""Types and runs, a minute from each to the next."""


def events(told: Events, kind: dict[str, Any], *, ago: int = 0) -> list[dict[str, Any]]:
    """Events of a job that reads `i` and writes `o`; with `ago`, the last came so many seconds ago."""
    made = [
        event(state, 60 * i, run=run, inputs=["i"], outputs=["o"], job_facets=kind)
        for i, (state, run) in enumerate(told)
    ]
    if ago:
        last = datetime.now(timezone.utc) - timedelta(seconds=ago)
        for i, one in enumerate(reversed(made)):
            one["eventTime"] = (last - timedelta(minutes=i)).isoformat()
    return made


def decided(store: Store) -> tuple[bytes, str]:
    ((uuid, state),) = store.connection.all(
        "SELECT r.uuid, j.state FROM job j JOIN run r ON r.id = j.latest"
    )
    return bytes(uuid), repr(decode_job(bytes(state)).decided)


# Each with the run that decides after all of them.
CASES: list[tuple[str, dict[str, Any], Events, int, str]] = [
    ("the older run fails, the newer is silent", STREAM,
     [("START", 1), ("START", 2), ("FAIL", 1)], 1, "FAILED"),
    ("the newer run is aborted, the older reports", STREAM,
     [("START", 1), ("START", 2), ("ABORT", 2), ("RUNNING", 1)], 1, "RUNNING"),
    ("the newer run is aborted, the older reported before", STREAM,
     [("START", 1), ("START", 2), ("ABORT", 2)], 2, "ABORTED"),
    ("the run before is aborted late", STREAM,
     [("START", 1), ("RUNNING", 1), ("START", 2), ("ABORT", 1)], 2, "RUNNING"),
    ("the older run fails, the newer reports", STREAM,
     [("START", 1), ("START", 2), ("FAIL", 1), ("RUNNING", 2)], 2, "RUNNING"),
    ("one run after the other", STREAM,
     [("START", 1), ("FAIL", 1), ("START", 2)], 2, "RUNNING"),
    ("a batch that was killed and never ended", BATCH,
     [("START", 1), ("START", 2), ("COMPLETE", 2)], 2, "COMPLETED"),
    ("a batch that was killed after it had reported", BATCH,
     [("START", 1), ("START", 2), ("RUNNING", 1), ("COMPLETE", 2)], 2, "COMPLETED"),
    ("an older batch goes on after the newer ended", BATCH,
     [("START", 1), ("START", 2), ("ABORT", 2), ("RUNNING", 1)], 1, "RUNNING"),
    ("an older batch goes on and ends", BATCH,
     [("START", 1), ("START", 2), ("ABORT", 2), ("RUNNING", 1), ("COMPLETE", 1)], 2, "ABORTED"),
    ("an older batch fails while the newer is tried", BATCH,
     [("START", 1), ("START", 2), ("FAIL", 1)], 2, "RUNNING"),
    ("a newer batch begins while an older goes on", BATCH,
     [("START", 1), ("START", 2), ("FAIL", 2), ("RUNNING", 1), ("START", 3)], 3, "RUNNING"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "told", "run", "state"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_which_run_decides_in_any_order_of_the_events(
    store: Store, kind: dict[str, Any], told: Events, run: int, state: str
) -> None:
    sent = events(told, kind)
    for receipt in store.append([json.dumps(e).encode() for e in sent]):
        assert receipt.error is None
    first = decided(store)
    assert first[0].hex() == run_id(run).replace("-", "")
    rebuild(store)
    assert decided(store) == first
    for order in orders(sent, 5):
        with tempfile.TemporaryDirectory() as folder:
            other = open_store(f"sqlite:///{folder}/x.db")
            for one in order:
                other.append([json.dumps(one).encode()])
            assert decided(other) == first
            other.close()


def declared(second: int) -> dict[str, Any]:
    return static(second, job={"namespace": "jobs", "name": "load"}, outputs=[dataset("o")])


@st.composite
def some_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    types = st.sampled_from(["START", "RUNNING", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"])
    mixes: list[list[dict[str, Any]]] = [[STREAM], [BATCH], [{}], [STREAM, BATCH, {}]]
    kinds = draw(st.sampled_from(mixes))
    of_runs = [
        event(
            draw(types),
            draw(st.integers(0, 12)),
            run=draw(st.integers(1, 4)),
            outputs=["o"] if draw(st.booleans()) else None,
            job_facets=draw(st.sampled_from(kinds)),
        )
        for _ in range(draw(st.integers(1, 12)))
    ]
    beside = draw(st.lists(st.integers(0, 14), max_size=4, unique=True))
    return [*of_runs, *map(declared, beside)]


def of_all(store: Store) -> bytes:
    """The run with the highest key, asked of every run of the only job."""
    ((row,), rows) = store.connection.all(JOBS), store.connection.all(RUNS)
    job, runs = to_job(row), [run for run in map(to_run, rows) if not run.state.static]
    newest = max(runs, key=lambda run: (run.state.life.first or 0, run.uuid))
    assert job.state.latest_uuid == newest.uuid
    return max(runs, key=lambda run: deciding_key(job, run)).uuid


@examples(60)
@given(st.data(), some_events())
def test_what_is_kept_is_what_all_runs_amount_to(
    data: st.DataObject, sent: list[dict[str, Any]]
) -> None:
    found = []
    for groups in ([[e] for e in sent], in_another_order(data, sent)):
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(f"sqlite:///{folder}/x.db")
            for group in groups:
                store.append([json.dumps(e).encode() for e in group])
                if store.connection.all("SELECT 1 FROM job WHERE latest IS NOT NULL"):
                    assert decided(store)[0] == of_all(store)
            found.append(decided(store))
            store.close()
    assert found[0] == found[1]


def answers(client: Client) -> dict[str, Any]:
    """The state of the job, and what its output is, wherever they are shown."""
    node = "dataset:s3://lake:o"
    page = client.get("/api/v2/jobs/jobs/load")
    shown = client.get("/api/v2/map", node=node)
    why = client.get("/api/v2/datasets/s3%3A%2F%2Flake/o/why")
    return {
        "page": page["state"],
        "map": {n["state"] for n in shown["nodes"] if n["id"] == "job:jobs:load"},
        "marquez": client.get(job_url("load"))["latestRun"]["state"],
        "listed": [
            state
            for state in ("RUNNING", "FAILED", "ABORTED", "COMPLETED")
            if client.get("/api/v1/jobs", lastRunStates=state)["jobs"]
        ],
        "troubles": [job["name"] for job in client.get("/api/v2/overview")["troubles"]["jobs"]],
        "why": why["verdict"],
        "freshness": client.get("/api/v2/datasets/s3%3A%2F%2Flake/o/freshness")["verdict"],
    }


def expected(state: str, verdict: str) -> dict[str, Any]:
    return {
        "page": state,
        "map": {state},
        "marquez": state,
        "listed": [state],
        "troubles": [] if state == "RUNNING" else ["load"],
        "why": verdict,
        "freshness": verdict,
    }


def test_a_failure_shows_though_a_silent_run_began_later(client: Client) -> None:
    client.post(*events([("START", 1), ("START", 2), ("FAIL", 1)], STREAM, ago=5))
    assert answers(client) == expected("FAILED", "stale")
    assert [run["id"] for run in client.get(job_url("load"))["latestRuns"]] == [
        run_id(2),
        run_id(1),
    ]


def test_a_stream_is_live_while_one_of_its_runs_reports(client: Client) -> None:
    told = [("START", 1), ("START", 2), ("ABORT", 2), ("RUNNING", 1)]
    sent = events(told, STREAM, ago=5)
    client.post(*sent[:3])
    assert answers(client) == expected("ABORTED", "stale")
    client.post(sent[3])
    assert answers(client) == expected("RUNNING", "live")


def test_how_it_stood_at_a_moment(client: Client) -> None:
    told = [("START", 1), ("RUNNING", 1), ("START", 2), ("FAIL", 1), ("RUNNING", 2)]
    client.post(*events(told, STREAM))
    states = []
    for minute in range(5):
        asked = {"node": "dataset:s3://lake:o", "at": f"2026-01-01T00:{minute:02d}:30Z"}
        (job,) = [n for n in client.get("/api/v2/map", **asked)["nodes"] if n["kind"] == "job"]
        states.append((job["state"], job["run"]))
    assert states == [
        ("RUNNING", run_id(1)),
        ("RUNNING", run_id(1)),
        ("RUNNING", run_id(2)),
        ("FAILED", run_id(1)),
        ("RUNNING", run_id(2)),
    ]


def test_retention_keeps_the_run_that_began_last(store: Store) -> None:
    told: Events = [("START", 1), ("START", 2), ("ABORT", 2), ("RUNNING", 1)]
    store.append([json.dumps(e).encode() for e in events(told, BATCH)])
    before = decided(store)
    retain(store, 2**60)
    rows = store.connection.all("SELECT count(*) FROM run")
    assert rows == [(2,)]
    rebuild(store)
    assert decided(store) == before
    store.append([json.dumps(event("COMPLETE", 600, run=1, job_facets=BATCH)).encode()])
    assert decided(store)[0].hex() == run_id(2).replace("-", "")


def test_a_run_aborted_by_hand_gives_way_to_the_one_that_lives(client: Client) -> None:
    client.post(*events([("START", 1), ("START", 2), ("RUNNING", 1)], STREAM, ago=5))
    client.call("POST", f"/api/v1/jobs/runs/{run_id(2)}/abort")
    assert client.get("/api/v2/jobs/jobs/load")["state"] == "RUNNING"
    client.call("POST", f"/api/v1/jobs/runs/{run_id(1)}/fail")
    assert client.get("/api/v2/jobs/jobs/load")["state"] == "FAILED"


def test_a_store_of_an_earlier_release_asks_all_runs_once(store: Store) -> None:
    sent = events([("START", 1), ("START", 2), ("FAIL", 1)], STREAM)
    store.append([json.dumps(e).encode() for e in sent])
    first = decided(store)
    ((number, raw),) = store.connection.all("SELECT id, state FROM job")
    state = decode_job(bytes(raw))
    state.decided = None
    with store.changing({"command": "test"}):
        store.connection.run(
            "UPDATE job SET state = ?, latest = latest + 1 WHERE id = ?",
            (msgspec.msgpack.encode(state), number),
        )
    store.forget()
    store.append([json.dumps(event("OTHER", 1, run=2, job_facets=STREAM)).encode()])
    assert decided(store) == first


def test_what_job_events_declare_hides_no_run(client: Client) -> None:
    """Each is kept beside the runs, and may have come after all of them."""
    late = event("START", 1, run=2, job_facets=BATCH, outputs=["o"])
    client.post(
        event("RUNNING", 5, run=1, job_facets=BATCH, outputs=["o"]),
        event("RUNNING", 10, run=2, job_facets=BATCH, outputs=["o"]),
        *(declared(second) for second in range(20, 90)),
    )
    assert decided(client.store)[0].hex() == run_id(2).replace("-", "")
    client.post(late)
    assert decided(client.store)[0].hex() == run_id(1).replace("-", "")
    client.post(event("FAIL", 15, run=1, job_facets=BATCH, outputs=["o"]))
    asked = {"node": "dataset:s3://lake:o", "at": at(100)}
    (job,) = [n for n in client.get("/api/v2/map", **asked)["nodes"] if n["kind"] == "job"]
    assert (job["state"], job["run"]) == ("FAILED", run_id(1))
    changed = client.get("/api/v2/graph/diff", **{"from": at(12), "to": at(100)})
    assert [(one["before"], one["after"]) for one in changed["states"]] == [("OK", "FAILED")]


def test_a_difference_has_the_state_of_the_run_that_decides(client: Client) -> None:
    client.post(*events([("START", 1), ("START", 2), ("FAIL", 1), ("RUNNING", 2)], STREAM))
    states = []
    for start, end in ((90, 150), (90, 200)):
        found = client.get("/api/v2/graph/diff", **{"from": at(start), "to": at(end)})
        states.append([(one["before"], one["after"]) for one in found["states"]])
    assert states == [[("RUNNING", "FAILED")], []]


def test_the_live_stream_says_which_run_the_job_goes_by(store: Store) -> None:
    news: list[dict[str, Any]] = []
    store.on_change = lambda _, changes: news.extend(changes)

    def told_of(*sent: dict[str, Any]) -> list[tuple[int, str, bool]]:
        news.clear()
        store.append([json.dumps(e).encode() for e in sent])
        runs = [one for one in news if one["change"] == "run"]
        return [(one["run"][-1], one["state"].value, one["decides"]) for one in runs]

    told = [("START", 1), ("START", 2), ("RUNNING", 2), ("ABORT", 1), ("RUNNING", 2)]
    first, second, third, fourth, _ = events(told, STREAM)
    assert told_of(first) == [(1, "RUNNING", True)]
    assert told_of(second) == [(2, "RUNNING", True)]
    assert told_of(third) == []
    assert told_of(fourth) == [(1, "ABORTED", False)]
    later: Events = [("START", 3), ("RUNNING", 3), ("START", 4), ("RUNNING", 3), ("ABORT", 4)]
    *before, ended = events(later, BATCH)
    before[-1]["eventTime"] = at(500)  # the older run reports after the newer is aborted
    for one in (*before, ended):
        one["job"]["name"] = "other"
    told_of(*before)
    assert told_of(ended) == [(3, "RUNNING", True), (4, "ABORTED", False)]
