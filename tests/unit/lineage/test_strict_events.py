"""The check that tests hold emitted events to finds what is wrong."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.strict_events import check, problems

EVENT = json.loads((Path(__file__).parents[2] / "fixtures" / "lineage" / "event.json").read_text())


def test_a_whole_event_is_right() -> None:
    check([EVENT])


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("eventTime", "2026-08-01T12:00:00", "no time zone"),
        ("run/runId", "nope", "badly formed"),
        ("eventType", "BEGUN", "BEGUN"),
        ("job/name", None, "no str"),
        ("schemaURL", "https://openlineage.io/spec/2-0-2/OpenLineage.json", "/schemaURL"),
        ("outputs/0/facets/columnLineage/fields/id/inputFields/0/field", 7, "7 is no str"),
        ("outputs/0/facets/columnLineage/fields/id/inputField", [], "has no inputField"),
        ("inputs/0/facets/schema/_schemaURL", "urn:nope", "no class has the schema"),
        ("inputs/0/facets/sql", {"query": "x"}, "no class has the schema"),
        ("run/facets/columnLineage", EVENT["outputs"][0]["facets"]["columnLineage"], "is no RunFacet"),
        ("job/facets/sql/_producer", None, "no str"),
        ("run/facets/headwater_new", {}, "no schema in docs/facets"),
        ("run/facets/headwater_end/reason", 7, "is not of type 'string'"),
        ("run/facets/headwater_end/why", "x", "the schema has no why"),
        ("run/facets/headwater_end/_producer", "", "_producer"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(path: str, value: Any, said: str) -> None:
    event = copy.deepcopy(EVENT)
    *above, last = path.split("/")
    place = event
    for part in above:
        place = place[int(part)] if part.isdigit() else place[part]
    place[last] = value
    assert any(said in one for one in problems(event)), list(problems(event))


def test_what_is_missing_is_found() -> None:
    event = copy.deepcopy(EVENT)
    del event["producer"], event["job"]["facets"]["sql"]["query"]
    del event["run"]["facets"]["headwater_end"]["reason"]
    found = " ".join(problems(event))
    assert ": producer is missing" in found
    assert "/job/facets/sql: query is missing" in found
    assert "'reason' is a required property" in found
