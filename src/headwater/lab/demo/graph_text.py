"""The graph of a lab's lineage server as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lab.demo.lineage_client import state_of

if TYPE_CHECKING:
    from headwater.lab.demo.lineage_client import LineageClient


class JobRow(msgspec.Struct, kw_only=True):
    """A job with what it reads and writes, by the lab's short names."""

    job: str
    state: str
    reads: list[str]
    writes: list[str]


def jobs(lineage: LineageClient) -> list[JobRow]:
    """Every job that reads or writes something, those that others wait for first."""
    # In the words of the page: a connector that somebody paused is paused, though its run completed.
    drawn = lineage.get("/api/v2/map", namespace=lineage.namespace)["nodes"]
    planned = {job["name"]: job["planned"].upper() for job in drawn if job.get("planned")}
    found = [
        JobRow(
            job=job["name"],
            state=planned.get(job["name"]) or state_of(job),
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


def short(lineage: LineageClient, dataset: dict[str, Any]) -> str:
    """A dataset's name with the lab's word for its store, as `kafka orders`."""
    stores = {space: store for store, space in lineage.namespaces.items()}
    return f"{stores.get(dataset['namespace'], dataset['namespace'])} {dataset['name']}"


def _names(lineage: LineageClient, job: dict[str, Any], side: str) -> list[str]:
    return sorted(short(lineage, dataset) for dataset in job.get(side, []))
