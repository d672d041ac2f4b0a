"""The provenance of a dataset or a column over a period, as JSON and as a report to print."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

import msgspec

from headwater.insight import along_values, carriers, through, trace
from headwater.insight import audit as provenance
from headwater.lineage.openlineage.evidence_facet import FACET as EVIDENCE
from headwater.lineage.openlineage.evidence_facet import read_evidence
from headwater.lineage.schema import diff
from headwater.lineage.secrets import clean_value, redact
from headwater.server.api import describe
from headwater.server.api.lookup import had_column, the_dataset
from headwater.server.api.missing_columns import missing_column
from headwater.server.api.parameters import check_period, integer, moment, text
from headwater.server.api.present import when
from headwater.server.api.types import Object, Sourced, Time, Uuid
from headwater.server.api.v2.page import columns
from headwater.server.api.v2.questions.audit_report import HTML, report_of
from headwater.server.api.v2.timeline import summaries
from headwater.server.http import Response
from headwater.server.routing import Past, Routes
from headwater.server.store.entities import OUTPUT
from headwater.server.store.read.observed import read_schema
from headwater.server.store.read.records import PeriodRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.insight import Audit, AuditedJob
    from headwater.lineage.schema import Schema
    from headwater.server.store.entities import Dataset, Job, Node, Run
    from headwater.server.store.read.records import FacetVersion
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

BETWEEN = Past("both", between=True)

PATH = "/api/v2/datasets/{namespace}/{dataset}/audit"
NODES = 500
RUNS = 1_000
VERSIONS = 50
"""Versions of the schema of one dataset, of the configuration or of the code of one job."""
FIELDS = 500
LARGEST = 50_000
"""Bytes of one facet: code may be long."""
CODE = ("sourceCodeLocation", "sourceCode", "sql")
CONFIGURATION = (
    "headwater_connect", "debezium_config", "headwater_spark", "spark_properties",
    "environment-properties", "processing_engine",
)  # fmt: skip
"""Facets of runs that say how a job was configured; credentials in them are masked when they come in."""
PASSING = {"state", "tasks", "problems", "inferred", "workerId", "joined"}
"""What changes while the configuration stays."""


class AuditedRun(TypedDict):
    """A run that wrote or read the data, and when it did."""

    id: Uuid
    state: str
    usedFrom: Time
    usedUntil: Time | None


class Held(TypedDict):
    """The content of a facet, and since when and until when it held."""

    facet: str
    since: Time | None
    until: Time | None
    content: Object


class Configured(TypedDict):
    """What a job was configured with, and the runs that were."""

    facet: str
    content: Object
    runs: list[Uuid]


class AuditedJobShown(TypedDict):
    """A job on the way, how many jobs away, with its runs, its configuration and its code."""

    id: str
    namespace: str
    name: str
    distance: int
    inputs: list[str]
    outputs: list[str]
    owners: list[Object]
    runs: list[AuditedRun]
    runCount: int
    configuration: list[Configured]
    code: list[Held]
    evidence: list[Object]


class AuditedDataset(TypedDict):
    """A dataset on the way, how many jobs away, with the schemas it had."""

    id: str
    namespace: str
    name: str
    distance: int
    owners: list[Object]
    schemas: list[Object]


class AuditAnswer(Sourced):
    """Where data came from, what made it, and who had it; `hidden` is what lies next to that."""

    node: str
    column: str | None
    since: Time | None
    until: Time
    sources: list[str]
    upstream: list[AuditedDataset]
    writers: list[AuditedJobShown]
    downstream: list[AuditedDataset]
    readers: list[AuditedJobShown]
    paths: list[Object]
    hidden: int
    truncated: bool


@api.get(PATH, answer=AuditAnswer, past=BETWEEN)
def audit(
    view: View,
    namespace: str,
    dataset: str,
    column: str = text(),
    start: int | None = moment(name="from"),
    end: int | None = moment(name="to"),
    depth: int = integer(20, 1, 50),
) -> dict[str, Any]:
    """Where a dataset or a column came from in a period, what touched it, and who had it.

    Without `from` the period begins with the first record kept, without `to` it ends now.
    """
    return _audit(view, namespace, dataset, column, (start, end), depth)


@api.get(PATH + "/report", media="text/html", past=BETWEEN)
def report(
    view: View,
    namespace: str,
    dataset: str,
    column: str = text(),
    start: int | None = moment(name="from"),
    end: int | None = moment(name="to"),
    depth: int = integer(20, 1, 50),
) -> Response:
    """The same as one page of HTML that can be printed and kept."""
    answer = _audit(view, namespace, dataset, column, (start, end), depth)
    return Response(report_of(answer, when(time.time_ns() // 1000) or "").encode(), 200, HTML)


def _audit(
    view: View,
    namespace: str,
    dataset: str,
    column: str,
    period: tuple[int | None, int | None],
    depth: int,
) -> dict[str, Any]:
    named = the_dataset(view, namespace, dataset)
    until = time.time_ns() // 1000 if period[1] is None else period[1]
    since = 0 if period[0] is None else period[0]
    check_period(*period)
    records = PeriodRecords(view, since, until, RUNS)
    if column:
        if had_column(view, named, column, since, until) is False:
            raise missing_column(view, named, column)
        found, paths, cut = _of_column(view, named, column, records, depth)
    else:
        graph = view.graph(until, since)
        found = provenance(graph, records, named.node, depth=depth, limit=NODES)
        paths, cut = [], False
    shown = _AuditAnswer(view, records, found)
    answer = {
        "node": describe.dataset_id(shown.datasets[named.root]),
        "namespace": shown.datasets[named.root].space,
        "name": shown.datasets[named.root].name,
        "column": column or None,
        "since": when(period[0]),
        "until": when(until),
        "sources": [shown.id(node) for node in found.sources if shown.id(node)],
        "upstream": shown.audited(found.upstream, schemas=True),
        "writers": shown.jobs(found.writers),
        "downstream": shown.audited(found.downstream, schemas=False),
        "readers": shown.jobs(found.readers),
        "paths": paths,
    }
    kept, hidden = view.only_readable(answer)
    return {**kept, "hidden": hidden, "truncated": cut or found.cut or shown.cut}


def _of_column(
    view: View, dataset: Dataset, column: str, records: PeriodRecords, depth: int
) -> tuple[Audit[Node], list[dict[str, Any]], bool]:
    """The audit of what the values of a column went through, its paths, and whether they are cut.

    Where a column is reported to come from no other, the jobs that write its dataset are there too: one
    of them made it up, or reports no columns.
    """
    period = (records.until, records.since)
    graph = view.column_graph(*period)
    found = trace(
        graph,
        [(dataset.root, column)],
        depth=depth,
        limit=NODES,
        downstream=True,
        follow=along_values(graph),
    )
    edges = found.edges
    first = {one[0] for one in found.distance.keys() - {target for _, target in edges}}
    writers = view.graph(*period).of_datasets(first, OUTPUT)
    gone = through(carriers(graph, edges), [(job, root) for job, root, _ in writers])
    audited = provenance(gone, records, dataset.node, depth=depth, limit=NODES)
    datasets = view.datasets({root for edge in edges for root, _ in edge})
    shown = columns.edges(view, graph, edges, datasets)
    return audited, shown, found.cut or bool(found.ahead)


class _AuditAnswer:
    """What an audit found as the answer shows it."""

    def __init__(self, view: View, records: PeriodRecords, found: Audit[Node]) -> None:
        self._view, self._records = view, records
        self.cut = False
        self._all_jobs = [*found.writers, *found.readers]
        self.datasets = view.datasets({n for _, n in (*found.upstream, *found.downstream)})
        self._jobs = view.jobs({one.job[1] for one in self._all_jobs})
        self._described = describe.jobs(view, list({j.id: j for j in self._jobs.values()}.values()))
        self._kinds = describe.datasets(view, self.datasets)
        self._owned = describe.Facets(
            view,
            [job.state.facets for job in self._jobs.values()]
            + [dataset.state.facets for dataset in self.datasets.values()],
            *describe.OWNED,
        )
        self._runs = self._summaries()
        self._code = records.facets(1, list(self._jobs), (*CODE, EVIDENCE))
        self._schemas = self._versions([root for _, root in found.upstream])
        kept = [version.facet for some in self._code.values() for version in some]
        kept += [version.facet for some in self._schemas.values() for version in some]
        kept += [h[0] for run in records.found.values() for h in self._configured(run).values()]
        self._bodies = view.bodies(kept)

    def _summaries(self) -> dict[int, dict[str, Any]]:
        runs = list(self._records.found.values())
        jobs = self._view.jobs({run.job for run in runs})
        shown = summaries(self._view, runs, jobs)
        return {run.id: one for run, one in zip(runs, shown, strict=True)}

    def _versions(self, roots: list[int]) -> dict[int, list[FacetVersion]]:
        """The schemas of datasets under any of their names."""
        members = self._view.column_graph().members(roots)
        found: dict[int, list[FacetVersion]] = {}
        for (number, _), versions in self._records.facets(0, list(members), ("schema",)).items():
            found.setdefault(members[number], []).extend(versions)
        return {root: sorted(some, key=lambda one: one.since) for root, some in found.items()}

    def id(self, node: Node) -> str:
        """The id of a job or a dataset."""
        if node[0] == "job":
            return describe.job_id(self._jobs[node[1]]) if node[1] in self._jobs else ""
        return describe.dataset_id(self.datasets[node[1]]) if node[1] in self.datasets else ""

    def _owners(self, one: Job | Dataset) -> list[dict[str, Any]]:
        return describe.owners(self._owned, one.state.facets)

    def audited(self, nodes: Mapping[Node, int], *, schemas: bool) -> list[dict[str, Any]]:
        """Datasets by how far they are."""
        return [
            {
                **self._kinds[root],
                "distance": far,
                "owners": self._owners(self.datasets[root]),
                "schemas": self._schema(root) if schemas else [],
            }
            for (_, root), far in nodes.items()
            if root in self.datasets
        ]

    def _schema(self, root: int) -> list[dict[str, Any]]:
        """The versions of a schema, each with what it changed."""
        answers: list[dict[str, Any]] = []
        before: Schema | None = None
        for version in self._bounded(self._schemas.get(root, [])):
            body = self._bodies.get(version.facet)
            schema = read_schema(body)
            changes = [str(one) for one in diff(before, schema)] if before else []
            if before is None or changes:
                fields = describe.flat(body, FIELDS)
                answers.append(
                    {
                        "since": when(version.since),
                        "until": None,
                        "fields": [{"name": f["name"], "type": f["type"]} for f in fields],
                        "changes": changes[:FIELDS],
                    }
                )
                if len(answers) > 1:
                    answers[-2]["until"] = answers[-1]["since"]
            before = schema
        return answers

    def _bounded(self, versions: list[FacetVersion]) -> list[FacetVersion]:
        """The newest versions, as many as an answer has of one thing."""
        self.cut = self.cut or len(versions) > VERSIONS
        return versions[-VERSIONS:]

    def jobs(self, found: Iterable[AuditedJob[Node]]) -> list[dict[str, Any]]:
        """Jobs by how far they are."""
        return [self._job(one, self._jobs[one.job[1]]) for one in found if one.job[1] in self._jobs]

    def _job(self, one: AuditedJob[Node], job: Job) -> dict[str, Any]:
        return {
            **self._described[job.id],
            "distance": one.distance,
            "inputs": [name for node in one.inputs if (name := self.id(node))],
            "outputs": [name for node in one.outputs if (name := self.id(node))],
            "owners": self._owners(job),
            "runs": [
                {
                    **self._runs[use.run],
                    "usedFrom": when(use.since),
                    "usedUntil": when(use.until),
                }
                for use in one.runs
            ],
            "runCount": len(one.runs),
            "configuration": self._configuration(one),
            "code": self._held(job, CODE),
            "evidence": self._evidence(job),
        }

    @staticmethod
    def _configured(run: Run) -> dict[str, list[int]]:
        return {name: run.state.facets[name] for name in CONFIGURATION if name in run.state.facets}

    def _configuration(self, one: AuditedJob[Node]) -> list[dict[str, Any]]:
        """What the runs of a job were configured with, the newest first."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for use in one.runs:
            run = self._records.found[use.run]
            for name, held in self._configured(run).items():
                content = _content(self._bodies.get(held[0]), PASSING)
                if content:
                    same = found.setdefault(
                        (name, repr(content)), {"facet": name, "content": content, "runs": []}
                    )
                    same["runs"].append(str(UUID(bytes=run.uuid)))
        self.cut = self.cut or len(found) > VERSIONS
        return list(found.values())[:VERSIONS]

    def _held(self, job: Job, names: Iterable[str]) -> list[dict[str, Any]]:
        """The facets of a job in the period, the newest first."""
        return [
            {
                "facet": name,
                "since": when(version.since),
                "until": when(version.until),
                "content": _content(self._bodies.get(version.facet), PASSING),
            }
            for name in names
            for version in reversed(self._bounded(self._code.get((job.id, name), [])))
        ]

    def _evidence(self, job: Job) -> list[dict[str, Any]]:
        """What the job's inputs and outputs were known from, such as keys of its configuration."""
        found: dict[str, dict[str, Any]] = {}
        for version in self._bounded(self._code.get((job.id, EVIDENCE), [])):
            read = read_evidence(_content(self._bodies.get(version.facet), set()))
            for items in (
                *(edge.items for edge in read.edges),
                *(some for _, some in read.datasets),
            ):
                for item in items:
                    found.setdefault(repr(sorted(item.items(), key=str)), item)
        return list(found.values())[:VERSIONS]


def _content(body: bytes | None, without: set[str]) -> dict[str, Any]:
    """The content of a facet, without some members; of one that is too large the start of its text.

    Members with a leading underscore say who wrote the facet, and by which schema. Credentials were
    masked when it came in, unless by a Headwater that did not know their kind yet.
    """
    if body is not None and len(body) > LARGEST:
        return {"start": redact(body[:LARGEST].decode(errors="replace")) + "…"}
    value = clean_value(msgspec.json.decode(body)) if body else None
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if k not in without and not k.startswith("_")}
