"""Facets of a connector's events: OpenLineage's own, and ours under `headwater_`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attr
from openlineage.client import facet_v2 as ol
from openlineage.client.generated import lineage as explicit
from openlineage.client.generated.base import DatasetFacet, JobFacet, RunFacet

from headwater import __version__
from headwater.lineage.schema import write_fields

from .edge_facets import column_lineage, dataset_evidence, edge_evidence, entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model import Dataset, Derived, Edge, Failure, Status

PRODUCER = f"urn:headwater:connect:{__version__}"
SCHEMAS = "urn:headwater:facets:1-0-0:"
_URI = re.compile(r"^[a-z][a-z0-9+.\-]*:[^\s<>\"{}|\\^`]+$", re.IGNORECASE)


@attr.define
class ConnectRunFacet(RunFacet):
    """`headwater_connect`: the connector behind a run, its tasks and what is not known of it."""

    connectorClass: str  # noqa: N815
    connectorType: str | None = None  # noqa: N815
    connectorVersion: str | None = None  # noqa: N815
    workerId: str | None = None  # noqa: N815
    state: str | None = None
    tasks: list[dict[str, Any]] = attr.field(factory=list)
    transforms: list[dict[str, str]] = attr.field(factory=list)
    problems: list[str] = attr.field(factory=list)
    joined: str | None = None
    inferred: bool | None = None
    cluster: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMAS}headwater_connect"


@attr.define
class EvidenceJobFacet(JobFacet):
    """`headwater_evidence`: for every edge and dataset, what said so and whether it was seen."""

    edges: list[dict[str, Any]] = attr.field(factory=list)
    datasets: list[dict[str, Any]] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMAS}headwater_evidence"


@attr.define
class ClusterDatasetFacet(DatasetFacet):
    """`headwater_cluster`: which Kafka cluster a topic lives on."""

    clusterId: str  # noqa: N815
    bootstrap: list[str] = attr.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMAS}headwater_cluster"


def part_of(whole: Derived) -> dict[str, str]:
    """`headwater_partOf`: of which job another is a mere part."""
    return {
        "_producer": PRODUCER,
        "_schemaURL": f"{SCHEMAS}headwater_partOf",
        "namespace": whole.namespace,
        "name": whole.job_name,
    }


def job_facets(derived: Derived, heartbeat: int | None) -> dict[str, Any]:
    """The facets of the job."""
    pattern = None
    if heartbeat:
        pattern = ol.job_type_job.EmissionPattern("PERIODIC", "COMPLETE_SNAPSHOT", heartbeat)
    facets: dict[str, Any] = {
        "jobType": ol.job_type_job.JobTypeJobFacet(
            "STREAMING",
            "KAFKA_CONNECT",
            derived.family.upper().replace(" ", "_"),
            pattern,
            producer=PRODUCER,
        )
    }
    if derived.documentation:
        facets["documentation"] = ol.documentation_job.DocumentationJobFacet(
            derived.documentation, producer=PRODUCER
        )
    if derived.owners:
        owners = [ol.ownership_job.Owner(name, kind or None) for name, kind in derived.owners]
        facets["ownership"] = ol.ownership_job.OwnershipJobFacet(owners, producer=PRODUCER)
    if derived.tags:
        tags = [ol.tags_job.TagsJobFacetFields(k, v, "KAFKA_CONNECT") for k, v in derived.tags]
        facets["tags"] = ol.tags_job.TagsJobFacet(tags, producer=PRODUCER)
    if derived.sql:
        facets["sql"] = ol.sql_job.SQLJobFacet(derived.sql, producer=PRODUCER)
    if derived.outputs:
        entries: list[Any] = [entry(derived, output) for output in derived.outputs]
        facets["lineage"] = explicit.LineageJobFacet(entries, producer=PRODUCER)
    if derived.inputs or derived.outputs:
        facets["headwater_evidence"] = EvidenceJobFacet(
            [edge_evidence(edge) for edge in derived.edges],
            [dataset_evidence(dataset) for dataset in (*derived.inputs, *derived.outputs)],
            producer=PRODUCER,
        )
    return facets


def run_facets(
    derived: Derived, config: dict[str, str], status: Status | None, error: Failure | None,
    engine_version: str, inferred: bool, cluster: str = "",
) -> dict[str, Any]:  # fmt: skip
    """The facets of the run."""
    tasks = status.tasks if status else ()
    facets: dict[str, Any] = {
        "processing_engine": ol.processing_engine_run.ProcessingEngineRunFacet(
            engine_version or "unknown", "kafka-connect", __version__, producer=PRODUCER
        ),
        "headwater_connect": ConnectRunFacet(
            config.get("connector.class", ""),
            derived.role,
            (status.version or None) if status else None,
            (status.worker_id or None) if status else None,
            status.state if status else None,
            [_task(task.id, task.state, task.worker_id, task.version) for task in tasks],
            _transforms(config),
            list(derived.problems),
            derived.joined or None,
            inferred or None,
            cluster or None,
            producer=PRODUCER,
        ),
    }
    if error is not None:
        facets["errorMessage"] = ol.error_message_run.ErrorMessageRunFacet(
            error.message, "JAVA", error.stack_trace or None, producer=PRODUCER
        )
    return facets


def dataset_facets(dataset: Dataset, edges: Sequence[Edge] = ()) -> dict[str, Any]:
    """The facets of a dataset; `edges` are those into it."""
    facets: dict[str, Any] = {
        "dataSource": ol.datasource_dataset.DatasourceDatasetFacet(
            dataset.namespace, _uri(dataset.namespace), producer=PRODUCER
        )
    }
    if dataset.kind:
        facets["datasetType"] = ol.dataset_type_dataset.DatasetTypeDatasetFacet(
            dataset.kind, dataset.sub_kind or None, producer=PRODUCER
        )
    if dataset.schema is not None and dataset.schema.fields:
        facets["schema"] = ol.schema_dataset.SchemaDatasetFacet(
            [_field(field) for field in write_fields(dataset.schema)], producer=PRODUCER
        )
    if dataset.version:
        facets["version"] = ol.dataset_version_dataset.DatasetVersionDatasetFacet(
            dataset.version, producer=PRODUCER
        )
    if dataset.symlinks:
        links = [
            ol.symlinks_dataset.Identifier(link.namespace, link.name, link.type)
            for link in dataset.symlinks
        ]
        facets["symlinks"] = ol.symlinks_dataset.SymlinksDatasetFacet(links, producer=PRODUCER)
    if (catalog := dataset.catalog) is not None:
        facets["catalog"] = ol.catalog_dataset.CatalogDatasetFacet(
            catalog.framework, catalog.type, catalog.name, catalog.metadata_uri or None,
            catalog.warehouse_uri or None, "kafka-connect", None, producer=PRODUCER,
        )  # fmt: skip
    if dataset.cluster_id:
        facets["headwater_cluster"] = ClusterDatasetFacet(
            dataset.cluster_id, list(dataset.bootstraps), producer=PRODUCER
        )
    if columns := column_lineage(edges):
        facets["columnLineage"] = ol.column_lineage_dataset.ColumnLineageDatasetFacet(
            columns, producer=PRODUCER
        )
    return facets


def _uri(namespace: str) -> str | None:
    """A namespace that is an address too; `spanner://project:instance` only looks like one."""
    try:
        _ = urlsplit(namespace).port
    except ValueError:
        return None
    return namespace if _URI.match(namespace) else None


def _field(field: dict[str, Any]) -> Any:
    inner = [_field(item) for item in field.get("fields", ())]
    return ol.schema_dataset.SchemaDatasetFacetFields(
        field["name"], field.get("type"), field.get("description"), fields=inner or None
    )


def _task(number: int, state: str, worker: str, version: str) -> dict[str, Any]:
    task: dict[str, Any] = {"id": number, "state": state}
    if worker:
        task["workerId"] = worker
    if version:
        task["version"] = version
    return task


def _transforms(config: dict[str, str]) -> list[dict[str, str]]:
    aliases = [alias.strip() for alias in config.get("transforms", "").split(",")]
    return [
        {"alias": alias, "type": config.get(f"transforms.{alias}.type", "")}
        for alias in aliases[:64]
        if alias
    ]
