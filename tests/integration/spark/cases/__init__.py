"""Small jobs with their true lineage, run against real Spark, Kafka, Iceberg and PostgreSQL."""

from __future__ import annotations

from . import changes, frames, kafka, nested, python, relational, rows, stores, streams
from .case import CASES, Case

__all__ = [
    "CASES", "Case", "changes", "frames", "kafka", "nested", "python", "relational", "rows", "stores",
    "streams",
]  # fmt: skip
