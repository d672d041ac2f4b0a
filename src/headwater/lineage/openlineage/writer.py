"""Writes the lineage of a job as an OpenLineage event: the only place that knows the facets.

A `Writer` makes an event of the values in `headwater.lineage.model`; `encode` gives its bytes. Free
text (SQL, errors, problems, evidence, addresses) is masked here, whatever the producer did before.

An event that is larger than the limit is trimmed in the order of `_TRIMS` until it fits, which
`headwater_trimmed` reports.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from headwater.lineage.naming import redact
from headwater.lineage.schema import write_fields
from headwater.lineage.secrets import clean, clean_value, holds_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from headwater.lineage.model import (
        Catalog,
        ColumnLineage,
        ColumnSource,
        Dataset,
        Edge,
        End,
        Evidence,
        Failure,
        Job,
        Lineage,
        Owner,
        Run,
        RunRef,
        SourceCode,
        Tag,
        Transformation,
    )
    from headwater.lineage.naming import DatasetName
    from headwater.lineage.openlineage.events import EventType

__all__ = ["MAX_BY", "MAX_BYTES", "Writer", "client_event", "encode", "facet", "head", "stamp"]

MAX_BYTES = 1_000_000
MAX_SQL = 100_000
MAX_PROBLEMS = 20
MAX_PROBLEM = 500
MAX_BY = 256
TRIMMED_TEXT = 20_000
TRIMMED_DATASETS = 100

_EVENT_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"
_FACET_SCHEMA = "https://openlineage.io/spec/facets/"
_OWN_SCHEMA = "urn:headwater:facets:1-0-0:"
# By facet name; `tags` and `documentation` differ by what they describe. A test compares them with
# the versions that the installed openlineage-python has.
_SCHEMAS = {
    "catalog": "1-1-0/CatalogDatasetFacet",
    "columnLineage": "1-2-0/ColumnLineageDatasetFacet",
    "dataSource": "1-0-1/DatasourceDatasetFacet",
    "datasetType": "1-0-1/DatasetTypeDatasetFacet",
    "documentation.dataset": "1-1-0/DocumentationDatasetFacet",
    "documentation.job": "1-1-0/DocumentationJobFacet",
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "jobType": "2-0-4/JobTypeJobFacet",
    "lifecycleStateChange": "1-0-1/LifecycleStateChangeDatasetFacet",
    "lineage": "1-0-0/LineageFacet.json#/$defs/LineageJobFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
    "ownership": "1-0-1/OwnershipJobFacet",
    "parent": "1-2-0/ParentRunFacet",
    "processing_engine": "1-1-1/ProcessingEngineRunFacet",
    "schema": "1-2-0/SchemaDatasetFacet",
    "sourceCodeLocation": "1-1-0/SourceCodeLocationJobFacet",
    "sql": "1-1-0/SQLJobFacet",
    "storage": "1-0-1/StorageDatasetFacet",
    "symlinks": "1-0-1/SymlinksDatasetFacet",
    "tags.job": "1-0-0/TagsJobFacet",
    "tags.run": "1-0-0/TagsRunFacet",
    "version": "1-0-1/DatasetVersionDatasetFacet",
}
_URI = re.compile(r"^[a-z][a-z0-9+.\-]*:[^\s<>\"{}|\\^`]+$", re.IGNORECASE)
_encoder = msgspec.json.Encoder(order="sorted")

Facets = dict[str, dict[str, Any]]


def facet(producer: str, name: str, /, **fields: Any) -> dict[str, Any]:
    """The content of a facet with its producer and schema; fields that are None are left out."""
    known = {key: value for key, value in fields.items() if value is not None}
    return {"_producer": producer, "_schemaURL": _schema_url(name), **known}


def _schema_url(name: str) -> str:
    if name.startswith("headwater_"):
        return _OWN_SCHEMA + name
    path = _SCHEMAS[name]
    if "#" not in path:
        path = f"{path}.json#/$defs/{path.partition('/')[2]}"
    return _FACET_SCHEMA + path


def head(producer: str, kind: str, time: datetime) -> dict[str, Any]:
    """What every event begins with; `kind` is `RunEvent`, `JobEvent` or `DatasetEvent`."""
    return {"eventTime": stamp(time), "producer": producer, "schemaURL": _EVENT_SCHEMA + kind}


def stamp(time: datetime) -> str:
    """A time as RFC 3339 text in UTC, always in microseconds, so that texts sort as times do."""
    if time.tzinfo is None:
        raise ValueError("the time of an event needs a time zone")
    return time.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Writer:
    """Writes the events of one producer; `disabled` are names of facets to leave out."""

    def __init__(self, producer: str, disabled: Collection[str] = ()) -> None:
        self.producer = producer
        self.disabled = frozenset(disabled)

    def run_event(
        self,
        event_type: EventType,
        time: datetime,
        job: Job,
        run: Run,
        lineage: Lineage,
        *,
        end: End | None = None,
        failure: Failure | None = None,
    ) -> dict[str, Any]:
        """The event of a run, as plain values: equal arguments give equal values."""
        return {
            "eventType": event_type.value,
            **head(self.producer, "RunEvent", time),
            "run": {"runId": run.id, "facets": self._run_facets(run, lineage, end, failure)},
            **self._body(job, lineage),
        }

    def job_event(self, time: datetime, job: Job, lineage: Lineage) -> dict[str, Any]:
        """The event of a job whose runs another producer reports."""
        return {**head(self.producer, "JobEvent", time), **self._body(job, lineage)}

    def end_facet(self, end: End) -> dict[str, Any]:
        """The `headwater_end` run facet."""
        by = end.by[:MAX_BY] or None
        return self._facet("headwater_end", reason=end.reason, inferred=end.inferred, by=by)

    def _body(self, job: Job, lineage: Lineage) -> dict[str, Any]:
        facets = self._job_facets(job, lineage)
        return {
            "job": {"namespace": job.namespace, "name": job.name, "facets": facets},
            "inputs": [self._input(item) for item in lineage.inputs],
            "outputs": [self._output(item) for item in lineage.outputs if item.placed],
        }

    def _facet(self, name: str, /, **fields: Any) -> dict[str, Any]:
        return facet(self.producer, name, **fields)

    def _wanted(self, facets: Mapping[str, dict[str, Any] | None]) -> Facets:
        return {
            name: content
            for name, content in facets.items()
            if content is not None and name not in self.disabled
        }

    # Runs

    def _run_facets(
        self, run: Run, lineage: Lineage, end: End | None, failure: Failure | None
    ) -> Facets:
        engine, above = run.engine, run.ancestors
        found: dict[str, dict[str, Any] | None] = {
            "parent": self._facet("parent", **_ref(above.parent), root=_ref(above.root))
            if above
            else None,
            "processing_engine": self._facet(
                "processing_engine",
                name=engine.name,
                version=engine.version,
                openlineageAdapterVersion=engine.adapter_version,
            )
            if engine
            else None,
            "tags": self._tags("tags.run", run.tags),
            "headwater_problems": self._problems(lineage.problems),
            "headwater_end": self.end_facet(end) if end else None,
            "errorMessage": self._failure(failure) if failure else None,
        }
        for name, content in run.facets.items():
            found[name] = self._facet(name, **clean_value(content))
        return self._wanted(found)

    def _problems(self, problems: tuple[str, ...]) -> dict[str, Any] | None:
        texts = [redact(text)[:MAX_PROBLEM] for text in problems[:MAX_PROBLEMS]]
        return self._facet("headwater_problems", problems=texts) if texts else None

    def _failure(self, failure: Failure) -> dict[str, Any]:
        return self._facet(
            "errorMessage",
            message=redact(failure.message),
            programmingLanguage=failure.language or None,
            stackTrace=redact(failure.stack_trace) or None,
        )

    # Jobs

    def _job_facets(self, job: Job, lineage: Lineage) -> Facets:
        named = job.part_of
        return self._wanted(
            {
                "jobType": self._job_type(job) if job.processing else None,
                "documentation": self._facet(
                    "documentation.job", description=redact(job.documentation)
                )
                if job.documentation
                else None,
                "ownership": self._owners(job.owners),
                "tags": self._tags("tags.job", job.tags),
                "sourceCodeLocation": self._source_code(job.source_code)
                if job.source_code
                else None,
                "headwater_partOf": self._facet("headwater_partOf", **named._asdict())
                if named
                else None,
                "headwater_deleted": self._facet("headwater_deleted", at=stamp(job.deleted))
                if job.deleted
                else None,
                "sql": self._sql(lineage),
                "lineage": self._explicit(lineage),
                "headwater_evidence": self._evidence(lineage),
            }
        )

    def _job_type(self, job: Job) -> dict[str, Any]:
        pattern = None
        if job.heartbeat:
            pattern = {
                "eventTrigger": "PERIODIC",
                "eventContentMode": "COMPLETE_SNAPSHOT",
                "windowDuration": max(1, round(job.heartbeat)),
            }
        return self._facet(
            "jobType",
            processingType=job.processing,
            integration=job.integration,
            jobType=job.type or None,
            emissionPattern=pattern,
        )

    def _owners(self, owners: tuple[Owner, ...]) -> dict[str, Any] | None:
        items = [_known(name=owner.name, type=owner.type) for owner in owners]
        return self._facet("ownership", owners=items) if items else None

    def _tags(self, kind: str, tags: tuple[Tag, ...]) -> dict[str, Any] | None:
        items = [{"key": tag.key, "value": tag.value, **_known(source=tag.source)} for tag in tags]
        return self._facet(kind, tags=items) if items else None

    def _source_code(self, code: SourceCode) -> dict[str, Any]:
        return self._facet(
            "sourceCodeLocation",
            type=code.type,
            url=redact(code.url),
            **_known(
                repoUrl=redact(code.repo_url),
                path=code.path,
                version=code.version,
                branch=code.branch,
                tag=code.tag,
            ),
        )

    def _sql(self, lineage: Lineage) -> dict[str, Any] | None:
        if not lineage.sql:
            return None
        text = redact(lineage.sql)[:MAX_SQL]
        return self._facet("sql", query=text, dialect=lineage.dialect or None)

    def _explicit(self, lineage: Lineage) -> dict[str, Any] | None:
        """The `lineage` facet: which inputs feed which output, where that is known by pairs."""
        if lineage.edges is None or not lineage.outputs:
            return None
        entries = [_entry(output, lineage.edges) for output in lineage.outputs if output.placed]
        return self._facet("lineage", entries=entries)

    def _evidence(self, lineage: Lineage) -> dict[str, Any] | None:
        """What the edges and datasets are known from; with pairs, also which are known from nothing."""
        written = (*lineage.inputs, *(item for item in lineage.outputs if item.placed))
        shown = [item for item in written if item.evidence or lineage.edges is not None]
        if not shown:
            return None
        edges = [
            {
                "input": edge.input._asdict(),
                "output": edge.output._asdict(),
                "columns": edge.columns_known,
                **({"named": list(edge.named)} if edge.named else {}),
                "evidence": _evidence(edge.evidence),
            }
            for edge in lineage.edges or ()
        ]
        datasets = [{**item.id._asdict(), "evidence": _evidence(item.evidence)} for item in shown]
        return self._facet("headwater_evidence", edges=edges, datasets=datasets)

    # Datasets

    def _input(self, item: Dataset) -> dict[str, Any]:
        facets = self._wanted(self._dataset(item))
        return self._use(item, facets, "inputFacets", self._statistics("inputStatistics", item))

    def _output(self, item: Dataset) -> dict[str, Any]:
        facets = self._dataset(item)
        if item.columns is not None and "columnLineage" not in self.disabled:
            facets["columnLineage"] = self._columns(item.columns)
            if item.columns.unknown:
                facets["headwater_columns"] = self._facet(
                    "headwater_columns", unknown=list(item.columns.unknown)
                )
        own = self._statistics("outputStatistics", item) or {}
        if (
            item.change is not None
            and item.change.partial
            and "headwater_overwrite" not in self.disabled
        ):
            # Of this write, not of the dataset: the next one may replace it as a whole.
            own["headwater_overwrite"] = self._facet("headwater_overwrite", partial=True)
        return self._use(item, self._wanted(facets), "outputFacets", own)

    @staticmethod
    def _use(item: Dataset, facets: Facets, key: str, own: Facets | None) -> dict[str, Any]:
        parts = (("facets", facets), (key, own))
        return {**item.id._asdict(), **{name: part for name, part in parts if part}}

    def _statistics(self, name: str, item: Dataset) -> Facets | None:
        count = item.statistics
        if count is None or name in self.disabled:
            return None
        sizes = {"rowCount": count.rows, "size": count.size, "fileCount": count.files}
        return {name: self._facet(name, **sizes)}

    def _dataset(self, item: Dataset) -> dict[str, dict[str, Any] | None]:
        uri = redact(item.source) or _address(item.namespace)
        found: dict[str, dict[str, Any] | None] = {
            "dataSource": self._facet("dataSource", name=item.namespace, uri=uri)
        }
        if item.type:
            found["datasetType"] = self._facet(
                "datasetType", datasetType=item.type, subType=item.sub_type or None
            )
        if item.schema is not None:
            found["schema"] = self._facet("schema", fields=write_fields(item.schema))
            if item.schema_source is not None:
                source = msgspec.to_builtins(item.schema_source)
                found["headwater_schemaSource"] = self._facet("headwater_schemaSource", **source)
        if item.version:
            found["version"] = self._facet("version", datasetVersion=item.version)
        if item.symlinks:
            links = [msgspec.to_builtins(link) for link in item.symlinks]
            found["symlinks"] = self._facet("symlinks", identifiers=links)
        if item.catalog is not None:
            found["catalog"] = self._catalog(item.catalog)
        if item.storage_layer:
            found["storage"] = self._facet(
                "storage", storageLayer=item.storage_layer, fileFormat=item.file_format or None
            )
        if item.change is not None:
            before = item.change.previous
            found["lifecycleStateChange"] = self._facet(
                "lifecycleStateChange",
                lifecycleStateChange=item.change.change,
                previousIdentifier=before._asdict() if before else None,
            )
        if item.cluster_id:
            found["headwater_cluster"] = self._facet(
                "headwater_cluster", clusterId=item.cluster_id, bootstrap=list(item.bootstrap)
            )
        return found

    def _catalog(self, catalog: Catalog) -> dict[str, Any]:
        return self._facet(
            "catalog",
            framework=catalog.framework,
            type=catalog.type,
            name=catalog.name,
            metadataUri=redact(catalog.metadata_uri) or None,
            warehouseUri=redact(catalog.warehouse_uri) or None,
            source=catalog.source or None,
        )

    def _columns(self, columns: ColumnLineage) -> dict[str, Any]:
        fields = {
            name: {"inputFields": [_column(source) for source in sources]}
            for name, sources in columns.fields.items()
        }
        rows = [_column(source) for source in columns.dataset]
        return self._facet("columnLineage", fields=fields, dataset=rows or None)


def _known(**fields: str) -> dict[str, str]:
    return {key: value for key, value in fields.items() if value}


def _ref(run: RunRef) -> dict[str, Any]:
    return {"run": {"runId": run.run_id}, "job": {"namespace": run.namespace, "name": run.name}}


def _evidence(items: Iterable[Evidence]) -> list[dict[str, Any]]:
    return [
        {"source": item.source, "detail": redact(item.detail), "observed": item.observed}
        for item in items
    ]


def _address(namespace: str) -> str | None:
    """A namespace that is an address too; `spanner://project:instance` only looks like one."""
    try:
        _ = urlsplit(namespace).port
    except ValueError:
        return None
    return namespace if _URI.match(namespace) else None


def _column(source: ColumnSource) -> dict[str, Any]:
    steps = [_step(step) for step in source.transformations]
    return {**source.dataset._asdict(), "field": source.field, "transformations": steps}


def _step(step: Transformation) -> dict[str, Any]:
    found: dict[str, Any] = {"type": step.type or "DIRECT"}
    for key in ("subtype", "description", "masking"):
        value = getattr(step, key)
        if value is not None:
            found[key] = value
    return found


def _entry(output: Dataset, edges: Iterable[Edge]) -> dict[str, Any]:
    inputs = [_dataset_input(edge.input) for edge in edges if edge.output == output.id]
    if output.columns:  # what decides about rows belongs to the output as a whole
        inputs += [_column_input(source) for source in output.columns.dataset]
    found: dict[str, Any] = {**output.id._asdict(), "type": "DATASET", "inputs": inputs}
    columns = output.columns.fields if output.columns else {}
    fields = {
        name: {"inputs": [_column_input(source) for source in sources]}
        for name, sources in columns.items()
    }
    return {**found, "fields": fields} if fields else found


def _column_input(source: ColumnSource) -> dict[str, Any]:
    steps = [_step(step) for step in source.transformations]
    return {**_dataset_input(source.dataset), "field": source.field, "transformations": steps}


def _dataset_input(name: DatasetName) -> dict[str, Any]:
    return {**name._asdict(), "type": "DATASET"}


# Bytes


def encode(event: Mapping[str, Any], max_bytes: int = MAX_BYTES) -> bytes:
    """The bytes of an event, with sorted keys; trimmed where it is larger than the limit."""
    raw = _encoder.encode(event)
    if holds_secret(raw):  # in a name, a tag or a facet of the user's
        raw = clean(raw)
    if len(raw) <= max_bytes:
        return raw
    left = msgspec.json.decode(raw)
    done: list[str] = []
    for part, trim in _TRIMS:
        trim(left)
        done.append(part)
        holder = left.get("run") or left["job"]
        trimmed = facet(left["producer"], "headwater_trimmed", parts=list(done))
        holder.setdefault("facets", {})["headwater_trimmed"] = trimmed
        raw = _encoder.encode(left)
        if len(raw) <= max_bytes:
            break
    return raw


def _cut_errors(event: dict[str, Any]) -> None:
    error = event.get("run", {}).get("facets", {}).get("errorMessage", {})
    for key in ("stackTrace", "message"):
        if len(error.get(key, "")) > TRIMMED_TEXT:
            error[key] = error[key][:TRIMMED_TEXT]


def _cut_sql(event: dict[str, Any]) -> None:
    sql = event["job"]["facets"].get("sql", {})
    if len(sql.get("query", "")) > TRIMMED_TEXT:
        sql["query"] = sql["query"][:TRIMMED_TEXT]


def _entries(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of the `lineage` facet, which has the columns once more."""
    entries: list[dict[str, Any]] = event["job"]["facets"].get("lineage", {}).get("entries", [])
    return entries


