from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage.openlineage import events, facets
from headwater.lineage.openlineage.events import EventError, EventKind, EventType, Limits
from tests.properties import examples

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)


def run_event(**changes: Any) -> dict[str, Any]:
    event = {
        "eventType": "START",
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": "https://example.com/p",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "0190a5b6-3b1e-4000-8000-000000000000", "facets": {}},
        "job": {"namespace": "jobs", "name": "load"},
        "inputs": [{"namespace": "postgres://db:5432", "name": "shop.public.orders"}],
        "outputs": [{"namespace": "s3://lake", "name": "orders"}],
    }
    return {**event, **changes}


def read(value: dict[str, Any] | bytes | str) -> events.Event:
    raw = value if isinstance(value, bytes) else value.encode() if isinstance(value, str) else None
    return events.read(json.dumps(value).encode() if raw is None else raw, now=NOW)


def problems(value: dict[str, Any] | bytes | str) -> dict[str, str]:
    with pytest.raises(EventError) as caught:
        read(value)
    return {p.field: p.problem for p in caught.value.problems}


def test_a_run_event_is_read() -> None:
    event = read(run_event())
    assert event.kind is EventKind.RUN
    assert event.type is EventType.START
    assert events.iso(event.time) == "2026-01-01T00:00:00Z"
    assert [d.name for d in event.datasets] == ["shop.public.orders", "orders"]


def test_static_events_are_told_apart() -> None:
    job = {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "n", "name": "j"}}
    dataset = {"eventTime": "2026-01-01T00:00:00Z", "dataset": {"namespace": "n", "name": "d"}}
    assert read(job).kind is EventKind.JOB
    assert read(dataset).kind is EventKind.DATASET


@pytest.mark.parametrize("state", list(EventType))
def test_every_state_is_read_in_either_case(state: EventType) -> None:
    assert read(run_event(eventType=state.value)).type is state
    assert read(run_event(eventType=state.value.lower())).type is state


def test_a_missing_event_type_is_other() -> None:
    event = run_event()
    del event["eventType"]
    assert read(event).type is EventType.OTHER


@pytest.mark.parametrize(
    "run_id",
    [
        "0190a5b6-3b1e-7000-8000-000000000000",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "00000000-0000-0000-0000-000000000000",
    ],
)
def test_any_uuid_version_is_read(run_id: str) -> None:
    run = read(run_event(run={"runId": run_id})).run
    assert run is not None
    assert str(run.runId) == run_id


def test_a_minimal_abort_is_enough() -> None:
    event = read(
        {
            "eventType": "ABORT",
            "eventTime": "2026-01-01T00:00:00Z",
            "run": {"runId": "0190a5b6-3b1e-4000-8000-000000000000"},
            "job": {"namespace": "jobs", "name": "load"},
        }
    )
    assert event.type is EventType.ABORT
    assert event.datasets == []


