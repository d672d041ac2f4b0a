"""Events that Marquez forgives are taken, each assumption has its reason."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from headwater.lineage.openlineage.events import EventType, Limits, identity, read
from headwater.lineage.openlineage.repairs import (
    NAMED_RUN,
    NO_OBJECT,
    NO_ZONE,
    OTHER_TYPE,
    repair,
    to_run_uuid,
)
from headwater.server.store.write.incoming.event_reader import EventReader

RUN = "0190a5b6-3b1e-7000-8000-000000000000"
FACET = {"_producer": "https://example.com/p", "x": 1}


def event(**members: Any) -> dict[str, Any]:
    return {
        "eventType": "START",
        "eventTime": "2026-01-01T10:00:00Z",
        "producer": "https://example.com/p",
        "run": {"runId": RUN, "facets": {}},
        "job": {"namespace": "n", "name": "j", "facets": {}},
        **members,
    }


def table(**members: Any) -> dict[str, Any]:
    return {"namespace": "s3://lake", "name": "t", **members}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "a run that has a name": (
        event(run={"runId": "nightly-42", "facets": {"x": FACET}}),
        event(run={"runId": "af652f69-3178-3e41-a8f3-7cf17e037647", "facets": {"x": FACET}}),
        (NAMED_RUN,),
    ),
    "no zone": (
        event(eventTime=" 2026-01-01T10:00:00.5 "),
        event(eventTime="2026-01-01T10:00:00.5Z"),
        (NO_ZONE,),
    ),
    "an unknown type": (event(eventType="SKIPPED"), event(eventType="OTHER"), (OTHER_TYPE,)),
    "facets that are no objects": (
        event(
            job={"namespace": "n", "name": "j", "facets": {"sql": "SELECT", "x": FACET}},
            inputs=[table(inputFacets={"rows": 5})],
            outputs=[table(facets={"gone": None, "odd": [1]}, outputFacets={"x": FACET})],
        ),
        event(
            job={"namespace": "n", "name": "j", "facets": {"x": FACET}},
            inputs=[table(inputFacets={})],
            outputs=[table(facets={"gone": None}, outputFacets={"x": FACET})],
        ),
        (NO_OBJECT,) * 3,
    ),
    "nothing": (event(eventType="start"), event(eventType="start"), ()),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_assumed(case: str) -> None:
    sent, meant, reasons = CASES[case]
    mended, found = repair(sent)
    assert (mended, found) == (meant, reasons)
    assert repair(mended) == (mended, ())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_mended_event_is_the_event_it_should_have_been(
    case: str, separators: tuple[str, str]
) -> None:
    sent, meant, reasons = CASES[case]
    reader = EventReader(Limits())
    raw = json.dumps(sent, separators=separators).encode()
    found = reader.prepare(raw)
    other = reader.prepare(json.dumps(meant, separators=separators).encode())
    assert found.assumed == reasons
    assert (found.hash, found.time, found.type) == (other.hash, other.time, other.type)
    assert found.run is not None
    assert other.run is not None
    assert found.run.key == other.run.key
    assert found.hash == identity(json.loads(found.raw))
    assert EventReader(Limits()).prepare(found.raw).hash == found.hash
    assert read(raw).assumed == reasons


def test_the_name_of_a_run_gives_the_uuid_that_marquez_gives() -> None:
    # Java: UUID.nameUUIDFromBytes("".getBytes()), the MD5 of nothing with version and variant set.
    assert to_run_uuid("") == UUID("d41d8cd9-8f00-3204-a980-0998ecf8427e")
    assert to_run_uuid(RUN) == UUID(RUN)
    assert to_run_uuid("a") != to_run_uuid("b")


def test_credentials_are_cleaned_from_a_mended_event() -> None:
    sent = event(eventType="NEW", job={"namespace": "http://u:secret@host", "name": "j"})
    found = EventReader(Limits()).prepare(json.dumps(sent).encode())
    assert b"secret" not in found.raw
    assert found.assumed == (OTHER_TYPE,)
    assert found.type is EventType.OTHER