def _drop_indirect(event: dict[str, Any]) -> None:
    lists = []
    for output in event["outputs"]:
        if columns := output.get("facets", {}).get("columnLineage"):
            columns.pop("dataset", None)
            lists += [entry["inputFields"] for entry in columns["fields"].values()]
    for entry in _entries(event):
        entry["inputs"] = [one for one in entry["inputs"] if "field" not in one]
        lists += [field["inputs"] for field in entry.get("fields", {}).values()]
    for sources in lists:
        for one in sources:
            steps = one.get("transformations", ())
            one["transformations"] = [s for s in steps if s.get("type") != "INDIRECT"]
        sources[:] = [one for one in sources if one["transformations"]]


def _drop_columns(event: dict[str, Any]) -> None:
    for output in event["outputs"]:
        output.get("facets", {}).pop("columnLineage", None)
    for entry in _entries(event):
        entry.pop("fields", None)


def _drop_pairs(event: dict[str, Any]) -> None:
    for name in ("lineage", "headwater_evidence"):
        event["job"]["facets"].pop(name, None)


def _dropper(side: str, name: str) -> Callable[[dict[str, Any]], None]:
    def drop(event: dict[str, Any]) -> None:
        for item in event[side]:
            item.get("facets", {}).pop(name, None)

    return drop


