"""The events of the server's benchmark: an estate of jobs in components, three events a run.

Each event is 8.4 KB: two inputs and one output of ten columns with column lineage, and the run
and job facets that a Spark job sends.
"""

from __future__ import annotations

import json
import random
import uuid
from datetime import datetime, timedelta
from typing import Any, NamedTuple

COLUMNS = {
    "id": "BIGINT",
    "customer": "BIGINT",
    "amount": "DECIMAL(18,2)",
    "currency": "VARCHAR(3)",
    "status": "VARCHAR(16)",
    "country": "VARCHAR(2)",
    "made": "TIMESTAMP",
    "changed": "TIMESTAMP",
    "mail": "VARCHAR(255)",
    "rest": "VARCHAR(255)",
}
WIDTH, COMPONENT = 10, 100
PRODUCER = "https://example.com/bench/1.0"


class Job(NamedTuple):
    """A job's name, the names it reads and the name it writes."""

    name: str
    inputs: list[str]
    output: str


def job(namespace: str, number: int) -> Job:
    """One job of a namespace: it reads two tables of a layer and writes one of the next."""
    component, place = divmod(number, COMPONENT)
    layer, k = divmod(place, WIDTH)
    before = [f"shop.c{component:04d}.layer{layer:02d}_table{(k + i) % WIDTH}" for i in (0, 1)]
    output = f"shop.c{component:04d}.layer{layer + 1:02d}_table{k}"
    return Job(f"{namespace}.c{component:04d}.job{layer:02d}_{k}", before, output)


def facet(kind: str, /, **content: Any) -> dict[str, Any]:
    place = f"https://openlineage.io/spec/facets/1-0-0/{kind}.json#/$defs/{kind}"
    return {"_producer": PRODUCER, "_schemaURL": place, **content}


def table(space: str, name: str) -> dict[str, Any]:
    columns = [
        {"name": column, "type": kind, "description": f"the {column} column"}
        for column, kind in COLUMNS.items()
    ]
    source = facet("DatasourceDatasetFacet", name=space, uri=space)
    facets = {"schema": facet("SchemaDatasetFacet", fields=columns), "dataSource": source}
    return {"namespace": space, "name": name, "facets": facets}


def mapped(space: str, inputs: list[str]) -> dict[str, Any]:
    """What the output's columns come from: every other one from both inputs."""
    plain = {"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}
    joined = {**plain, "subtype": "TRANSFORMATION", "description": "coalesce"}
    fields = {
        column: {
            "inputFields": [
                {"namespace": space, "name": source, "field": column, "transformations": [how]}
                for source, how in zip(inputs[: 1 + i % 2], (plain, joined), strict=False)
            ]
        }
        for i, column in enumerate(COLUMNS)
    }
    return facet("ColumnLineageDatasetFacet", fields=fields)


def events(namespace: str, number: int, start: datetime) -> list[bytes]:
    """START, RUNNING and COMPLETE of one run of a job."""
    space, (name, inputs, output) = f"postgres://{namespace}:5432", job(namespace, number)
    run = str(uuid.UUID(int=random.getrandbits(128), version=4))
    began = start + timedelta(milliseconds=100 * number)
    query = f"INSERT INTO {output} SELECT a.* FROM {inputs[0]} a JOIN {inputs[1]} b USING (id)"
    run_facets = {
        "nominalTime": facet("NominalTimeRunFacet", nominalStartTime=began.isoformat()),
        "processing_engine": facet("ProcessingEngineRunFacet", version="4.0.1", name="spark"),
    }
    job_facets = {
        "jobType": facet(
            "JobTypeJobFacet", processingType="BATCH", integration="SPARK", jobType="JOB"
        ),
        "sql": facet("SQLJobFacet", query=query),
    }
    made = []
    for step, state in enumerate(("START", "RUNNING", "COMPLETE")):
        target = table(space, output)
        target["facets"]["columnLineage"] = mapped(space, inputs)
        if state == "COMPLETE":
            counted = facet("OutputStatisticsOutputDatasetFacet", rowCount=1_000, size=123_456)
            target["outputFacets"] = {"outputStatistics": counted}
        made.append(
            {
                "eventType": state,
                "eventTime": (began + timedelta(seconds=30 * step)).isoformat(),
                "producer": PRODUCER,
                "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
                "run": {"runId": run, "facets": run_facets},
                "job": {"namespace": namespace, "name": name, "facets": job_facets},
                "inputs": [table(space, source) for source in inputs],
                "outputs": [target],
            }
        )
    return [json.dumps(e, separators=(",", ":")).encode() for e in made]
