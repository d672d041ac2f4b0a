"""The shapes that go in and out, as JSON Schema; what is not named here may still be there."""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMAS"]

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer"}
MAYBE: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": ["integer", "null"]}
OBJECT: Schema = {"type": "object"}
UUID: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}
LATER: Schema = {"type": ["string", "null"], "format": "date-time"}


def some(item: Schema | str) -> Schema:
    """A list."""
    return {"type": "array", "items": ref(item) if isinstance(item, str) else item}


def ref(name: str) -> Schema:
    """A shape by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def shape(optional: dict[str, Schema] | None = None, /, **members: Schema) -> Schema:
    """An object with members that are always there, and some that may be."""
    found: Schema = {"type": "object", "properties": {**members, **(optional or {})}}
    if members:
        found["required"] = sorted(members)
    return found


NAMED = shape(namespace=TEXT, name=TEXT)
FIELD = shape(name=TEXT, type=MAYBE, tags=some(TEXT), description=MAYBE)
EDGE = shape(origin=TEXT, destination=TEXT)
PAGED = {"next": MAYBE, "truncated": FLAG}

SCHEMAS: dict[str, Schema] = {
    "Any": {},
    "Error": shape(
        {"errors": some(TEXT), "problems": some(shape(field=TEXT, problem=TEXT))},
        code=COUNT, message=TEXT,
    ),
    "Event": shape(
        {
            "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"]},
            "run": shape({"facets": OBJECT}, runId=UUID),
            "job": shape({"facets": OBJECT}, namespace=TEXT, name=TEXT),
            "dataset": shape({"facets": OBJECT}, namespace=TEXT, name=TEXT),
            "inputs": some(NAMED), "outputs": some(NAMED), "producer": TEXT, "schemaURL": TEXT,
        },
        eventTime=TIME,
    ),
    "EventList": some("Event"),
    "Batch": shape(accepted=COUNT, duplicates=COUNT, refused=COUNT, results=some(OBJECT)),
    "Samples": shape(samples=some(OBJECT)),
    "PutNamespace": shape({"ownerName": MAYBE, "description": MAYBE}),
    "PutSource": shape({"description": MAYBE}, type=TEXT, connectionUrl=TEXT),
    "PutDataset": shape({
        "type": TEXT, "physicalName": TEXT, "sourceName": MAYBE, "description": MAYBE,
        "fields": some(shape({"type": TEXT, "description": MAYBE}, name=TEXT)),
        "tags": some(TEXT),
    }),
    "PutJob": shape({
        "type": TEXT, "inputs": some(NAMED), "outputs": some(NAMED), "location": MAYBE,
        "description": MAYBE,
    }),
    "PutTag": shape({"description": MAYBE}),
    "PostRun": shape({
        "id": {"type": ["string", "null"], "format": "uuid"}, "nominalStartTime": LATER,
        "nominalEndTime": LATER, "args": {"type": "object", "additionalProperties": TEXT},
    }),
    "PostAlias": shape(alias=NAMED, dataset=NAMED),
    "PostPurge": shape(
        {"name": TEXT}, kind={"enum": ["job", "dataset", "namespace"]}, namespace=TEXT,
        confirm=TEXT,
    ),
    "Purged": shape(records=COUNT, jobs=COUNT, datasets=COUNT),
    "Namespace": shape(
        name=TEXT, createdAt=TIME, updatedAt=TIME, ownerName=TEXT, description=MAYBE,
        isHidden=FLAG,
    ),
    "Source": shape(
        type=TEXT, name=TEXT, createdAt=TIME, updatedAt=TIME, connectionUrl=TEXT,
        description=MAYBE,
    ),
    "Dataset": shape(
        id=NAMED, type=TEXT, name=TEXT, physicalName=TEXT, createdAt=TIME, updatedAt=TIME,
        namespace=TEXT, sourceName=TEXT, fields=some(FIELD), tags=some(TEXT),
        lastModifiedAt=LATER, description=MAYBE, currentVersion=MAYBE, facets=OBJECT,
        deleted=FLAG,
    ),
    "Job": shape(
        id=NAMED, type=TEXT, name=TEXT, simpleName=TEXT, parentJobName=MAYBE, createdAt=TIME,
        updatedAt=TIME, namespace=TEXT, inputs=some(NAMED), outputs=some(NAMED), location=MAYBE,
        description=MAYBE, latestRun={"type": ["object", "null"]}, facets=OBJECT,
        currentVersion=MAYBE, labels=some(TEXT), tags=some(TEXT),
    ),
    "Run": shape(
        id=UUID, createdAt=LATER, updatedAt=LATER, nominalStartTime=LATER, nominalEndTime=LATER,
        state={"enum": ["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]}, startedAt=LATER,
        endedAt=LATER, durationMs=NUMBER, args=OBJECT,
        jobVersion={"type": ["object", "null"]}, inputDatasetVersions=some(OBJECT),
        outputDatasetVersions=some(OBJECT), facets=OBJECT,
    ),
    "Tag": shape(name=TEXT, description=MAYBE),
    "Graph": shape(
        {"truncated": FLAG},
        graph=some(shape(id=TEXT, type=TEXT, data=OBJECT, inEdges=some(EDGE), outEdges=some(EDGE))),
    ),
    **{
        plural: shape(totalCount=COUNT, **{plural[0].lower() + plural[1:]: some(one)})
        for plural, one in (("Namespaces", "Namespace"), ("Sources", "Source"),
                            ("Datasets", "Dataset"), ("Jobs", "Job"))
    },
    "Versions": shape(totalCount=COUNT, versions=some(shape(version=UUID, createdAt=TIME))),
    "Runs": shape({"totalCount": COUNT}, runs=some(OBJECT)),
    "Tags": shape(tags=some("Tag")),
    "Events": shape(events=some(OBJECT), totalCount=COUNT),
    "Results": shape(
        totalCount=COUNT,
        results=some(shape(
            type={"enum": ["DATASET", "JOB"]}, name=TEXT, namespace=TEXT, updatedAt=TIME,
            nodeId=TEXT,
        )),
    ),
    "Hits": shape(hits=some(OBJECT), highlights=some(OBJECT)),
    "Intervals": some(shape(startInterval=TIME, endInterval=TIME)),
    "Health": shape(status=TEXT, version=TEXT, store=TEXT, events=COUNT, may=some(TEXT)),
    "Log": shape(
        records=some(shape(seq=COUNT, receivedAt=TIME, type=TEXT, hash=TEXT)), next=COUNT,
        more=FLAG,
    ),
    "Around": shape(at=LATER, nodes=some(OBJECT), edges=some(EDGE), truncated=FLAG),
    "Changed": shape(
        {"from": TIME}, to=LATER, appeared=some(TEXT), vanished=some(TEXT), added=some(EDGE),
        removed=some(EDGE), schemas=some(OBJECT), truncated=FLAG,
    ),
    "Evidence": shape(
        {
            "current": FLAG, "intervals": some(shape(since=TIME, until=LATER)),
            "runs": some(OBJECT), "evidence": some(OBJECT),
            "jobs": some(shape(
                job=NAMED, basis={"enum": ["lineage", "columnLineage", "all"]}, since=LATER,
                evidence=some(OBJECT),
            )),
        },
        origin=TEXT, destination=TEXT, truncated=FLAG,
    ),
    "VersionPage": shape(versions=some(shape(time=TIME, fields=some(OBJECT))), **PAGED),
    "RunPage": shape(runs=some(shape(id=UUID, state=TEXT, durationMs=NUMBER)), **PAGED),
    "Freshness": shape(
        verdict={"enum": ["live", "fresh", "stale", "unknown"]}, since=LATER, lastWrittenAt=LATER,
        dueAt=LATER, truncated=FLAG,
        causes=some(shape(job=NAMED, trouble=TEXT, since=TIME, distance=COUNT, root=FLAG)),
    ),
    "Aliases": shape(aliases=some(shape(alias=NAMED, dataset=NAMED)), truncated=FLAG),
}  # fmt: skip
