"""Generated estates: jobs whose edges, columns and schemas come, go and come back, in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

P = "https://example.com/producer"
BASE = 1_767_225_600
"""The first second of 2026."""
JOBS = ("load", "clean", "report", "export")
DATASETS = ("raw", "orders", "totals", "mart", "copy")
FIELDS = ("id", "price", "name")
NAMESPACE = "s3://lake"
Arrived = bytes | dict[str, Any]
"""An event, or a command that the server's own API makes."""


def facet(**content: Any) -> dict[str, Any]:
    return {"_producer": P, "_schemaURL": "https://example.com/facet.json", **content}


def moment(second: int) -> str:
    return f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


@st.composite
def dataset(draw: DrawFn, *, output: bool) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(FIELDS), min_size=1, unique=True))
        facets["schema"] = facet(fields=[{"name": n, "type": "int"} for n in names])
    if output and draw(st.booleans()):
        field, source, column = (draw(st.sampled_from(x)) for x in (FIELDS, DATASETS, FIELDS))
        item = {"namespace": "s3://lake", "name": source, "field": column}
        facets["columnLineage"] = facet(fields={field: {"inputFields": [item]}})
    if output and draw(st.integers(0, 2)) == 0:
        # Of whole datasets and of columns, of what the job reads and of what it does not, or of none.
        sources = draw(st.lists(st.sampled_from(DATASETS), max_size=2))
        inputs = [{"namespace": "s3://lake", "name": source} for source in sources]
        fields = {FIELDS[0]: {"inputs": [{**one, "field": FIELDS[1]} for one in inputs[1:]]}}
        facets["lineage"] = facet(inputs=inputs[:1], fields=fields)
    name = draw(st.sampled_from(DATASETS))
    if draw(st.integers(0, 9)) == 0:
        other = {"namespace": "hive://metastore", "name": f"shop.{name}", "type": "TABLE"}
        facets["symlinks"] = facet(identifiers=[other])
    return {"namespace": "s3://lake", "name": name, "facets": facets}


@st.composite
def event(draw: DrawFn) -> dict[str, Any]:
    job = draw(st.integers(0, len(JOBS) - 1))
    made: dict[str, Any] = {
        "eventType": draw(st.sampled_from(["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"])),
        "eventTime": moment(draw(st.integers(0, 40)) * 60),
        "producer": P,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        # A run is of one job.
        "run": {"runId": f"00000000-0000-4000-8000-{job:04d}{draw(st.integers(0, 3)):08d}"},
        "job": {"namespace": "jobs", "name": JOBS[job], "facets": {}},
    }
    if draw(st.integers(0, 4)) == 0:
        above = draw(st.integers(0, len(JOBS) - 1))
        run = f"00000000-0000-4000-8000-{above:04d}{draw(st.integers(0, 3)):08d}"
        parent = facet(run={"runId": run}, job={"namespace": "jobs", "name": JOBS[above]})
        made["run"]["facets"] = {"parent": parent}
    if draw(st.integers(0, 3)):
        made["inputs"] = draw(st.lists(dataset(output=False), max_size=2))
        made["outputs"] = draw(st.lists(dataset(output=True), max_size=2))
    if draw(st.integers(0, 5)) == 0:
        pattern = {"eventContentMode": "COMPLETE_SNAPSHOT"}
        kind = facet(processingType="STREAMING", integration="SPARK", emissionPattern=pattern)
        made["job"]["facets"]["jobType"] = kind
    return made


@st.composite
def dataset_event(draw: DrawFn) -> dict[str, Any]:
    return {
        "eventTime": moment(draw(st.integers(0, 40)) * 60),
        "producer": P,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
        "dataset": draw(dataset(output=False)),
    }


@st.composite
def estate(draw: DrawFn) -> list[bytes]:
    """Events as they arrive: late ones and repeated ones among them."""
    events = draw(
        st.lists(st.one_of(event(), event(), event(), dataset_event()), min_size=1, max_size=25)
    )
    again = draw(st.lists(st.sampled_from(events), max_size=3))
    return [msgspec.json.encode(one) for one in [*events, *again]]


@st.composite
def command(draw: DrawFn) -> dict[str, Any]:
    """What people and doctor do by hand; some of it about what is not there, which a server refuses."""
    name, kind = draw(st.sampled_from(DATASETS)), draw(st.sampled_from(["job", "dataset"]))
    if draw(st.booleans()):
        # Of two names one may be known to no event.
        others = [(NAMESPACE, other) for other in DATASETS if other != name]
        alias = list(
            draw(
                st.sampled_from([*others, ("hive://metastore", f"shop.{name}"), ("s3://old", name)])
            )
        )
        what = draw(
            st.sampled_from(
                [{"command": "alias"}, {"command": "alias", "by": "doctor"}, {"command": "unalias"}]
            )
        )
        return {**what, "namespace": NAMESPACE, "name": name, "alias": alias}
    if kind == "job":
        about = {"kind": kind, "namespace": "jobs", "name": draw(st.sampled_from(JOBS))}
    else:
        about = {"kind": kind, "namespace": NAMESPACE, "name": name}
    if draw(st.booleans()):
        return {"command": "hide", **about}
    field = draw(st.sampled_from(["", *FIELDS])) if kind == "dataset" else ""
    return {
        "command": "tagged",
        **about,
        "field": field,
        "tag": draw(st.sampled_from(["pii", "gold"])),
        "on": draw(st.booleans()),
    }


@st.composite
def commanded_estate(draw: DrawFn) -> list[Arrived]:
    """Events and commands as they arrive."""
    arrivals: list[Arrived] = [*draw(estate())]
    for one in draw(st.lists(command(), max_size=4)):
        arrivals.insert(draw(st.integers(0, len(arrivals))), one)
    return arrivals
