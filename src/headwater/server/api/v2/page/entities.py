"""One dataset and one job with everything their pages show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict
from uuid import UUID

from headwater.insight import beside
from headwater.lineage.schema.claims import Rank, types
from headwater.server.api import describe
from headwater.server.api.lookup import the_dataset, the_job
from headwater.server.api.present import DATASET, Presenter, identifier, when
from headwater.server.api.types import Dataset as Described
from headwater.server.api.types import Named, Object, Time
from headwater.server.api.v2.page import programs
from headwater.server.api.v2.page.overview import affected
from headwater.server.api.v2.questions.freshness import Freshness, judged
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT, OUTPUT, slot, to_run, unslot
from headwater.server.store.read.evidence import feeds
from headwater.server.store.read.parent_runs import parent_runs
from headwater.server.store.read.schema_claims import schema_reports
from headwater.server.store.read.tagged import by_column, sent_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.schema.claims import Claim, ClaimConflict
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.read.schema_claims import SchemaReports
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

VERSIONS = 30
RUNS_READ = 60
JOBS_SHOWN = 100
FINDINGS = 20
FIELDS = 200
APPLICATION = "application"
STATISTICS = ("inputStatistics", "outputStatistics")
QUALITY = ("dataQualityAssertions", "dataQualityMetrics")


class DatasetPage(Described):
    """A dataset as its page shows it."""

    store: str
    asked: Named
    columns: list[Object]
    history: list[Object]
    findings: list[Object]
    aliases: list[Named]
    moves: list[Object]
    producers: list[Object]
    consumers: list[Object]
    freshness: Freshness
    writes: list[Object]
    truncated: bool


class JobPage(TypedDict):
    """A job as its page shows it."""

    namespace: str
    name: str
    state: str
    planned: Literal["paused", "stopped"] | None
    deleted: Time | None
    plannedEnds: dict[str, str]
    inputs: list[Named]
    outputs: list[Named]
    parent: Object | None
    children: list[Object]
    actions: Object | None
    affected: Object


@api.get("/api/v2/datasets/{namespace}/{dataset}", answer=DatasetPage)
def one_dataset(view: View, namespace: str, dataset: str) -> dict[str, Any]:
    """A dataset: its columns then and now, who writes and reads it, how fresh and how large."""
    named = the_dataset(view, namespace, dataset)
    found = view.datasets([named.root]).get(named.root, named)
    presented = Presenter(view).datasets([found])[0]
    producers, consumers = (
        [number for _, number in side] for side in beside(view.graph(), found.node)
    )
    jobs = view.jobs(producers[:JOBS_SHOWN] + consumers[:JOBS_SHOWN])
    described = describe.jobs(view, list(jobs.values()))
    names = _names(view, found)
    runs = _writes(view, producers[:10], names["ids"])
    facets = describe.Facets(view, [found.state.facets])
    claimed = schema_reports(view, found, names["ids"])
    return {
        **presented,
        "type": found.kind,
        "store": describe.store_of(found, facets),
        "asked": {"namespace": named.space, "name": named.name},
        "columns": _columns(view, found, facets, claimed),
        "history": _history(view, names["ids"]),
        "findings": [_finding(one, claimed) for one in claimed.findings[:FINDINGS]],
        "aliases": names["shown"],
        "moves": _moves(view, found, names["ids"]),
        "producers": [described[n] for n in producers if n in described],
        "consumers": [described[n] for n in consumers if n in described],
        "freshness": judged(view, found),
        "writes": runs,
        "truncated": max(len(producers), len(consumers)) > JOBS_SHOWN,
    }


def _finding(found: ClaimConflict, claimed: SchemaReports) -> dict[str, Any]:
    """Two claims that cannot both be right."""
    sides = [_side(claim, claimed) for claim in (found.one, found.other)]
    return {
        "kind": found.kind,
        "since": when(found.since),
        "fields": list(found.fields[:FIELDS]),
        "one": sides[0],
        "other": sides[1],
    }


def _side(claim: Claim, claimed: SchemaReports) -> dict[str, Any]:
    job = claimed.jobs.get(claim.author) if claim.rank is not Rank.SOURCE else None
    return {
        "job": {"namespace": job.space, "name": job.name} if job else None,
        "subject": claim.author if claim.rank is Rank.SOURCE else None,
        "since": when(claim.first),
        "fields": [
            {"name": name, "type": kind}
            for name, kind in list(types(claim.fields).items())[:FIELDS]
        ],
    }


def _columns(
    view: View, found: Dataset, facets: describe.Facets, claimed: SchemaReports
) -> list[dict[str, Any]]:
    fields = describe.flat(facets.raw(found.state.facets, "schema"))
    tags = view.tags(DATASET, [found.id]).get(found.id, [])
    marked = by_column([*tags, *sent_tags(facets.raw(found.state.facets, "tags"))])
    for f in fields:
        f["tags"] = marked.get(f["name"], [])
        if f["name"] in claimed.subjects:
            f["subjects"] = sorted(claimed.subjects[f["name"]])
    return fields


def _names(view: View, found: Dataset) -> dict[str, Any]:
    """The other names a dataset goes by."""
    rows = view.all("SELECT id FROM dataset WHERE root = ? ORDER BY id LIMIT 100", (found.id,))
    members = view.datasets(row[0] for row in rows)
    names = {(d.space, d.name) for d in members.values()}
    sql = "SELECT namespace, name FROM alias WHERE dataset = ? ORDER BY namespace, name"
    for member in members:
        names |= {(row[0], row[1]) for row in view.all(sql + " LIMIT 100", (member,))}
    names.discard((found.space, found.name))
    shown = [{"namespace": namespace, "name": name} for namespace, name in sorted(names)]
    return {"ids": sorted({found.id, *members}), "shown": shown[:100]}


def _moves(view: View, found: Dataset, ids: list[int]) -> list[dict[str, Any]]:
    """From where and to where the dataset moved under a symlink that it shares, and when."""
    members = view.datasets(ids)
    others = view.datasets(rival for member in members.values() for rival in member.state.rivals)
    roots = view.datasets({other.root for other in others.values()} - {found.id})
    began = _declared_since(members.values())
    moves: dict[int, dict[str, Any]] = {}
    for other in others.values():
        if other.root not in roots or not other.state.links:
            continue
        since = _declared_since([other])
        named = {"namespace": roots[other.root].space, "name": roots[other.root].name}
        theirs, ours = (
            (since, False, other.space, other.name),
            (began, False, found.space, found.name),
        )
        if since == began:  # the later one is what a job wrote from the other
            theirs = since, feeds(view, ids, [other.id]), *theirs[2:]
            ours = began, feeds(view, [other.id], ids), *ours[2:]
        way = "to" if theirs > ours else "from"
        moves[other.root] = {way: named, "at": when(max(since, began))}
    return sorted(moves.values(), key=lambda move: str(move["at"]))


def _declared_since(datasets: Iterable[Dataset]) -> int:
    """When the first symlink of these datasets was declared."""
    return min((held[1] for d in datasets for held in d.state.links.values()), default=0)


def _history(view: View, ids: list[int]) -> list[dict[str, Any]]:
    """Each schema the dataset has had, the newest first; one seen again at once is one."""
    rows: list[tuple[int, int]] = []
    for number in ids:
        sql = (
            "SELECT time, facet FROM facet_change WHERE kind = 0 AND entity = ? AND name = 'schema'"
            " ORDER BY time DESC LIMIT ?"
        )
        rows += [(row[0], row[1]) for row in view.all(sql, (number, VERSIONS * 2))]
    rows.sort()
    kept = [row for i, row in enumerate(rows) if i == 0 or rows[i - 1][1] != row[1]]
    bodies = view.bodies(facet for _, facet in kept)
    answers: list[dict[str, Any]] = []
    for at, facet in kept:
        fields = [{"name": f["name"], "type": f["type"]} for f in describe.flat(bodies.get(facet))]
        if not answers or answers[-1]["fields"] != fields:
            answers.append({"time": when(at), "fields": fields})
    return answers[::-1][:VERSIONS]


def _writes(view: View, producers: list[int], ids: list[int]) -> list[dict[str, Any]]:
    """The latest runs that wrote the dataset, with the size and quality they reported."""
    found = []
    jobs = view.jobs(producers)
    slots = [slot(number, OUTPUT) for number in ids]
    for number in producers:
        for run in view.newest_runs(number, RUNS_READ):
            uses = [run.state.io[key] for key in slots if key in run.state.io]
            if uses and not run.state.static:
                found.append((run.state.life.end or run.state.life.last or 0, run, uses[0]))
    found.sort(key=lambda item: -item[0])
    found = found[:RUNS_READ]
    facets = describe.Facets(view, (use.facets for _, _, use in found))
    answers = []
    for at, run, use in found:
        life, owner = run.state.life, jobs.get(run.job)
        size = facets.get(use.facets, "outputStatistics")
        answers.append(
            {
                "time": when(at),
                "run": str(UUID(bytes=run.uuid)),
                "job": {"namespace": owner.space, "name": owner.name} if owner else None,
                "state": life.state.value,
                "rows": size.get("rowCount"),
                "bytes": size.get("size"),
                "files": size.get("fileCount"),
                "quality": {n: q for n in QUALITY if (q := facets.get(use.facets, n))},
            }
        )
    return answers


@api.get("/api/v2/jobs/{namespace}/{job}", answer=JobPage)
def one_job(view: View, namespace: str, job: str) -> dict[str, Any]:
    """A job: what it is, how it stands, its family, and what lies downstream of it.

    `plannedEnds` are those of its latest runs that somebody paused or stopped. An application reads
    and writes what its `actions` do: how many there are, and the rows of its latest runs by id.
    """
    found = the_job(view, namespace, job)
    presented = Presenter(view).jobs([found])[0]
    del presented["latestRuns"]
    described = describe.jobs(view, [found])[found.id]
    children = programs.children(view, found)
    acting: list[Job] = []
    if described["type"] == APPLICATION and children:
        acting = programs.working(view, found, children)
        presented |= _sides(view, presented, acting)
    return {
        **presented,
        **{k: v for k, v in described.items() if k not in ("id", "kind", "updatedAt")},
        "plannedEnds": _planned_ends(view, found),
        "location": found.state.location,
        "parent": _parents(view, [found]).get(found.id),
        "children": list(describe.jobs(view, children).values()),
        "actions": {"jobs": len(acting), "rows": _rows(view, acting)} if acting else None,
        "affected": affected(view, found, *acting),
    }


def _sides(view: View, own: dict[str, Any], acting: list[Job]) -> dict[str, list[dict[str, str]]]:
    """What an application and its actions read and write."""
    edges = view.graph().of_jobs([job.id for job in acting])
    datasets = view.datasets(root for _, root, _ in edges)
    found = {}
    for side, way in (("inputs", INPUT), ("outputs", OUTPUT)):
        roots = {root for _, root, direction in edges if direction == way and root in datasets}
        names = {(one["namespace"], one["name"]) for one in own[side]}
        names |= {(datasets[root].space, datasets[root].name) for root in roots}
        found[side] = [identifier(*name) for name in sorted(names)]
    return found


def _rows(view: View, acting: list[Job]) -> dict[str, dict[str, int | None]]:
    """The rows that the actions of each run of an application read and wrote, by the id of the run."""
    rows = view.recent_runs([job.id for job in acting], RUNS_READ)
    runs = {run.id: run for run in map(to_run, rows) if not run.state.static}
    above = parent_runs(view, {number: run.state for number, run in runs.items()})
    uses = [use for number in above for use in runs[number].state.io.values()]
    facets = describe.Facets(view, (use.facets for use in uses), *STATISTICS)
    found: dict[str, dict[str, int | None]] = {}
    for number, parent in above.items():
        counted = found.setdefault(str(UUID(bytes=parent.uuid)), {"read": None, "written": None})
        for key, use in runs[number].state.io.items():
            output = unslot(key)[1] == OUTPUT
            value = facets.get(use.facets, STATISTICS[output]).get("rowCount")
            if isinstance(value, int):
                side = "written" if output else "read"
                counted[side] = (counted[side] or 0) + value
    return found


def _planned_ends(view: View, job: Job) -> dict[str, str]:
    runs = {run.id: run for run in view.newest_runs(job.id, RUNS_READ)}
    planned = view.graph().planned((job, run) for run in runs.values())
    return {str(UUID(bytes=runs[number].uuid)): how.value for number, how in planned.items()}


def _parents(view: View, jobs: list[Job]) -> dict[int, describe.Reference]:
    """What the newest run of each job names as its parent, where it names one."""
    runs = describe.latest_runs(view, jobs)
    facets = describe.Facets(view, (run.state.facets for run in runs.values()), "parent")
    parents = {n: describe.reference(facets.get(r.state.facets, "parent")) for n, r in runs.items()}
    found = {number: parent for number, parent in parents.items() if parent is not None}
    describe.shown(view, found.values())
    return found
