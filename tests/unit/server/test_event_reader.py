"""However an event is spelled, the same parts and the same identity are read from it."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lineage.openlineage.events import EventError, Limits, identity
from headwater.server.store.write.incoming.event_reader import EventReader

if TYPE_CHECKING:
    from headwater.server.store.write.incoming.prepared import PreparedEvent

RUN = "0190f2a4-7c1e-7000-8000-00000000000a"
FACET = {"_producer": "https://example.com/p", "_schemaURL": "https://example.com/s#/$defs/F"}


def dataset(name: str, **members: Any) -> dict[str, Any]:
    fields = [{"name": "id", "type": "BIGINT"}, {"name": "größe", "type": "INT"}]
    facets = {"schema": {**FACET, "fields": fields}, "x_own": {**FACET, "any": [1, {"a": None}]}}
    return {"namespace": "postgres://db:5432", "name": name, "facets": facets, **members}


def event() -> dict[str, Any]:
    counted = {"outputStatistics": {**FACET, "rowCount": 7}}
    source = {"namespace": "postgres://db:5432", "name": "shop.raw", "field": "id"}
    target = dataset("shop.orders", outputFacets=counted, inputFacets={"odd": FACET})
    columns = {"fields": {"id": {"inputFields": [source]}}}
    target["facets"]["columnLineage"] = {**FACET, **columns}
    return {
        "eventType": "RUNNING",
        "eventTime": "2026-03-01T10:00:00Z",
        "producer": "https://example.com/p",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": RUN, "facets": {"x_run": FACET}},
        "job": {"namespace": "jobs", "name": "load", "facets": {}},
        "inputs": [dataset("shop.raw", inputFacets={"x_in": FACET}), dataset("shop.more")],
        "outputs": [target],
    }


def changed(**members: Any) -> dict[str, Any]:
    """The event with other members in its output; None takes one away."""
    made = event()
    output = {**made["outputs"][0], **members}
    made["outputs"] = [{k: v for k, v in output.items() if v is not None}]
    return made


def read(text: str) -> PreparedEvent:
    return EventReader(Limits()).prepare(text.encode())


def shape(item: PreparedEvent) -> Any:
    others = [(None, part) for part in (item.run, item.job) if part is not None]
    return [
        (side, p.key, {n: f.hash for n, f in p.facets}, {n: f.hash for n, f in p.io})
        for side, p in [*item.datasets, *others]
    ]


CASES = {
    "usual": event(),
    "not ASCII": changed(name="münchen.bestellungen"),
    "escapes": changed(name='a"b\\c'),
    "no facets": changed(facets=None, inputFacets=None, outputFacets=None),
    "empty facets": changed(facets={}, outputFacets={}),
    "unknown members": changed(x_extra={"deep": [1, 2]}),
    "facet null": changed(facets={"ownership": None, "x_own": FACET}),
    "no datasets": {**event(), "inputs": [], "outputs": []},
    "null for members": {**event(), "producer": None, "schemaURL": None, "inputs": None},
    "null for a type": {**event(), "eventType": None},
    "a member of its own": {**event(), "x_own": {"a": 1}},
    "few members": {k: v for k, v in event().items() if k not in ("schemaURL", "inputs")},
}


@pytest.mark.parametrize("name", CASES)
def test_spelling_changes_nothing(name: str) -> None:
    sent = CASES[name]
    first = read(json.dumps(sent, separators=(",", ":")))
    assert first.hash == identity(copy.deepcopy(sent))
    for text in (
        json.dumps(sent, separators=(",", ":"), ensure_ascii=False),
        json.dumps(sent),
        json.dumps(sent, indent=2),
    ):
        other = read(text)
        assert other.hash == first.hash
        assert shape(other) == shape(first)


def test_facets_of_a_side_are_held_on_that_side_only() -> None:
    item = read(json.dumps(event(), separators=(",", ":")))
    held = {part.key[1]: [name for name, _ in part.io] for _, part in item.datasets}
    assert held == {
        "shop.raw": ["x_in"], "shop.more": [], "shop.orders": ["outputStatistics"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("once", "twice"),
    [
        ('"name":"shop.orders"', '"name":"shop.orders","name":"shop.orders"'),
        ('"rowCount":7', '"rowCount":7,"rowCount":8'),
        ('"eventType":"RUNNING"', '"eventType":"RUNNING","eventType":"RUNNING"'),
        (f'"runId":"{RUN}"', f'"runId":"{RUN}","runId":"{RUN}"'),
        ('"outputFacets":{', '"outputFacets":{},"outputFacets":{'),
    ],
)
def test_a_repeated_key_is_refused(once: str, twice: str) -> None:
    text = json.dumps(event(), separators=(",", ":"))
    assert text.count(once) == 1
    with pytest.raises(EventError, match="twice"):
        read(text.replace(once, twice))


@pytest.mark.parametrize("place", ["name", "namespace"])
def test_a_login_in_a_name_is_noticed(place: str) -> None:
    sent = changed(**{place: "mysql://me:secret@db/shop"})
    item = read(json.dumps(sent, separators=(",", ":")))
    assert b"secret" not in item.raw


@pytest.mark.parametrize("spelled", ["RUNNING", "running"])
def test_a_job_whose_namespace_carries_a_login_has_one_name(spelled: str) -> None:
    made = event()
    made["eventType"] = spelled
    made["job"]["namespace"] = "http://user:secret@scheduler:8080/x?token=1"
    found = read(json.dumps(made))
    assert found.job is not None
    assert found.job.key == ("http://scheduler:8080/x", "load")


def test_a_facet_of_an_input_is_none_of_an_output() -> None:
    """Also where the same reader has met the same bytes on the other side before."""
    both = [dataset("shop.raw", inputFacets={"x_in": FACET}), dataset("shop.more")]
    made = {**event(), "inputs": both, "outputs": both}
    item = EventReader(Limits()).prepare(json.dumps(made, separators=(",", ":")).encode())
    assert [[name for name, _ in part.io] for _, part in item.datasets] == [["x_in"], [], [], []]