def _drop_datasets(event: dict[str, Any]) -> None:
    for side in ("inputs", "outputs"):
        event[side] = event[side][:TRIMMED_DATASETS]


_TRIMS: tuple[tuple[str, Callable[[dict[str, Any]], None]], ...] = (
    ("stack traces", _cut_errors),
    ("sql", _cut_sql),
    ("indirect columns", _drop_indirect),
    ("schemas of inputs", _dropper("inputs", "schema")),
    ("columns", _drop_columns),
    ("schemas of outputs", _dropper("outputs", "schema")),
    ("pairs", _drop_pairs),
    ("datasets", _drop_datasets),
)


def client_event(event: Mapping[str, Any]) -> Any:
    """A run event as openlineage-python's own class, for transports that take nothing else.

    An event without a run or a job stays a mapping.
    """
    from openlineage.client import event_v2

    run, job = event.get("run"), event.get("job")
    if not run or not job:
        return event

    def listed(kind: Any, side: str, own: str) -> list[Any]:
        return [
            kind(d["namespace"], d["name"], facets=d.get("facets") or {}, **{own: d.get(own) or {}})
            for d in event.get(side) or []
        ]

    return event_v2.RunEvent(
        eventTime=event["eventTime"],
        eventType=event_v2.RunState(event["eventType"]),
        producer=event["producer"],
        run=event_v2.Run(run["runId"], run.get("facets") or {}),
        job=event_v2.Job(job["namespace"], job["name"], job.get("facets") or {}),
        inputs=listed(event_v2.InputDataset, "inputs", "inputFacets"),
        outputs=listed(event_v2.OutputDataset, "outputs", "outputFacets"),
    )
