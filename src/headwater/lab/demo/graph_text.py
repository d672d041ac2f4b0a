"""The graph of a lab's lineage server as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.errors import HeadwaterError, UsageError
from headwater.lab.demo.lineage_client import state_of

if TYPE_CHECKING:
    from headwater.lab.demo.lineage_client import LineageClient


class JobRow(msgspec.Struct, kw_only=True):
    """A job with what it reads and writes, by the lab's short names."""

    job: str
    state: str
    reads: list[str]
    writes: list[str]


class GraphStep(msgspec.Struct, kw_only=True):
    """A column on the way back to where it comes from."""

    column: str
    distance: int
    how: str = ""
    jobs: list[str] = []


def jobs(lineage: LineageClient) -> list[JobRow]:
    """Every job that reads or writes something, those that others wait for first."""
    found = [
        JobRow(
            job=job["name"],
            state=state_of(job),
            reads=_names(lineage, job, "inputs"),
            writes=_names(lineage, job, "outputs"),
        )
        for job in lineage.listed()
    ]
    left = sorted((job for job in found if job.reads or job.writes), key=lambda job: job.job)
    ordered: list[JobRow] = []
    while left:
        pending = {name for job in left for name in job.writes}
        # A job may read what it writes; in a ring, whoever comes first by name goes first.
        ready = [job for job in left if not (set(job.reads) - set(job.writes)) & pending]
        ordered += ready or left[:1]
        left = [job for job in left if job not in ordered]
    return ordered


def origins(lineage: LineageClient, dataset: str, column: str) -> list[GraphStep]:
    """Where a column comes from, step by step, the column itself first."""
    node = f"datasetField:{':'.join(lineage.name(dataset))}:{column}"
    asked = lineage.http.get("/api/v2/columns", params={"node": node, "depth": 20})
    if asked.status_code == 404:
        if lineage.dataset(dataset):
            raise UsageError(
                f"{dataset} has no column {column}",
                hint=f"its columns: {', '.join(lineage.fields(dataset)) or 'none'}",
            )
        raise UsageError(
            f"lineage knows no dataset {dataset}",
            hint="datasets and their short names: headwater lab graph",
        )
    asked.raise_for_status()
    answer = asked.json()
    if not answer["columnsKnown"]:
        raise HeadwaterError(
            f"the columns of {dataset} are not known yet",
            hint="a connector's are reported by the poll after its schema is registered or its "
            "table is created",
        )
    edges: dict[str, list[dict[str, Any]]] = {}
    for edge in answer["edges"]:
        edges.setdefault(edge["destination"], []).append(edge)
    steps = [GraphStep(column=f"{dataset} {column}", distance=0)]
    seen = {node}

    def climb(target: str, distance: int) -> None:
        for edge in edges.get(target, ()):
            if edge["origin"] in seen or not _is_value(edge):
                continue
            seen.add(edge["origin"])
            source = edge["source"]
            steps.append(
                GraphStep(
                    column=f"{short(lineage, source)} {source['field']}",
                    distance=distance,
                    how=", ".join(sorted({_words(how) for how in edge["how"]})),
                    jobs=[job.split(":", 2)[2] for job in edge["jobs"]],
                )
            )
            climb(edge["origin"], distance + 1)

    climb(node, 1)
    return steps


def short(lineage: LineageClient, dataset: dict[str, Any]) -> str:
    """A dataset's name with the lab's word for its store, as `kafka orders`."""
    stores = {space: store for store, space in lineage.namespaces.items()}
    return f"{stores.get(dataset['namespace'], dataset['namespace'])} {dataset['name']}"


def _names(lineage: LineageClient, job: dict[str, Any], side: str) -> list[str]:
    return sorted(short(lineage, dataset) for dataset in job.get(side, []))


def _is_value(edge: dict[str, Any]) -> bool:
    """Whether the value itself goes along; a column may also only decide which rows do."""
    return any(how["type"] != "INDIRECT" for how in edge["how"]) or not edge["how"]


def _words(how: dict[str, Any]) -> str:
    return str(how["subtype"] or how["type"] or "").lower()