def test_nulls_stand_for_absence() -> None:
    event = read(
        run_event(inputs=None, outputs=None, job={"namespace": "n", "name": "j", "facets": None})
    )
    assert event.inputs == []


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123457Z"),
        ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:00:00+0100", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:00:00.5+01", "2026-01-01T00:00:00.500000Z"),
        ("2026-01-01T01:00+01:00[Europe/Berlin]", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01 00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_times_are_read_as_producers_write_them(text: str, moment: str) -> None:
    assert events.iso(read(run_event(eventTime=text)).time) == moment


def test_facets_stay_as_sent() -> None:
    event = read(
        b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"n","name":"j",'
        b'"facets":{"odd":{"b" : 1, "a":2.50}}}}'
    )
    assert event.job is not None
    assert event.job.facets is not None
    assert bytes(event.job.facets["odd"]) == b'{"b" : 1, "a":2.50}'


def test_equal_events_have_one_hash_whatever_their_key_order() -> None:
    event = run_event()
    turned = dict(reversed(list(event.items())))
    assert read(event).hash == read(turned).hash
    assert read(event).hash == read(json.dumps(event, indent=4)).hash
    assert read(event).hash != read(run_event(eventType="RUNNING")).hash


@pytest.mark.parametrize(
    ("value", "field", "problem"),
    [
        (json.dumps(run_event())[:-20], "$", "the JSON ends too early"),
        (b"", "$", "the JSON ends too early"),
        (b"[]", "$", "an event is a JSON object"),
        (b'{"eventTime": NaN}', "$", "JSON is malformed"),
        (run_event(eventTime=5), "eventTime", "expected datetime"),
        (run_event(eventTime="yesterday"), "eventTime", "not an RFC 3339 time"),
        (run_event(eventTime="9999-01-01T00:00:00Z"), "eventTime", "future"),
        (run_event(eventTime="1815-01-01T00:00:00Z"), "eventTime", "before 1970"),
        (run_event(eventType=5), "eventType", "expected str"),
        (run_event(run={"runId": ""}), "run.runId", "invalid UUID"),
        (run_event(run={}), "run.runId", "missing"),
        (run_event(job=None), "job", "missing"),
        (run_event(job={"namespace": "n"}), "job.name", "missing"),
        (run_event(job={"namespace": "n", "name": ""}), "job.name", "empty"),
        (run_event(job={"namespace": "n", "name": "x" * 5000}), "job.name", "limit of 1024"),
        (run_event(inputs="nope"), "inputs", "expected array"),
        (run_event(inputs=[{"namespace": 1, "name": "d"}]), "inputs[0].namespace", "expected str"),
        (run_event(outputs=[{"namespace": "n", "name": "d", "facets": [1]}]),
         "outputs[0].facets", "expected object"),
        (run_event(job={"namespace": "n\0", "name": "j"}), "job.namespace", "NUL"),
        (json.dumps(run_event()).replace("load", "lo\\ud800ad"), "$", "not valid Unicode"),
        (json.dumps(run_event()).encode().replace(b"load", b"lo\xffad"), "$", "not valid Unicode"),
        (b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"n","name":"a","name":"b"}}',
         "name", "twice"),
        (b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"n","na\\u006de":"a","name":"b"}}',
         "name", "twice"),
        ({"eventTime": "2026-01-01T00:00:00Z"}, "run", "needs a run"),
    ],
)  # fmt: skip
def test_bad_input_is_named_by_field(value: Any, field: str, problem: str) -> None:
    found = problems(value)
    assert field in found
    assert problem in found[field]


def test_every_problem_is_told_at_once() -> None:
    found = problems(run_event(eventTime="1815-01-01T00:00:00Z", job={"namespace": "", "name": ""}))
    assert set(found) == {"eventTime", "job.namespace", "job.name"}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"x": [value]}
    return value


@pytest.mark.parametrize("depth", [40, 400, 100_000])
def test_deep_events_are_refused(depth: int) -> None:
    text = '{"x":[' * depth + "]}" * depth
    raw = json.dumps(run_event(job={"namespace": "n", "name": "j", "facets": {"f": {"v": 1}}}))
    assert "deeper than 64" in next(iter(problems(raw.replace('{"v": 1}', text)).values()))


def test_depth_hidden_by_brackets_in_strings_does_no_harm() -> None:
    text = '{"]":{"}":[' * 400 + '"["' + "]}}" * 400
    raw = json.dumps(run_event(job={"namespace": "n", "name": "j", "facets": {"f": {"v": 1}}}))
    assert "deeper" in next(iter(problems(raw.replace('{"v": 1}', text)).values()))


def test_brackets_in_strings_are_not_depth() -> None:
    sql = "select " + "[" * 500 + "{" * 500
    read(run_event(job={"namespace": "n", "name": "j", "facets": {"sql": {"query": sql}}}))


def test_too_many_members_are_refused() -> None:
    fields = [{"name": f"c{i}"} for i in range(100_000)]
    event = run_event(
        inputs=[{"namespace": "n", "name": "d", "facets": {"schema": {"fields": fields}}}]
    )
    assert "100000 members" in problems(event)["inputs[0].facets.schema.fields"]
    events.read(json.dumps(event).encode(), now=NOW, limits=Limits(members=200_000))


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_give_an_event_or_problems(raw: bytes) -> None:
    with pytest.raises(EventError) as caught:
        events.read(raw, now=NOW)
    assert caught.value.problems


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=20,
)


@examples(200)
@given(
    st.sampled_from(["eventTime", "eventType", "run", "job", "inputs", "outputs", "producer"]),
    json_values,
)
def test_any_value_in_any_place_is_read_or_refused(place: str, value: Any) -> None:
    try:
        event = read(run_event(**{place: value}))
    except EventError:
        return
    assert len(event.hash) == 32


def test_facets_are_read_by_shape() -> None:
    job_type = facets.read(b'{"processingType":"STREAMING"}', facets.JobTypeFacet)
    assert job_type is not None
    assert job_type.processingType == "STREAMING"
    assert facets.read(b'{"processingType":5}', facets.JobTypeFacet) == facets.JobTypeFacet()
    assert facets.problems("schema", b'{"fields":[{"name":"a"}]}') is None
    assert facets.problems("schema", b'{"fields":"a"}') is not None
    assert facets.problems("anything", b'{"fields":"a"}') is None
