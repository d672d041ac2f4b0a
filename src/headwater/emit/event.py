"""OpenLineage events as bytes: facets with their schemas, and no event above a stated size.

An event that is too large is trimmed in this order until it fits, and says so in
`headwater_trimmed`: stack traces, SQL text, indirect column inputs, schemas of inputs, columns,
schemas of outputs, datasets beyond the first hundred of a side.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

import headwater

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headwater.lineage.events import EventType

PRODUCER = f"urn:headwater:emit:{headwater.__version__}"
FACET_SCHEMAS = "urn:headwater:facets:1-0-0:"
SCHEMA_URL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
MOST_BYTES = 1_000_000
MOST_TEXT = 20_000
MOST_DATASETS = 100

_CLASSES = {
    "catalog": "catalog_dataset.CatalogDatasetFacet",
    "columnLineage": "column_lineage_dataset.ColumnLineageDatasetFacet",
    "dataSource": "datasource_dataset.DatasourceDatasetFacet",
    "datasetType": "dataset_type_dataset.DatasetTypeDatasetFacet",
    "errorMessage": "error_message_run.ErrorMessageRunFacet",
    "inputStatistics": "input_statistics_input_dataset.InputStatisticsInputDatasetFacet",
    "jobType": "job_type_job.JobTypeJobFacet",
    "lifecycleStateChange": "lifecycle_state_change_dataset.LifecycleStateChangeDatasetFacet",
    "outputStatistics": "output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet",
    "ownership": "ownership_job.OwnershipJobFacet",
    "parent": "parent_run.ParentRunFacet",
    "processing_engine": "processing_engine_run.ProcessingEngineRunFacet",
    "schema": "schema_dataset.SchemaDatasetFacet",
    "sourceCodeLocation": "source_code_location_job.SourceCodeLocationJobFacet",
    "sql": "sql_job.SQLJobFacet",
    "storage": "storage_dataset.StorageDatasetFacet",
    "symlinks": "symlinks_dataset.SymlinksDatasetFacet",
    "tags.job": "tags_job.TagsJobFacet",
    "tags.run": "tags_run.TagsRunFacet",
    "version": "dataset_version_dataset.DatasetVersionDatasetFacet",
}

Facets = dict[str, dict[str, Any]]
_encoder = msgspec.json.Encoder(order="sorted")


@cache
def _schema_of(name: str) -> str:
    if name.startswith("headwater_"):
        return f"{FACET_SCHEMAS}{name}"
    from importlib import import_module

    module, kind = _CLASSES[name].split(".")
    known = getattr(import_module(f"openlineage.client.generated.{module}"), kind)
    found: str = known._get_schema()  # noqa: SLF001
    return found


def facet(name: str, /, **fields: Any) -> dict[str, Any]:
    """A facet's content with its producer and the schema it follows; None fields are left out."""
    known = {key: value for key, value in fields.items() if value is not None}
    return {"_producer": PRODUCER, "_schemaURL": _schema_of(name), **known}


def dataset(
    namespace: str,
    name: str,
    facets: Facets | None = None,
    *,
    inputs: Facets | None = None,
    outputs: Facets | None = None,
) -> dict[str, Any]:
    """A dataset of an event; `inputs` and `outputs` are facets of this one use of it."""
    found: dict[str, Any] = {"namespace": namespace, "name": name}
    parts = (("facets", facets), ("inputFacets", inputs), ("outputFacets", outputs))
    return {**found, **{key: value for key, value in parts if value}}


def now() -> float:
    """The time of an event that happens now, in seconds since 1970."""
    return time.time()


def stamp(moment: float) -> str:
    """A moment as an event's text, in microseconds, so that its order survives."""
    text = datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def body(
    event_type: EventType,
    *,
    run_id: str,
    namespace: str,
    name: str,
    moment: float,
    run_facets: Mapping[str, Any] | None = None,
    job_facets: Mapping[str, Any] | None = None,
    inputs: Iterable[Mapping[str, Any]] = (),
    outputs: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A run event as a plain value."""
    return {
        "eventType": event_type.value,
        "eventTime": stamp(moment),
        "producer": PRODUCER,
        "schemaURL": SCHEMA_URL,
        "run": {"runId": run_id, "facets": dict(run_facets or {})},
        "job": {"namespace": namespace, "name": name, "facets": dict(job_facets or {})},
        "inputs": [dict(item) for item in inputs],
        "outputs": [dict(item) for item in outputs],
    }


def encode(event: Mapping[str, Any], most: int = MOST_BYTES) -> bytes:
    """The event's bytes, trimmed where it is too large."""
    raw = _encoder.encode(event)
    if len(raw) <= most:
        return raw
    left = msgspec.json.decode(raw)
    done: list[str] = []
    for what, trim in _TRIMS:
        trim(left)
        done.append(what)
        left["run"]["facets"]["headwater_trimmed"] = facet("headwater_trimmed", parts=list(done))
        raw = _encoder.encode(left)
        if len(raw) <= most:
            break
    return raw


def _cut_traces(event: dict[str, Any]) -> None:
    error = event["run"]["facets"].get("errorMessage", {})
    for key in ("stackTrace", "message"):
        if len(error.get(key, "")) > MOST_TEXT:
            error[key] = error[key][:MOST_TEXT]


def _cut_sql(event: dict[str, Any]) -> None:
    sql = event["job"]["facets"].get("sql", {})
    if len(sql.get("query", "")) > MOST_TEXT:
        sql["query"] = sql["query"][:MOST_TEXT]


def _drop_indirect(event: dict[str, Any]) -> None:
    for output in event["outputs"]:
        columns = output.get("facets", {}).get("columnLineage")
        if not columns:
            continue
        columns.pop("dataset", None)
        for entry in columns["fields"].values():
            for item in entry["inputFields"]:
                kept = [t for t in item.get("transformations", ()) if t.get("type") != "INDIRECT"]
                item["transformations"] = kept
            entry["inputFields"] = [i for i in entry["inputFields"] if i["transformations"]]


def _dropper(side: str, name: str) -> Callable[[dict[str, Any]], None]:
    def drop(event: dict[str, Any]) -> None:
        for item in event[side]:
            item.get("facets", {}).pop(name, None)

    return drop


def _fewer(event: dict[str, Any]) -> None:
    for side in ("inputs", "outputs"):
        event[side] = event[side][:MOST_DATASETS]


_TRIMS: tuple[tuple[str, Callable[[dict[str, Any]], None]], ...] = (
    ("stack traces", _cut_traces),
    ("sql", _cut_sql),
    ("indirect columns", _drop_indirect),
    ("schemas of inputs", _dropper("inputs", "schema")),
    ("columns", _dropper("outputs", "columnLineage")),
    ("schemas of outputs", _dropper("outputs", "schema")),
    ("datasets", _fewer),
)
