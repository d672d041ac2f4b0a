"""What is claimed of a dataset's schema now: who decides, and who disagrees."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.lineage.lifecycle import State
from headwater.lineage.schema import read_fields
from headwater.lineage.schema.claims import KEY, Rank, current, findings, parts, types
from headwater.server.store.database import within
from headwater.server.store.entities import OUTPUT, STATUSES, decode_job, decode_run, slot
from headwater.server.store.write.schemas import is_topic, read_claims, to_claims

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.lineage.schema.claims import ClaimConflict, Part
    from headwater.lineage.schema.model import Field
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["SchemaReports", "schema_reports"]

RUNNING = STATUSES.index(State.RUNNING)


class SchemaReports(NamedTuple):
    """What disagrees, the jobs that report the schema by number, and the subjects of its columns.

    A subject is one of a registry, or a table of a catalog, that was asked for the column.
    """

    findings: list[ClaimConflict]
    jobs: dict[str, Job]
    subjects: dict[str, set[str]]


def schema_reports(view: View, dataset: Dataset, ids: Sequence[int]) -> SchemaReports:
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
    disagree = findings(claims, ends, live, topic=topic)
    if any(one.kind == "source" for one in disagree):
        answers = _answers(view, rows, fields, topic=topic)
        disagree = [one for one in disagree if not _superseded(view, one, answers, topic=topic)]
    subjects: dict[str, set[str]] = defaultdict(set)
    for claim in version.claims if version is not None else ():
        if claim.rank is Rank.SOURCE:
            for column in types(claim.fields):
                subjects[column].add(claim.author)
    return SchemaReports(disagree, {str(number): job for number, job in jobs.items()}, subjects)


def _answers(
    view: View,
    rows: Sequence[tuple[Any, ...]],
    fields: Mapping[int, tuple[Field, ...]],
    *,
    topic: bool,
) -> dict[tuple[str, Part], int]:
    """When each job last reported what a registry or catalog answered it of a part of a dataset."""
    asked = [row for row in rows if row[0] == Rank.SOURCE and row[9] == OUTPUT and row[1]]
    sql = "SELECT id, state FROM job WHERE id IN ({in})"
    states = within(view.connection, sql, {row[1] for row in asked})
    made = {job: decode_job(bytes(state)).claims for job, state in states}
    found: dict[tuple[str, Part], int] = {}
    for rank, job, _, subject, version, facet, _, last, dataset, side in asked:
        # Of a claim that is only repeated, the author's state has the time.
        place = f"{slot(dataset, side)} {rank} {subject} {version}"
        held = made.get(job, {}).get(place)
        when = max(last, held[2]) if held is not None and held[0] == facet else last
        for part in parts(fields.get(facet, ()), topic=topic):
            key = str(job), part
            found[key] = max(found.get(key, when), when)
    return found


def _superseded(
    view: View, one: ClaimConflict, answers: Mapping[tuple[str, Part], int], *, topic: bool
) -> bool:
    """Whether a job that contradicts a registry or catalog has since reported its answer itself.

    What a job concluded before it could ask, such as of a table that was not there, is no other opinion.
    """
    part: Part = "whole"
    if topic:
        part = "key" if one.fields[0].partition(".")[0] == KEY else "value"
    answered = answers.get((one.other.author, part))
    if one.kind != "source" or answered is None:
        return False
    last = one.other.last
    if last < answered and one.other.run:
        dataset, side, _, run, *_ = map(int, one.other.run.split()[:4])
        for (state,) in view.all("SELECT state FROM run WHERE id = ?", (run,)):
            use = decode_run(bytes(state)).io.get(slot(dataset, side))
            last = max(last, use.stream[2] if use is not None and use.stream else last)
    return last < answered
