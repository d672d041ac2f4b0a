"""Settings of an application: the jar's `spark.openlineage.*` keys, then `OPENLINEAGE_*`.

Where events go is openlineage-python's own configuration (`openlineage.yml`, `OPENLINEAGE_URL`,
`OPENLINEAGE__TRANSPORT__*`); `spark.openlineage.transport.*` stands above it, in the jar's spelling.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.emit import internal_errors
from headwater.emit.parent import checked, from_environment
from headwater.emit.run_emitter import heartbeat_seconds
from headwater.lineage.model import Ancestors, RunRef
from headwater.spark import dataset_overrides

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "spark.openlineage."
JAR_LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
PROPERTIES = (
    "spark.app.id",
    "spark.app.name",
    "spark.master",
    "spark.submit.deployMode",
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.driver.memory",
    "spark.dynamicAllocation.enabled",
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
    "spark.sql.catalogImplementation",
)
OFF = frozenset({"true", "1", "yes"})
_LIST = re.compile(r"[\[\];,\s]+")


class SparkSettings(msgspec.Struct, frozen=True):
    """How one application reports."""

    namespace: str = "default"
    app_name: str = "spark"
    enabled: bool = True
    transport: dict[str, Any] = {}
    ancestors: Ancestors | None = None
    disabled_facets: frozenset[str] = frozenset()
    denied_nodes: frozenset[str] = frozenset()
    allowed_nodes: frozenset[str] = frozenset()
    job_filters: tuple[tuple[str, str], ...] = ()
    properties: tuple[str, ...] = PROPERTIES
    append_dataset: bool = True
    replace_dots: bool = False
    job_tags: tuple[tuple[str, str], ...] = ()
    run_tags: tuple[tuple[str, str], ...] = ()
    owners: tuple[tuple[str, str], ...] = ()
    renames: dataset_overrides.Renames = {}
    heartbeat: float = 300.0

    def allows_job(self, name: str) -> bool:
        """Whether a filter of `openlineage.yml` lets this job through."""
        for kind, pattern in self.job_filters:
            if (kind == "exact" and pattern == name) or (
                kind == "regex" and re.match(pattern, name)
            ):
                return False
        return True

    def allows_node(self, node: str) -> bool:
        """Whether `spark.openlineage.filter.*SparkNodes` lets a plan with this root through."""
        short = node.rsplit(".", 1)[-1]
        if {node, short} & self.allowed_nodes:
            return True
        return not {node, short} & self.denied_nodes


def read(
    conf: Mapping[str, str], *, namespace: str | None = None, app_name: str | None = None
) -> SparkSettings:
    """The settings of an application; arguments override Spark's conf, which overrides the environment."""
    own = {key[len(PREFIX) :]: value for key, value in conf.items() if key.startswith(PREFIX)}
    off = own.get("disabled", "").lower() in OFF
    off = off or os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() in OFF
    given = namespace or own.get("namespace") or os.environ.get("OPENLINEAGE_NAMESPACE")
    return SparkSettings(
        namespace=given or "default",
        app_name=app_name or own.get("appName") or conf.get("spark.app.name") or "spark",
        enabled=not off,
        transport=transport(own),
        ancestors=_ancestors(own),
        disabled_facets=_disabled_facets(own),
        denied_nodes=frozenset(_listed(own.get("filter.deniedSparkNodes"))),
        allowed_nodes=frozenset(_listed(own.get("filter.allowedSparkNodes"))),
        job_filters=_job_filters() or (),
        properties=tuple(_listed(own.get("capturedProperties"))) or PROPERTIES,
        append_dataset=own.get("jobName.appendDatasetName", "true").lower() != "false",
        replace_dots=own.get("jobName.replaceDotWithUnderscore", "false").lower() == "true",
        job_tags=_tags(own.get("job.tags")),
        run_tags=_tags(own.get("run.tags")),
        owners=tuple(
            (key.removeprefix("job.owners."), value)
            for key, value in sorted(own.items())
            if key.startswith("job.owners.")
        ),
        renames=dataset_overrides.read(conf),
        heartbeat=heartbeat_seconds(),
    )


def transport(own: Mapping[str, str]) -> dict[str, Any]:
    """The jar's transport keys as openlineage-python's; empty when Spark's conf names none."""
    tree = _tree(own, "transport.")
    return _python_transport(tree) if tree.get("type") else {}


def _python_transport(tree: dict[str, Any]) -> dict[str, Any]:
    kind = str(tree["type"])
    found = {key: value for key, value in tree.items() if not key.endswith("InMillis")}
    if "timeoutInMillis" in tree:
        found["timeout"] = float(tree["timeoutInMillis"]) / 1000
    if kind == "http":
        if "headers" in found:
            found["custom_headers"] = found.pop("headers")
        found.pop("urlParams", None)
    elif kind == "file":
        found = {"type": "file", "log_file_path": tree.get("location"), "append": True}
    elif kind == "kafka":
        found["topic"] = found.pop("topicName", None)
        found["config"] = _flat(found.pop("properties", {}))
        if "messageKey" in found:
            found["messageKey"] = found.pop("messageKey")
    elif kind == "composite":
        parts = tree.get("transports") or {}
        found = {
            "type": "composite",
            "continue_on_failure": str(tree.get("continueOnFailure", "true")).lower() == "true",
            "transports": {name: _python_transport(part) for name, part in parts.items()},
        }
    return found


def _tree(own: Mapping[str, str], prefix: str) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in own.items():
        if not key.startswith(prefix):
            continue
        *path, last = key[len(prefix) :].split(".")
        here = tree
        for step in path:
            below = here.setdefault(step, {})
            here = below if isinstance(below, dict) else {}
        if not isinstance(here.get(last), dict):
            here[last] = value
    return tree


def _flat(tree: Any, prefix: str = "") -> dict[str, str]:
    if not isinstance(tree, dict):
        return {prefix: str(tree)}
    found: dict[str, str] = {}
    for key, value in tree.items():
        found.update(_flat(value, f"{prefix}.{key}" if prefix else key))
    return found


def _ancestors(own: Mapping[str, str]) -> Ancestors | None:
    def ref(prefix: str) -> RunRef | None:
        names = [own.get(f"{prefix}{part}", "") for part in ("JobNamespace", "JobName", "RunId")]
        return checked(RunRef(*names)) if all(names) else None

    parent = ref("parent")
    if parent is None:
        return from_environment()
    return Ancestors(parent, ref("rootParent") or parent)


def _disabled_facets(own: Mapping[str, str]) -> frozenset[str]:
    found = set(_listed(own.get("facets.disabled")))
    for key, value in own.items():
        if key.startswith("facets.") and key.endswith(".disabled") and value.lower() in OFF:
            found.add(key[len("facets.") : -len(".disabled")])
    return frozenset(found)


@internal_errors.log_and_ignore("reading the filters of openlineage.yml")
def _job_filters() -> tuple[tuple[str, str], ...]:
    from openlineage.client import OpenLineageClient
    from openlineage.client.transport.noop import NoopConfig, NoopTransport

    filters = OpenLineageClient(transport=NoopTransport(NoopConfig())).config.filters
    pairs = [(str(f.type), f.match or f.regex or "") for f in filters]
    return tuple(pair for pair in pairs if pair[1])


def _listed(text: str | None) -> list[str]:
    return [item for item in _LIST.split(text or "") if item]


def _tags(text: str | None) -> tuple[tuple[str, str], ...]:
    pairs = [item.strip().partition(":") for item in (text or "").strip("[]").split(";")]
    return tuple((key.strip(), value.strip() or "true") for key, _, value in pairs if key.strip())
