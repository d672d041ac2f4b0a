"""What an application's runs and jobs report besides their lineage, and the lineage as reported."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

import headwater
from headwater.emit import internal_errors
from headwater.lineage.model import Engine, Job, Owner, Run, SourceCode, Statistics, Tag
from headwater.lineage.secrets import redact
from headwater.spark import dataset_overrides

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.model import Dataset, DatasetName, Lineage
    from headwater.spark.driver.config import SparkSettings
    from headwater.spark.model import PlanLineage

    Counts = Mapping[DatasetName, Mapping[str, int]]

HISTORY = "spark.headwater.history.url"
"""The address of the history server that reads the application's event log."""


def lineage(
    plan: PlanLineage,
    settings: SparkSettings,
    read: Counts | None = None,
    written: Counts | None = None,
) -> Lineage:
    """The lineage of a plan by the names that the settings give, with what was counted."""

    def used(one: Dataset, counts: Counts | None) -> Dataset:
        count = (counts or {}).get(one.id)
        return replace(
            one,
            statistics=Statistics(count.get("rowCount"), count.get("size"), count.get("fileCount"))
            if count
            else None,
        )

    counted = replace(
        plan,
        inputs=tuple(used(one, read) for one in plan.inputs),
        outputs=tuple(used(one, written) for one in plan.outputs),
    )
    return dataset_overrides.renamed(counted, settings.renames)


def job(settings: SparkSettings, name: str, processing: str, kind: str) -> Job:
    """A job of the application."""
    return Job(
        settings.namespace,
        name,
        processing,
        "SPARK",
        kind,
        settings.heartbeat,
        owners=tuple(Owner(owner, role) for role, owner in settings.owners),
        tags=_tags(settings.job_tags),
        source_code=source_code(),
    )


def run(settings: SparkSettings, conf: Mapping[str, str], version: str, ui: str = "") -> Run:
    """What every run of the application has in common; it gets its id and ancestors later."""
    shown = {"properties": properties(conf, settings), **pages(conf, ui)}
    shown = {name: value for name, value in shown.items() if value}
    return Run(
        "",
        engine=Engine("spark", version, headwater.__version__),
        tags=_tags(settings.run_tags),
        facets={"headwater_spark": shown} if shown else {},
    )


def _tags(pairs: tuple[tuple[str, str], ...]) -> tuple[Tag, ...]:
    return tuple(Tag(key, value, "CONFIG") for key, value in pairs)


def properties(conf: Mapping[str, str], settings: SparkSettings) -> dict[str, str]:
    """The Spark properties that the settings allow to be shown."""
    # The name of a key may be all that shows its value to be a secret.
    return {
        key: redact(f"{key}={conf[key]}").removeprefix(f"{key}=")
        for key in settings.properties
        if key in conf
    }


def pages(conf: Mapping[str, str], ui: str) -> dict[str, str]:
    """Where the application can be watched: its own page, and that of the history server."""
    found = {"ui": redact(ui)}
    application, history = conf.get("spark.app.id", ""), conf.get(HISTORY, "").rstrip("/")
    if application and history:
        found["history"] = redact(f"{history}/history/{application}/")
    return found


def source_code() -> SourceCode | None:
    """Where the program comes from, when it lies in a git checkout with a remote."""
    return _source_code(_program())


def _program() -> str:
    main = getattr(sys.modules.get("__main__"), "__file__", None) or sys.argv[0]
    return str(Path(main).resolve()) if main else ""


@cache
@internal_errors.log_and_ignore("finding the program's git checkout")
def _source_code(program: str) -> SourceCode | None:
    from openlineage.client import git

    if not program or not Path(program).is_file():
        return None
    found = git._find_git_dir(str(Path(program).parent))  # noqa: SLF001
    url = git.get_git_repo_url(git_dir=found) if found else None
    if found is None or not url:
        return None
    root = next((p for p in Path(program).parents if (p / ".git").exists()), None)
    return SourceCode(
        "git",
        url,
        url,
        str(Path(program).relative_to(root)) if root else "",
        git.get_git_version(found) or "",
        git.get_git_branch(found) or "",
        git.get_git_tag(found) or "",
    )
