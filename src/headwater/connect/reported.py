"""Names under which Debezium reports what it does itself (`openlineage.integration.*`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.lineage import naming

from .model import Symlink
from .values import PLACEHOLDER, split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import Dataset

PREFIX = "openlineage.integration."
TRANSFORM = "io.debezium.transforms.openlineage.OpenLineage"
_SINKS = (
    "io.debezium.connector.jdbc.JdbcSinkConnector",
    "io.debezium.connector.mongodb.MongoDbSinkConnector",
    "io.debezium.connector.mongodb.sink.MongoDbSinkConnector",
)
# What it writes for an address that its configuration does not say.
_NOWHERE = "unknown:unknown"


def job(config: Mapping[str, str], connector: str) -> tuple[str, str]:
    """Namespace and name of the job of its first task; empty where it reports nothing."""
    if not told(config):
        return "", ""
    name = connector if _is_sink(config) else config.get("topic.prefix", "").strip()
    if not name or PLACEHOLDER in name:
        return "", ""
    return config.get(f"{PREFIX}job.namespace", "").strip() or name, f"{name}.0"


def told(config: Mapping[str, str]) -> bool:
    """Whether it is told to report itself."""
    return config.get(f"{PREFIX}enabled", "").strip().lower() == "true"


def part(job: str, task: int) -> str:
    """The name of another task's job beside the first one's."""
    return f"{job.removesuffix('.0')}.{task}"


def also_named(config: Mapping[str, str], dataset: Dataset) -> Dataset:
    """A dataset with the name that Debezium itself gives it, where that is another."""
    if dataset.kind == "TOPIC":
        namespace = f"kafka://{_kafka(config)}" if _tells_topics(config) else ""
    else:
        namespace = _database(config, dataset.namespace.partition("://")[0])
    if not namespace or PLACEHOLDER in namespace:
        return dataset
    if naming.canonical(namespace, dataset.name) == dataset.id:
        return dataset
    link = Symlink(namespace, dataset.name, dataset.kind or "TABLE")
    return msgspec.structs.replace(dataset, symlinks=(*dataset.symlinks, link))


def _is_sink(config: Mapping[str, str]) -> bool:
    return config.get("connector.class", "").strip() in _SINKS


def _tells_topics(config: Mapping[str, str]) -> bool:
    """A sink tells of its topics, a source only by a transform."""
    aliases = split(config.get("transforms", ""))
    return _is_sink(config) or any(
        config.get(f"transforms.{alias}.type") == TRANSFORM for alias in aliases
    )


def _kafka(config: Mapping[str, str]) -> str:
    told = config.get(f"{PREFIX}dataset.kafka.bootstrap.servers", "").strip()
    history = split(config.get("schema.history.internal.kafka.bootstrap.servers", ""))
    return told or (history[0] if history else _NOWHERE)


def _database(config: Mapping[str, str], scheme: str) -> str:
    host = config.get("database.hostname", "").strip()
    # A default port stays unsaid in its configuration, and it writes down what it finds there.
    return f"{scheme}://{host}:{config.get('database.port', '').strip() or 'null'}" if host else ""
