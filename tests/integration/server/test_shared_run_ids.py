"""A run belongs to the job that reported it first; another job under its id has a run of its own."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from headwater.lineage.openlineage.repairs import SHARED_RUN, run_of_its_own
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild, verify
from headwater.server.store.keep.retention import retain

from .conftest import Client, job_url
from .making import event, facet, run_id

SENT = (
    event("START", 0, job="load", outputs=["a"]),
    event("START", 1, job="copy", inputs=["a"], outputs=["b"]),
    event("COMPLETE", 2, job="copy"),
)


def own(job: str) -> str:
    return str(run_of_its_own(UUID(run_id(1)), "jobs", job))


def runs(client: Client, *jobs: str) -> dict[str, list[Any]]:
    return {
        job: [(r["id"], r["state"], r["startedAt"]) for r in client.get(job_url(job, "runs"))["runs"]]
        for job in jobs
    }  # fmt: skip


def test_one_job_does_not_end_the_run_of_another(client: Client) -> None:
    client.post(*SENT)
    expected = {
        "load": [(run_id(1), "RUNNING", "2026-01-01T00:00:00Z")],
        "copy": [(own("copy"), "COMPLETED", "2026-01-01T00:00:01Z")],
    }
    assert runs(client, *expected) == expected
    assert client.get("/api/v2/health")["assumed"] == {SHARED_RUN: 2}
    findings = client.get("/api/v2/doctor")["findings"]
    assert [f["count"] for f in findings if f["text"] == SHARED_RUN] == [2]
    assert (verify(client.store), rebuild(client.store)) == (3, 3)
    assert runs(client, *expected) == expected
    client.post(event("FAIL", 9, job="load"))
    assert runs(client, "load")["load"][0][1] == "FAILED"
    assert runs(client, "copy")["copy"][0][1] == "COMPLETED"


def test_each_job_comes_out_alike_in_any_order(client: Client) -> None:
    client.post(*reversed(SENT))
    found = runs(client, "load", "copy")
    assert [run[1:] for run in found["load"]] == [("RUNNING", "2026-01-01T00:00:00Z")]
    assert [run[1:] for run in found["copy"]] == [("COMPLETED", "2026-01-01T00:00:01Z")]
    assert (found["copy"][0][0], found["load"][0][0]) == (run_id(1), own("load"))


def test_a_run_of_its_own_stays_when_the_first_job_is_purged(client: Client) -> None:
    client.post(*SENT)
    purge(client.store, PurgeTarget("job", "jobs", "load"))
    assert runs(client, "copy")["copy"][0][:2] == (own("copy"), "COMPLETED")
    client.post(event("START", 20, job="copy"))
    verify(client.store)
    rebuild(client.store)
    assert (own("copy"), "COMPLETED", "2026-01-01T00:00:01Z") in runs(client, "copy")["copy"]


def test_no_run_is_taken_that_has_the_id_of_one_of_its_own(client: Client) -> None:
    taken = event("START", 0, job="other")
    taken["run"]["runId"] = own("copy")
    client.post(taken, *SENT)
    expected = {
        "other": [(own("copy"), "RUNNING")],
        "copy": [(str(run_of_its_own(UUID(own("copy")), "jobs", "copy")), "COMPLETED")],
    }
    assert {k: [r[:2] for r in v] for k, v in runs(client, *expected).items()} == expected
    assert (verify(client.store), rebuild(client.store)) == (4, 4)
    assert {k: [r[:2] for r in v] for k, v in runs(client, *expected).items()} == expected


def test_a_job_goes_on_with_its_run_when_the_first_job_is_purged(client: Client) -> None:
    client.post(*SENT[:2])
    purge(client.store, PurgeTarget("job", "jobs", "load"))
    client.store.forget()
    client.post(SENT[2])
    expected = {"copy": [(own("copy"), "COMPLETED", "2026-01-01T00:00:01Z")]}
    assert runs(client, "copy") == expected
    verify(client.store)
    rebuild(client.store)
    assert runs(client, "copy") == expected


def test_a_log_is_whole_after_a_run_of_its_own_was_let_go_of(client: Client) -> None:
    later = event("COMPLETE", 3, run=2, job="copy", outputs=["b"])
    client.post(*SENT, later, event("START", 4, run=3, job="last"))
    assert retain(client.store, time.time_ns() // 1000, forwarded=1).runs == 1
    assert verify(client.store) == 5  # the command too
    client.post(event("START", 5, job="copy"))
    assert verify(client.store) == 6


def test_an_application_that_was_unknown_at_its_start_ends_when_it_is_known(client: Client) -> None:
    """OpenLineage's Spark listener may report START before it knows the name of its application."""
    client.post(event("START", 0, job="unknown"), event("RUNNING", 1, job="stats"))
    assert runs(client, "unknown")["unknown"][0][1] == "RUNNING"
    client.post(event("COMPLETE", 2, job="stats"))
    expected = {
        "unknown": [(run_id(1), "COMPLETED", "2026-01-01T00:00:00Z")],
        "stats": [(own("stats"), "COMPLETED", "2026-01-01T00:00:01Z")],
    }
    assert runs(client, *expected) == expected
    assert (verify(client.store), rebuild(client.store)) == (3, 3)
    assert runs(client, *expected) == expected
    client.post(event("COMPLETE", 2, run=2, job="stats"), event("START", 0, run=2, job="unknown"))
    assert {run[1] for run in runs(client, "unknown")["unknown"]} == {"COMPLETED"}


