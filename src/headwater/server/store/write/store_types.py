"""What kind of store a namespace names, in the words Marquez clients know."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["kind_of", "type_of"]

_KINDS = {
    "postgres": "POSTGRESQL",
    "mysql": "MYSQL",
    "mssql": "SQLSERVER",
    "sqlserver": "SQLSERVER",
    "oracle": "ORACLE",
    "kafka": "KAFKA",
    "s3": "S3",
    "gs": "GCS",
    "bigquery": "BIGQUERY",
    "snowflake": "SNOWFLAKE",
    "redshift": "REDSHIFT",
    "hdfs": "HDFS",
    "hive": "HIVE",
    "file": "FILE",
    "mongodb": "MONGODB",
}
_FILES = {"file", "s3", "gs", "hdfs", "abfss", "wasbs", "dbfs"}
_STREAMS = {"kafka", "kinesis", "pubsub"}
_TYPES = {"TOPIC": "STREAM", "STREAM": "STREAM", "FILE": "FILE", "MODEL": "MODEL"}


@lru_cache(maxsize=4_096)
def kind_of(namespace: str) -> str:
    """The kind of store behind a namespace, such as POSTGRESQL."""
    scheme = namespace.split(":", 1)[0].lower()
    return _KINDS.get(scheme, scheme.upper() or "UNKNOWN")


@lru_cache(maxsize=4_096)
def type_of(namespace: str, declared: str) -> str:
    """The type of a dataset: what its facet declares, else what its store usually holds."""
    if declared in _TYPES:
        return _TYPES[declared]
    if declared == "DB_TABLE":
        scheme = namespace.split(":", 1)[0].lower()
        return "STREAM" if scheme in _STREAMS else "FILE" if scheme in _FILES else "DB_TABLE"
    return "DB_TABLE"
