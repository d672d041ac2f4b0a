"""The jars a PySpark job needs for Kafka, Iceberg, Avro and PostgreSQL, verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lab.artifacts import lock
from headwater.lab.cache import Cache
from headwater.lab.fetch import ensure

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = "pipeline"


def pipeline_jars(cache: Cache | None = None) -> list[Path]:
    """Paths for `spark.jars`, downloaded at the first time and checked against the lock."""
    cache = cache or Cache()
    artifacts = lock().bundle(PIPELINE)
    ensure(cache, artifacts)
    return [cache.path(artifact) for artifact in artifacts]
