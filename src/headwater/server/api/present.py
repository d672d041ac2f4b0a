"""The shapes Marquez answers in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.events import iso
from headwater.server.api.facet_columns import columns, tags_of
from headwater.server.api.java_client_urls import to_url
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT, run_uses, to_run, unslot
from headwater.server.store.read.tagged import by_column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Dataset, Held, Job, Run
    from headwater.server.store.view import View

__all__ = [
    "DATASET",
    "JOB",
    "PHYSICAL",
    "Presenter",
    "dataset_type",
    "identifier",
    "job_type",
    "sides",
    "when",
]

DATASET, JOB = 0, 1
MILLISECOND = 1_000
PHYSICAL = "headwater_physical"
RUNS = 10
"""How many of its latest runs a job carries."""
_encode = msgspec.json.Encoder().encode
_JOB_TYPES = {"STREAMING": "STREAM", "STREAM": "STREAM", "SERVICE": "SERVICE"}


def when(value: int | None) -> str | None:
    """A moment as text, or nothing."""
    return None if value is None else iso(value)


def identifier(namespace: str, name: str) -> dict[str, str]:
    """An id in Marquez's shape."""
    return {"namespace": namespace, "name": name}


def job_type(kind: str) -> str:
    """A job's type as Marquez names it; its clients know these three and fail on any other."""
    return _JOB_TYPES.get(kind, "BATCH")


def dataset_type(kind: str) -> str:
    """A dataset's type as Marquez names it; its clients know these two and fail on any other."""
    return "STREAM" if kind == "STREAM" else "DB_TABLE"


def sides(view: View, jobs: Iterable[Job]) -> dict[int, dict[int, list[dict[str, str]]]]:
    """What each job reads and writes now by direction: each dataset once, by the name it is shown by."""
    opened = {number: [unslot(slot) for slot in held] for number, held in view.opened(jobs).items()}
    named = view.datasets(number for held in opened.values() for number, _ in held)
    shown = view.datasets(one.root for one in named.values())
    found = {}
    for job, held in opened.items():
        ways: dict[int, dict[int, dict[str, str]]] = {INPUT: {}, OUTPUT: {}}
        for number, direction in held:
            if number in named and (one := shown.get(named[number].root)) is not None:
                ways[direction][one.id] = identifier(one.space, one.name)
        found[job] = {direction: list(some.values()) for direction, some in ways.items()}
    return found