def test_a_run_that_is_announced_under_the_id_of_another_job_is_one_of_its_own(
    client: Client,
) -> None:
    client.post(SENT[0], event("START", 0, run=2, job="copy"))

    def announce(**more: Any) -> dict[str, Any]:
        body = {"id": run_id(1), "args": {"day": "1"}, **more}
        answer = client.call("POST", job_url("copy", "runs"), json=body)
        assert answer.status_code == 201
        found: dict[str, Any] = answer.json()
        return found

    first = announce()
    assert (first["id"], first["jobVersion"]["name"], first["args"]) == (
        own("copy"), "copy", {"day": "1"},
    )  # fmt: skip
    assert announce(args={"day": "2"}) == first
    assert client.call("POST", f"/api/v1/jobs/runs/{first['id']}/start").status_code == 200
    client.post(event("COMPLETE", 2, job="copy"))
    expected = {"load": "RUNNING", "copy": "COMPLETED"}
    for _ in range(2):
        found = {job: some[0] for job, some in runs(client, *expected).items()}
        assert {job: run[1] for job, run in found.items()} == expected
        assert {job: run[0] for job, run in found.items()} == {
            "load": run_id(1), "copy": own("copy"),
        }  # fmt: skip
        assert verify(client.store) == rebuild(client.store)


def test_a_parent_under_a_shared_id_is_the_job_that_is_named(client: Client) -> None:
    """The application, which was `unknown` at its start, and a query that reports under its id too."""
    inside = {"parent": facet(run={"runId": run_id(1)}, job={"namespace": "jobs", "name": "stats"})}
    strange = {"parent": facet(run={"runId": run_id(1)}, job={"namespace": "jobs", "name": "gone"})}
    client.post(
        event("START", 0, job="unknown"),
        event("START", 1, job="stats"),
        event("START", 2, job="query", outputs=["a"], run_facets=inside),
        event("START", 3, run=2, job="action", outputs=["b"], run_facets=inside),
        event("START", 4, run=3, job="other", outputs=["c"], run_facets=strange),
    )
    found = client.get("/api/v2/map")["nodes"]
    assert {one["name"]: one["parent"] for one in found if one["kind"] == "job"} == {
        "unknown": None,
        "stats": None,
        "query": "job:jobs:stats",
        "action": "job:jobs:stats",
        "other": "job:jobs:unknown",
    }
    children = {
        job: [one["name"] for one in client.get(f"/api/v2/jobs/jobs/{job}")["children"]]
        for job in ("stats", "unknown", "query")
    }
    assert children == {"stats": ["action", "query"], "unknown": [], "query": []}
    client.post(*(event("FAIL", 5, job=job) for job in ("stats", "query")))
    rows = client.get("/api/v2/overview")["troubles"]["jobs"]
    assert [(one["name"], [w["name"] for w in one["with"]]) for one in rows if one["with"]] == [
        ("query", ["stats"])
    ]
    doubts = client.get("/api/v2/doctor")["findings"]
    assert [one["named"]["name"] for one in doubts if one["kind"] == "no outputs"] == []
