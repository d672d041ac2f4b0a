"""What is claimed of a dataset's schema now: who decides, and who disagrees."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from headwater.lineage.lifecycle import State
from headwater.lineage.schema import read_fields
from headwater.lineage.schema.claims import Rank, current, findings, types
from headwater.server.store.database import within
from headwater.server.store.entities import OUTPUT, STATUSES
from headwater.server.store.write.schemas import is_topic, read_claims, to_claims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.lineage.schema.claims import ClaimConflict
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["SchemaReports", "standing"]

RUNNING = STATUSES.index(State.RUNNING)


class SchemaReports(NamedTuple):
    """What disagrees, the jobs that report the schema by number, and the subjects of its columns.

    A subject is one of a registry, or a table of a catalog, that was asked for the column.
    """

    findings: list[ClaimConflict]
    jobs: dict[str, Job]
    subjects: dict[str, set[str]]


def standing(view: View, dataset: Dataset, ids: Sequence[int]) -> SchemaReports:
    """What is claimed of a dataset under any of its names."""
    rows, ends = read_claims(view.connection, ids)
    bodies = view.bodies({row[5] for row in rows})
    fields = {number: read_fields(body) for number, body in bodies.items()}
    claims = [c for c in to_claims(rows, lambda number: fields.get(number, ())) if c.fields]
    topic = is_topic(dataset)
    version = current(claims, ends, topic=topic)
    jobs = view.jobs({row[1] for row in rows if row[1]})
    # A job may have several runs at once: any that claimed, and the latest, which may not have yet.
    runs = {abs(row[2]) for row in rows if row[2]}
    runs |= {job.latest for job in jobs.values() if job.latest is not None}
    sql = f"SELECT DISTINCT job FROM run WHERE status = {RUNNING} AND id IN ({{in}})"  # noqa: S608
    live = {str(number) for (number,) in within(view.connection, sql, runs) if number in jobs}
    asked: dict[str, int] = {}  # since when a job reports what a registry or catalog answered
    for rank, job, *_, first, _, _, side in rows:
        if rank == Rank.SOURCE and side == OUTPUT:
            asked[str(job)] = min(asked.get(str(job), first), first)
    disagree = [
        one
        for one in findings(claims, ends, live, topic=topic)
        # What a job concluded before it could ask, such as of a table that was not there, is no other opinion.
        if one.kind != "source" or asked.get(one.other.author, 0) <= one.other.first
    ]
    subjects: dict[str, set[str]] = defaultdict(set)
    for claim in version.claims if version is not None else ():
        if claim.rank is Rank.SOURCE:
            for column in types(claim.fields):
                subjects[column].add(claim.author)
    return SchemaReports(disagree, {str(number): job for number, job in jobs.items()}, subjects)
