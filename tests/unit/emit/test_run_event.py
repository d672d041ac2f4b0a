"""Events: facets with schemas, and none too large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.emit import event
from headwater.emit.event import facet
from headwater.lineage import events
from headwater.lineage.events import EventType

RUN = "01a1e232-46c5-7db0-bbe3-16e3383f61c1"
SCHEMAS = Path(__file__).parents[3] / "docs" / "facets"


def make(**parts: Any) -> dict[str, Any]:
    return event.body(EventType.RUNNING, run_id=RUN, namespace="n", name="j", moment=1.0e9, **parts)


def columns(count: int) -> dict[str, Any]:
    def source(kind: str) -> dict[str, Any]:
        step = {"type": kind, "subtype": "X", "description": "", "masking": False}
        return {"namespace": "n", "name": "i", "field": "f", "transformations": [step]}

    fields = {
        f"c{i}": {"inputFields": [source("DIRECT"), source("INDIRECT")]} for i in range(count)
    }
    return facet("columnLineage", fields=fields, dataset=[source("INDIRECT")])


def test_an_event_is_read_back() -> None:
    found = events.read(event.encode(make(inputs=[event.dataset("n", "i")])))
    assert (found.type, found.time) == (EventType.RUNNING, 10**15)
    assert [d.name for d in found.inputs] == ["i"]


def test_none_is_left_out_of_facets() -> None:
    assert set(facet("sql", query="select 1", dialect=None)) == {"_producer", "_schemaURL", "query"}
    assert "SQLJobFacet.json" in facet("sql")["_schemaURL"]


@pytest.mark.parametrize(
    "name", ["streaming", "end", "spark", "trimmed", "columns", "problems", "dataset_evidence"]
)
def test_own_facets_have_a_published_schema(name: str) -> None:
    schema = json.loads((SCHEMAS / f"headwater_{name}.json").read_text())
    assert schema["$id"] == facet(f"headwater_{name}")["_schemaURL"]


def test_a_large_event_is_trimmed_in_the_stated_order() -> None:
    schema = facet("schema", fields=[{"name": f"c{i}", "type": "string"} for i in range(300)])
    output = event.dataset("n", "o", {"schema": schema, "columnLineage": columns(300)})
    reader = event.dataset("n", "i", {"schema": schema})
    whole = make(inputs=[reader], outputs=[output])
    size = len(event.encode(whole))

    def left(most: int) -> tuple[dict[str, Any], list[str]]:
        raw = event.encode(whole, most)
        assert len(raw) <= most
        found = json.loads(raw)
        return found, found["run"]["facets"]["headwater_trimmed"]["parts"]

    found, parts = left(size - 1000)
    assert parts == ["stack traces", "sql", "indirect columns"]
    fields = found["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert all(len(entry["inputFields"]) == 1 for entry in fields.values())
    found, parts = left(30_000)
    assert parts[-1] == "columns"
    assert "schema" in found["outputs"][0]["facets"]
    assert "schema" not in found["inputs"][0]["facets"]
    found, parts = left(5_000)
    assert parts[-1] == "schemas of outputs"
    assert len(event.encode(whole)) == size, "what fits is not touched"


def test_traces_are_cut_before_lineage_is() -> None:
    error = facet(
        "errorMessage", message="m", programmingLanguage="PYTHON", stackTrace="x" * 900_000
    )
    output = event.dataset("n", "o", {"columnLineage": columns(800)})
    found = json.loads(event.encode(make(run_facets={"errorMessage": error}, outputs=[output])))
    assert len(found["run"]["facets"]["errorMessage"]["stackTrace"]) == event.MOST_TEXT
    assert len(found["outputs"][0]["facets"]["columnLineage"]["fields"]) == 800
