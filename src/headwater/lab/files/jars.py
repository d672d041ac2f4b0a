"""The jars a PySpark job needs for Kafka, Iceberg, Avro and PostgreSQL, verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lab.files.artifacts import lock
from headwater.lab.files.cache import Cache
from headwater.lab.files.fetch import ensure

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.files.artifacts import Artifact

PIPELINE = "pipeline"
OLDER = "pipeline-spark-"
SERVER = "spark-connect-"


def pipeline_jars(cache: Cache | None = None, spark: str = "") -> list[Path]:
    """Paths for `spark.jars`, for the lab's Spark or the minor version of an older one."""
    older = lock().bundle(OLDER + _minor(spark)) if spark else []
    return _ensured(cache or Cache(), older or lock().bundle(PIPELINE))


def connect_jars(spark: str, cache: Cache | None = None) -> list[Path]:
    """What a PySpark of this version lacks to be a server for Spark Connect: nothing from 4.0 on."""
    return _ensured(cache or Cache(), lock().bundle(SERVER + _minor(spark)))


def extra_jars(word: str, cache: Cache | None = None) -> list[Path]:
    """What only tests ask for: a table format besides Iceberg, `delta` or `hudi`, or `flink`'s jars."""
    return _ensured(cache or Cache(), lock().bundle(word))


def peer_jar(cache: Cache | None = None) -> Path:
    """OpenLineage's jar for Spark, which benchmark and tests run beside Headwater."""
    (found,) = _ensured(cache or Cache(), lock().bundle("openlineage"))
    return found


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _ensured(cache: Cache, artifacts: list[Artifact]) -> list[Path]:
    """Downloaded at the first time, and checked against the lock."""
    ensure(cache, artifacts)
    return [cache.path(artifact) for artifact in artifacts]
