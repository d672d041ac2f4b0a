"""Small events for the server's tests."""

from __future__ import annotations

from typing import Any

P = "https://example.com/producer"


def facet(**content: Any) -> dict[str, Any]:
    return {"_producer": P, "_schemaURL": "https://example.com/facet.json", **content}


def schema(*columns: str) -> dict[str, Any]:
    return facet(fields=[{"name": c, "type": "int"} for c in columns])


def columns(**inputs: tuple[str, str]) -> dict[str, Any]:
    return facet(
        fields={
            out: {"inputFields": [{"namespace": "s3://lake", "name": name, "field": column}]}
            for out, (name, column) in inputs.items()
        }
    )


def dataset(name: str, namespace: str = "s3://lake", **facets: Any) -> dict[str, Any]:
    return {"namespace": namespace, "name": name, "facets": facets}


def run_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def at(second: int) -> str:
    return f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def event(
    state: str,
    second: int,
    *,
    run: int = 1,
    job: str = "load",
    inputs: Any = None,
    outputs: Any = None,
    job_facets: dict[str, Any] | None = None,
    run_facets: dict[str, Any] | None = None,
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "eventType": state,
        "eventTime": at(second),
        "producer": P,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run_id(run), "facets": run_facets or {}},
        "job": {"namespace": "jobs", "name": job, "facets": job_facets or {}},
    }
    for side, items in (("inputs", inputs), ("outputs", outputs)):
        if items is not None:
            made[side] = [dataset(i) if isinstance(i, str) else i for i in items]
    return made
