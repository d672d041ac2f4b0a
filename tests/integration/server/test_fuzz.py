"""A live server under events that are wrong in every way: each is answered, none does harm."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.properties import examples, places

from .making import columns, dataset, event, facet, run_id, schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .conftest import Process

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    from .conftest import Process

    folder: Path = tmp_path_factory.mktemp("fuzz")
    started = Process(f"sqlite:///{folder}/a.db", folder / "server.log", "--no-page")
    yield started
    assert started.stop() in (0, -15)
    assert "Traceback" not in (folder / "server.log").read_text()


@pytest.fixture(scope="module")
def http(server: Process) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def rich() -> dict[str, Any]:
    """An event with most of the facets that a server looks into."""
    made = dataset(
        "b",
        schema=schema("id", "x"),
        columnLineage=columns(id=("a", "id")),
        symlinks=facet(identifiers=[{"namespace": "hive://h", "name": "db.b", "type": "TABLE"}]),
        tags=facet(tags=[{"key": "pii", "value": "true", "field": "id"}]),
        headwater_cluster=facet(clusterId="c", bootstrap=["k:9092"]),
        lifecycleStateChange=facet(lifecycleStateChange="CREATE"),
    )
    made["outputFacets"] = {"outputStatistics": facet(rowCount=3, size=5)}
    return event(
        "RUNNING", 5, inputs=[dataset("a", schema=schema("id"))], outputs=[made],
        job_facets={"jobType": facet(processingType="BATCH", integration="X"),
                    "sql": facet(query="SELECT 1")},
        run_facets={"parent": facet(run={"runId": run_id(2)}, job={"namespace": "n", "name": "p"}),
                    "errorMessage": facet(message="m", programmingLanguage="JAVA"),
                    "nominalTime": facet(nominalStartTime="2026-01-01T00:00:00Z")},
    )  # fmt: skip


def with_name(text: str) -> str:
    return json.dumps(event("START", 0)).replace('"load"', text)


BAD: dict[str, tuple[str | bytes, int]] = {
    "empty": ("", 400),
    "truncated": (json.dumps(rich())[:-20], 400),
    "not JSON": ("hello", 400),
    "a list": ("[]", 400),
    "a number": ("12", 400),
    "NaN": (json.dumps({**rich(), "x": float("nan")}), 400),
    "infinity": (json.dumps({**rich(), "x": float("inf")}), 400),
    "bytes that are no text": (b'{"eventTime": "\xff\xfe"}', 400),
    "a lone surrogate": (with_name('"\\ud800"'), 400),
    "a NUL in a name": (with_name('"a\\u0000b"'), 422),
    "a name of 10 MB": (with_name('"' + "x" * (9 * MEGABYTE) + '"'), 422),
    "a body over the limit": (with_name('"' + "x" * (10 * MEGABYTE) + '"'), 413),
    "100,000 fields": (
        json.dumps(event("START", 0, outputs=[dataset("b", schema=facet(
            fields=[{"name": f"c{n}"} for n in range(100_000)]))])), 422),
    "100,000 facets": (
        json.dumps(event("START", 0, run_facets={f"f{n}": facet() for n in range(100_000)})), 413),
    "depth 100,000": (with_name('"x"')[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}", 400),
    "a run id that is no text": (json.dumps({**rich(), "run": {"runId": 123}}), 422),
    "year 9999": (json.dumps({**rich(), "eventTime": "9999-12-31T23:59:59Z"}), 422),
    "no time": (json.dumps({**rich(), "eventTime": 5}), 422),
    "a job that is text": (json.dumps({**rich(), "job": "load"}), 422),
    "facets that are text": (json.dumps({**rich(), "job": {**rich()["job"], "facets": "x"}}), 422),
    "a key twice": (with_name('"x", "name": "y"'), 422),
    "a state that is no text": (json.dumps({**rich(), "eventType": 5}), 422),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_does_no_harm(http: httpx.Client, case: str) -> None:
    body, code = BAD[case]
    before = http.get("/api/v2/health").json()["events"]
    answer = http.post("/api/v1/lineage", content=body)
    assert answer.status_code == code, answer.text[:300]
    told = answer.json()
    assert told["code"] == answer.status_code
    assert isinstance(told["message"], str)
    if answer.status_code != 413:
        assert told["problems"]
        assert all(set(p) == {"field", "problem"} for p in told["problems"])
        assert all(isinstance(text, str) for text in told["errors"])
    assert len(answer.content) < 20_000
    health = http.get("/api/v2/health").json()
    assert (health["status"], health["events"]) == ("ok", before)


PLACES = sorted(set(places(rich())), key=str)
odd = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20),
    st.sampled_from(["", "\0", "a" * 5_000, "2026-02-30T00:00:00Z", "٣", "../..", "'; --", "{in}"]),
    st.recursive(
        st.text(max_size=3) | st.integers(),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "fields", "namespace", "x", ""]), inner),
        max_leaves=6,
    ),
)  # fmt: skip


@examples(
    150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), odd), min_size=1, max_size=3))
def test_an_event_changed_anywhere_is_taken_or_refused(
    http: httpx.Client, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    made = copy.deepcopy(rich())
    for path, value in changes:
        inner: Any = made
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    answer = http.post("/api/v1/lineage", content=json.dumps(made))
    assert answer.status_code in (201, 400, 422), answer.text
    if answer.status_code != 201:
        assert answer.json()["problems"]


def test_what_was_taken_can_be_read(http: httpx.Client) -> None:
    for path in ("/api/v1/jobs?limit=1000", "/api/v2/overview", "/api/v2/events?limit=1000"):
        assert http.get(path).status_code == 200, path
    for space in http.get("/api/v1/namespaces?limit=1000").json()["namespaces"]:
        name = httpx.URL("/", params={"x": space["name"]}).query.decode()[2:].replace("+", "%20")
        for kind in ("jobs", "datasets"):
            assert http.get(f"/api/v1/namespaces/{name}/{kind}").status_code == 200, name
