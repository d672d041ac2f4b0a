"""The names in the events that Debezium itself emits (`openlineage.integration.*`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.connect.derive.config_values import PLACEHOLDER, split
from headwater.lineage import naming
from headwater.lineage.model import Symlink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.model import Dataset

PREFIX = "openlineage.integration."
TRANSFORM = "io.debezium.transforms.openlineage.OpenLineage"
_SINKS = (
    "io.debezium.connector.jdbc.JdbcSinkConnector",
    "io.debezium.connector.mongodb.MongoDbSinkConnector",
    "io.debezium.connector.mongodb.sink.MongoDbSinkConnector",
)
# What Debezium writes for an address that is not in its configuration.
_NOWHERE = "unknown:unknown"


def job_of(config: Mapping[str, str], connector: str) -> tuple[str, str]:
    """Namespace and name of the job of its first task; empty where it emits nothing."""
    if not reports_itself(config):
        return "", ""
    name = connector if _is_sink(config) else config.get("topic.prefix", "").strip()
    if not name or PLACEHOLDER in name:
        return "", ""
    return config.get(f"{PREFIX}job.namespace", "").strip() or name, f"{name}.0"


def reports_itself(config: Mapping[str, str]) -> bool:
    """Whether the connector is configured to emit OpenLineage events itself."""
    return config.get(f"{PREFIX}enabled", "").strip().lower() == "true"


def task_job(job: str, task: int) -> str:
    """The job name of a further task, given that of the first."""
    return f"{job.removesuffix('.0')}.{task}"


def also_named(config: Mapping[str, str], dataset: Dataset) -> Dataset:
    """The dataset with Debezium's own name for it as a symlink, where that is another."""
    if dataset.type == "TOPIC":
        namespace = f"kafka://{_kafka(config)}" if _reports_topics(config) else ""
    else:
        namespace = _database(config, dataset.namespace.partition("://")[0])
    if not namespace or PLACEHOLDER in namespace:
        return dataset
    if naming.canonical(namespace, dataset.name) == dataset.id:
        return dataset
    link = Symlink(namespace, dataset.name, dataset.type or "TABLE")
    return msgspec.structs.replace(dataset, symlinks=(*dataset.symlinks, link))


def _is_sink(config: Mapping[str, str]) -> bool:
    return config.get("connector.class", "").strip() in _SINKS


def _reports_topics(config: Mapping[str, str]) -> bool:
    """A sink reports its topics, a source only by a transform."""
    aliases = split(config.get("transforms", ""))
    return _is_sink(config) or any(
        config.get(f"transforms.{alias}.type") == TRANSFORM for alias in aliases
    )


def _kafka(config: Mapping[str, str]) -> str:
    configured = config.get(f"{PREFIX}dataset.kafka.bootstrap.servers", "").strip()
    history = split(config.get("schema.history.internal.kafka.bootstrap.servers", ""))
    return configured or (history[0] if history else _NOWHERE)


def _database(config: Mapping[str, str], scheme: str) -> str:
    host = config.get("database.hostname", "").strip()
    # Debezium writes the port as configured, so a default port that is left out becomes `null`.
    return f"{scheme}://{host}:{config.get('database.port', '').strip() or 'null'}" if host else ""
