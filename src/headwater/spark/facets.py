"""Lineage as OpenLineage's datasets and facets."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headwater
from headwater.emit import event, once
from headwater.emit.event import facet
from headwater.emit.life import job_type
from headwater.lineage.naming import redact
from headwater.lineage.schema.facet import write_fields
from headwater.spark import renames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.naming import DatasetName
    from headwater.spark.config import Settings
    from headwater.spark.model import ColumnLineage, ColumnSource, Dataset, PlanLineage

MOST_SQL = 100_000


def inputs(
    lineage: PlanLineage, settings: Settings, counts: Mapping[Any, Mapping[str, int]] | None = None
) -> list[dict[str, Any]]:
    """The datasets read, each with what is known of it."""
    found = []
    for one in lineage.inputs:
        used = _counted("inputStatistics", (counts or {}).get(one.id), settings)
        named = renames.told(one, settings.renames)
        facets = _dataset(named, settings)
        found.append(event.dataset(named.namespace, named.name, facets, inputs=used))
    return found


def outputs(
    lineage: PlanLineage, settings: Settings, counts: Mapping[Any, Mapping[str, int]] | None = None
) -> list[dict[str, Any]]:
    """The datasets written, with their columns' sources."""
    found = []
    other = renames.names(lineage, settings.renames)
    for one in lineage.outputs:
        if not one.placed:
            # It would be another dataset than the one its next reader names.
            continue
        named = renames.told(one, settings.renames)
        facets = _dataset(named, settings)
        columns = lineage.columns.get(one.id)
        if columns is not None and "columnLineage" not in settings.disabled_facets:
            facets["columnLineage"] = _columns(columns, other)
            if columns.unknown:
                facets["headwater_columns"] = facet(
                    "headwater_columns", unknown=list(columns.unknown)
                )
        made = _counted("outputStatistics", (counts or {}).get(one.id), settings)
        found.append(event.dataset(named.namespace, named.name, facets, outputs=made))
    return found


def _counted(
    name: str, count: Mapping[str, int] | None, settings: Settings
) -> dict[str, Any] | None:
    if not count or name in settings.disabled_facets:
        return None
    return {name: facet(name, **count)}