class Presenter:
    """Turns entities into answers, loading what they refer to in bulk."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._fields: dict[int, list[dict[str, Any]]] = {}

    def runs(
        self, runs: Iterable[Run], jobs: dict[int, Job], *, folded: bool = True
    ) -> dict[int, dict[str, Any]]:
        """Runs by id, with their dataset versions and facets; `folded`, each dataset by one name."""
        wanted = list(runs)
        numbers = [held[0] for run in wanted for held in run.state.facets.values()]
        named_by = {unslot(slot)[0] for run in wanted for slot in run.state.io}
        datasets = self.view.datasets(named_by)
        roots = {number: one.root if folded else number for number, one in datasets.items()}
        used = {run.id: run_uses(run, roots) for run in wanted}
        uses = [use for some in used.values() for use in some]
        numbers += [held[0] for use in uses for held in use.facets.values()]
        facets = self.view.facets(numbers)
        versions = self.view.versions("dataset", (use.version for use in uses))
        job_versions = self.view.versions("job", (run.state.version for run in wanted))
        answers = {}
        for run in wanted:
            uses_by: dict[int, list[dict[str, Any]]] = {INPUT: [], OUTPUT: []}
            for use in used[run.id]:
                dataset = datasets[use.dataset]
                named = {
                    "namespace": dataset.space,
                    "name": dataset.name,
                    "version": versions.get(use.version or 0),
                }
                shown = self.held(use.facets, facets) if use.facets else {}
                uses_by[use.direction].append({"datasetVersionId": named, "facets": shown})
            answers[run.id] = self._run(run, jobs.get(run.job), job_versions, uses_by, facets)
        return answers

    def _run(
        self,
        run: Run,
        job: Job | None,
        job_versions: dict[int, str],
        uses: dict[int, list[dict[str, Any]]],
        facets: dict[int, msgspec.Raw],
    ) -> dict[str, Any]:
        life, nominal = run.state.life, run.state.nominal or (None, None)
        start, end = life.started, life.end
        version = None
        if job is not None:
            version = {
                **identifier(job.space, job.name),
                "version": job_versions.get(run.state.version or 0),
            }
        return {
            "id": str(UUID(bytes=run.uuid)),
            "createdAt": when(life.first),
            "updatedAt": when(max(life.last or 0, end or 0)),
            "nominalStartTime": when(nominal[0]),
            "nominalEndTime": when(nominal[1]),
            "state": life.state.value,
            "startedAt": when(start),
            "endedAt": when(end),
            "durationMs": None if start is None or end is None else (end - start) // MILLISECOND,
            "args": run.state.args or {},
            "jobVersion": version,
            "inputDatasetVersions": uses[INPUT],
            "outputDatasetVersions": uses[OUTPUT],
            "facets": self.held(run.state.facets, facets),
        }

    def held(self, held: dict[str, Held], facets: dict[int, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        """The facets an entity holds now."""
        return {name: facets[h[0]] for name, h in held.items() if h[0] in facets}

    def jobs(
        self, jobs: list[Job], *, facets: bool = True, node: bool = False
    ) -> list[dict[str, Any]]:
        """Jobs with their latest runs, inputs and outputs, each dataset by the name that it is shown by."""
        by_id = {job.id: job for job in jobs}
        latest = self.view.runs(job.latest for job in jobs if job.latest is not None)
        recent = {} if node else self._recent(by_id)
        runs: dict[int, Any] = {
            number: shown for pairs in recent.values() for number, shown in pairs
        }
        runs |= self.runs((run for run in latest.values() if run.id not in runs), by_id)
        parents = self._parents(by_id, latest)
        used = sides(self.view, jobs)
        versions = self.view.versions("job", (job.version for job in jobs))
        bodies = self.view.facets(h[0] for job in jobs for h in job.state.facets.values())
        tags = self.view.tags(JOB, by_id)
        answers = []
        for job in jobs:
            parent = parents.get(job.id)
            run = runs.get(job.latest or 0)
            answer: dict[str, Any] = {
                "id": identifier(job.space, job.name),
                "type": job_type(job.kind),
                "name": job.name,
                "simpleName": job.name.removeprefix(f"{parent}.") if parent else job.name,
                "parentJobName": parent,
                "parentJobUuid": None,
                "createdAt": when(job.created),
                "updatedAt": when(job.updated),
                "namespace": job.space,
                "inputs": used[job.id][INPUT],
                "outputs": used[job.id][OUTPUT],
                "location": to_url(job.state.location),
                "description": job.state.description,
                "latestRun": run,
            }
            if node:
                answer["currentRunUuid"] = run["id"] if run else None
            else:
                # Marquez's page reduces the list without a start: it must not be empty.
                answer["latestRuns"] = [shown for _, shown in recent.get(job.id, ())] or None
            if facets:
                answer["facets"] = self.held(job.state.facets, bodies)
                answer["currentVersion"] = versions.get(job.version or 0)
                answer["labels"] = self._labels(job, bodies)
                marks = [*tags.get(job.id, []), *tags_of(job.state.facets, bodies)]
                answer["tags"] = sorted({tag for _, tag in marks})
            answers.append(answer)
        return answers

    def _recent(self, jobs: dict[int, Job]) -> dict[int, list[tuple[int, msgspec.Raw]]]:
        """The latest runs of each job by id; those that have not changed are not presented again."""
        rows = self.view.recent_runs(jobs, RUNS)
        checkpoint, answers = self.view.run_answers()
        shown = {row[0]: answers.get(checkpoint, row) for row in rows}
        changed = [row for row in rows if shown[row[0]] is None]
        runs = [run for run in map(to_run, changed) if not run.state.static]
        # Kept answers outlive a change of what a name stands for.
        presented = self.runs(runs, jobs, folded=False)
        for row in changed:
            answer = presented.get(row[0])  # none of a declaration that is kept as a run
            raw = shown[row[0]] = msgspec.Raw(_encode(answer) if answer is not None else b"")
            answers.keep(checkpoint, row, raw)
        found: dict[int, list[tuple[int, msgspec.Raw]]] = {}
        for number, _, job, _ in rows:
            if kept := shown[number]:
                found.setdefault(job, []).append((number, kept))
        return found

    def _parents(self, jobs: dict[int, Job], latest: dict[int, Run]) -> dict[int, str]:
        """What the newest run of each job names as its parent job."""
        held = {
            job.id: h[0]
            for job in jobs.values()
            if job.latest in latest and (h := latest[job.latest].state.facets.get("parent"))
        }
        bodies = self.view.bodies(held.values())
        found = {}
        for number, facet in held.items():
            read = known.read(bodies[facet], known.ParentFacet) if facet in bodies else None
            name = read.job.name if read and read.job else None
            if name == jobs[number].name:
                # Airflow's older provider names the task itself; its parent is the DAG before it.
                name = name.rpartition(".")[0]
            if name:
                found[number] = name
        return found

    def _labels(self, job: Job, bodies: dict[int, msgspec.Raw]) -> list[str]:
        held = job.state.facets.get("jobType")
        if not held or held[0] not in bodies:
            return []
        read = known.read(bytes(bodies[held[0]]), known.JobTypeFacet)
        return [label for label in (read.jobType, read.integration) if label] if read else []

    def datasets(self, datasets: list[Dataset], *, node: bool = False) -> list[dict[str, Any]]:
        """Datasets with their fields, facets and column lineage."""
        by_id = {d.id: d for d in datasets}
        wanted = ("schema", "tags", PHYSICAL) if node else None
        numbers = {
            h[0]
            for d in datasets
            for name, h in d.state.facets.items()
            if not wanted or name in wanted
        }
        bodies = self.view.bodies(numbers)
        raws = {n: msgspec.Raw(body) for n, body in bodies.items()}
        versions = self.view.versions("dataset", (d.version for d in datasets)) if not node else {}
        tags = self.view.tags(DATASET, by_id)
        sources = self._sources({d.source for d in datasets if d.source is not None})
        answers = []
        for d in datasets:
            kind, physical = dataset_type(d.kind), self._physical(d, bodies)
            marks = [*tags.get(d.id, []), *tags_of(d.state.facets, raws)]
            answer: dict[str, Any] = {
                "id": identifier(d.space, d.name),
                "type": kind,
                "name": d.name,
                "physicalName": physical.physicalName or d.name,
                "createdAt": when(d.created),
                "updatedAt": when(d.updated),
                "namespace": d.space,
                "sourceName": sources.get(d.source or 0, d.space),
                "fields": self.fields(d.state.facets.get("schema"), bodies, marks),
                "tags": sorted({tag for field, tag in marks if not field}),
                "lastModifiedAt": when(d.state.modified),
                "lastLifecycleState": d.state.lifecycle,
                "description": d.state.description,
            }
            if kind == "STREAM":
                answer["schemaLocation"] = to_url(physical.schemaLocation)
            if not node:
                answer["currentVersion"] = versions.get(d.version or 0)
                answer["columnLineage"] = columns(d.state.facets.get("columnLineage"), bodies)
                answer["facets"] = self.held(d.state.facets, raws)
                answer["deleted"] = bool(d.hidden)
            answers.append(answer)
        return answers

    def _physical(self, dataset: Dataset, bodies: dict[int, bytes]) -> known.Physical:
        held = dataset.state.facets.get(PHYSICAL)
        body = bodies.get(held[0]) if held else None
        return (known.read(body, known.Physical) if body else None) or known.Physical()

    def _sources(self, ids: set[int]) -> dict[int, str]:
        sql = "SELECT id, name FROM source WHERE id IN ({in})"
        return dict(within(self.view.connection, sql, ids))

    def fields(
        self, held: Held | None, bodies: dict[int, bytes], tags: list[tuple[str, str]] | None = None
    ) -> list[dict[str, Any]]:
        """The columns of a schema facet; each name once."""
        number = held[0] if held else 0
        if number not in bodies:
            return []
        if number not in self._fields:
            read = known.read(bodies[number], known.SchemaFacet)
            seen: dict[str, dict[str, Any]] = {}
            for f in (read.fields if read else None) or ():
                entry: dict[str, Any] = {
                    "name": f.name,
                    "type": f.type,
                    "tags": [],
                    "description": f.description,
                }
                seen.setdefault(f.name, entry)
            self._fields[number] = list(seen.values())
        fields = self._fields[number]
        marked = by_column((field, tag) for field, tag in tags or () if field)
        if not marked:
            return fields
        return [{**f, "tags": marked.get(f["name"], [])} for f in fields]