def _dataset(one: Dataset, settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if one.schema is not None:
        found["schema"] = facet("schema", fields=write_fields(one.schema))
    if one.symlinks:
        links = [{"namespace": s.namespace, "name": s.name, "type": s.type} for s in one.symlinks]
        found["symlinks"] = facet("symlinks", identifiers=links)
    if one.catalog is not None:
        catalog = one.catalog
        found["catalog"] = facet(
            "catalog",
            framework=catalog.framework,
            type=catalog.type,
            name=catalog.name,
            metadataUri=redact(catalog.metadata_uri) or None,
            warehouseUri=redact(catalog.warehouse_uri) or None,
            source=catalog.source or None,
        )
    found["dataSource"] = facet(
        "dataSource", name=one.namespace, uri=redact(one.source or one.namespace)
    )
    if one.type:
        found["datasetType"] = facet(
            "datasetType", datasetType=one.type, subType=one.sub_type or None
        )
    if one.storage_layer:
        found["storage"] = facet(
            "storage", storageLayer=one.storage_layer, fileFormat=one.file_format or None
        )
    if one.version:
        found["version"] = facet("version", datasetVersion=one.version)
    if one.change is not None:
        before = one.change.previous
        found["lifecycleStateChange"] = facet(
            "lifecycleStateChange",
            lifecycleStateChange=one.change.change,
            previousIdentifier=before._asdict() if before else None,
        )
    if one.cluster_id:
        found["headwater_cluster"] = facet(
            "headwater_cluster", clusterId=one.cluster_id, bootstrap=list(one.bootstrap)
        )
    if one.evidence:
        items = [
            {"source": e.source, "detail": redact(e.detail), "observed": e.observed}
            for e in one.evidence
        ]
        found["headwater_evidence"] = facet("headwater_dataset_evidence", evidence=items)
    return {key: value for key, value in found.items() if key not in settings.disabled_facets}


def _columns(columns: ColumnLineage, other: Mapping[DatasetName, DatasetName]) -> dict[str, Any]:
    fields = {
        name: {"inputFields": [_source(source, other) for source in sources]}
        for name, sources in columns.fields.items()
    }
    rows = [_source(source, other) for source in columns.dataset]
    return facet("columnLineage", fields=fields, dataset=rows or None)


def _source(source: ColumnSource, other: Mapping[DatasetName, DatasetName]) -> dict[str, Any]:
    steps = [
        {
            "type": step.type or "DIRECT",
            "subtype": step.subtype or "",
            "description": step.description or "",
            "masking": bool(step.masking),
        }
        for step in source.transformations
    ]
    named = other.get(source.dataset, source.dataset)
    place = {"namespace": named.namespace, "name": named.name}
    return {**place, "field": source.field, "transformations": steps}


def problems(lineage: PlanLineage) -> dict[str, Any]:
    """What could not be told of a plan, in words."""
    told = [redact(text)[:500] for text in lineage.problems[:20]]
    return {"headwater_problems": facet("headwater_problems", problems=told)} if told else {}


def sql(lineage: PlanLineage) -> dict[str, Any]:
    """The `sql` facet of a job, where there is a text."""
    if not lineage.sql:
        return {}
    text = redact(lineage.sql)[:MOST_SQL]
    return {"sql": facet("sql", query=text, dialect="spark")}


def tags(pairs: tuple[tuple[str, str], ...], place: str) -> dict[str, Any]:
    """The `tags` facet of a job or run."""
    found = [{"key": key, "value": value, "source": "CONFIG"} for key, value in pairs]
    return {"tags": facet(f"tags.{place}", tags=found)} if found else {}


def owners(pairs: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The `ownership` facet of a job."""
    found = [{"name": name, "type": kind} for kind, name in pairs]
    return {"ownership": facet("ownership", owners=found)} if found else {}


def of_run(settings: Settings, conf: Mapping[str, str], version: str) -> dict[str, Any]:
    """What every run of an application says of itself."""
    engine = facet(
        "processing_engine",
        name="spark",
        version=version,
        openlineageAdapterVersion=headwater.__version__,
    )
    found = {
        "processing_engine": engine,
        **properties(conf, settings),
        **tags(settings.run_tags, "run"),
    }
    return {key: value for key, value in found.items() if key not in settings.disabled_facets}


def of_job(settings: Settings, processing: str, kind: str) -> dict[str, Any]:
    """What a job says of itself."""
    found = {
        "jobType": job_type(processing, "SPARK", kind, settings.heartbeat),
        **code_location(),
        **owners(settings.owners),
        **tags(settings.job_tags, "job"),
    }
    return {key: value for key, value in found.items() if key not in settings.disabled_facets}


def properties(conf: Mapping[str, str], settings: Settings) -> dict[str, Any]:
    """The facet of Spark properties that are on the list of those one may show."""
    # What a key is called may be all that shows its value to be a secret.
    shown = {
        key: redact(f"{key}={conf[key]}").removeprefix(f"{key}=")
        for key in settings.properties
        if key in conf
    }
    return {"headwater_spark": facet("headwater_spark", properties=shown)} if shown else {}


def code_location() -> dict[str, Any]:
    """Where the program comes from, when it lies in a git checkout with a remote."""
    return _code_location(_program()) or {}


def _program() -> str:
    main = getattr(sys.modules.get("__main__"), "__file__", None) or sys.argv[0]
    return str(Path(main).resolve()) if main else ""


@cache
@once.quiet("finding the program's git checkout")
def _code_location(program: str) -> dict[str, Any]:
    from openlineage.client import git

    if not program or not Path(program).is_file():
        return {}
    found = git._find_git_dir(str(Path(program).parent))  # noqa: SLF001
    url = git.get_git_repo_url(git_dir=found) if found else None
    if found is None or not url:
        return {}
    root = next((p for p in Path(program).parents if (p / ".git").exists()), None)
    return {
        "sourceCodeLocation": facet(
            "sourceCodeLocation",
            type="git",
            url=redact(url),
            repoUrl=redact(url),
            path=str(Path(program).relative_to(root)) if root else None,
            version=git.get_git_version(found),
            branch=git.get_git_branch(found),
            tag=git.get_git_tag(found),
        )
    }
