"""Where Camel's kamelets and components keep their data, by their own options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.family import UNKNOWN, ExternalDataset
from headwater.lineage import naming, sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.derive.context import Context

# A header of the record in an option: `${header.topic}`, `${headers.topic}`, `${in.header.topic}`.
_HEADER = re.compile(r"\$\{(?:in\.)?headers?\.([\w-]+)\}")
_INTO = re.compile(r"(?:INTO|UPDATE)\s+([\w.$#\"`\[\]]+)", re.IGNORECASE)


class Options:
    """A kamelet's properties by their own names."""

    def __init__(self, context: Context, values: dict[str, str], prefix: str = "") -> None:
        self.context = context
        self.values = values
        self.prefix = prefix

    def __call__(self, *names: str) -> str:
        """The first of the properties that has a value."""
        for name in names:
            if value := self.values.get(name, "").strip():
                self.context.used(f"{self.prefix}{name}")
                return self._with_headers(value)
        return ""

    def _with_headers(self, value: str) -> str:
        """The value with the headers in it that transforms give to every record of the topic."""
        if not _HEADER.search(value):
            return value
        headers = self.context.chain.headers(self.context.raw)

        def filled(found: re.Match[str]) -> str:
            # Camel takes a header for its own by this prefix, and any other under its whole name.
            return headers.get(f"CamelHeader.{found[1]}") or headers.get(found[1]) or found[0]

        return _HEADER.sub(filled, value)


def _fixed(text: str) -> str:
    """The folder before the first part that each record fills in."""
    head, cut, _ = text.partition("${")
    return (head.rpartition("/")[0] if cut else head).strip("/") or "/"


def _bucket(store: str) -> Callable[[Context, Options], ExternalDataset | None]:
    def place(context: Context, get: Options) -> ExternalDataset | None:
        name = get("bucketNameOrArn", "bucketName", "bucket")
        key = _fixed(get("keyName", "objectName", "prefix"))
        if name.startswith("arn:"):
            return context.uri(f"{name}/{key}" if key != "/" else name)
        return context.place(store, "FILE", bucket=name, key=key)

    return place


def _blob(context: Context, get: Options) -> ExternalDataset | None:
    return context.place("wasbs", "FILE", account=get("accountName"),
                      container=get("containerName"), path="/")  # fmt: skip


def _mongodb(context: Context, get: Options) -> ExternalDataset | None:
    return context.place("mongodb", host=get("hosts"), database=get("database"),
                      collection=get("collection"))  # fmt: skip


def _sql(store: str) -> Callable[[Context, Options], ExternalDataset | None]:
    def place(context: Context, get: Options) -> ExternalDataset | None:
        query = get("query", "consumeQuery")
        parsed = sql.parse(query, store)
        into = _INTO.search(query)
        table = into[1] if into else parsed.tables[0] if parsed and parsed.tables else ""
        table = table.lower() if into and store == "postgres" and '"' not in table else table
        if not table or (not into and parsed and len(parsed.tables) > 1):
            context.problem("query: no single table can be read from it")
            return None
        *outer, name = naming.split_identifier(table)
        schema = outer[-1] if outer else ""
        parts = {"database": get("databaseName")}
        if schema:
            parts |= {"database" if store in ("mysql", "mariadb") else "schema": schema}
        return context.place(store, host=get("serverName"), port=get("serverPort"), table=name,
                          **parts)  # fmt: skip

    return place


def _cassandra(context: Context, get: Options) -> ExternalDataset | None:
    found = re.search(r"(?:INTO|UPDATE|FROM)\s+([\w.\"]+)", get("query"), re.IGNORECASE)
    if not found:
        context.problem("query: no table can be read from it")
        return None
    keyspace, _, table = found[1].replace('"', "").rpartition(".")
    return context.place("cassandra", host=get("connectionHost"), port=get("connectionPort"),
                      keyspace=keyspace or get("keyspace"), table=table)  # fmt: skip


def _index(store: str) -> Callable[[Context, Options], ExternalDataset | None]:
    return lambda context, get: context.place(
        store, host=get("hostAddresses"), index=get("indexName")
    )


def _bigquery(context: Context, get: Options) -> ExternalDataset | None:
    return context.place("bigquery", project=get("projectId"), dataset=get("dataset"),
                      table=get("table"))  # fmt: skip


def _dynamodb(context: Context, get: Options) -> ExternalDataset | None:
    return context.place("dynamodb", region=get("region"), table=get("table", "tableName"))


def _named(
    store: str, part: str, *names: str
) -> Callable[[Context, Options], ExternalDataset | None]:
    """What AWS names by a region and a name, or by an ARN."""

    def place(context: Context, get: Options) -> ExternalDataset | None:
        name = get(*names)
        if name.startswith("arn:"):
            found = context.uri(name, "STREAM")
        else:
            found = context.place(store, "STREAM", **{"region": get("region"), part: name})
        return found.with_columns(UNKNOWN) if found else None

    return place


def _datalake(context: Context, get: Options) -> ExternalDataset | None:
    return context.place("abfss", "FILE", account=get("accountName"),
                      container=get("fileSystemName"), path="/")  # fmt: skip


def _folder(store: str) -> Callable[[Context, Options], ExternalDataset | None]:
    return lambda context, get: context.place(
        store, "FILE", host=get("connectionHost"), port=get("connectionPort"),
        path=f"/{get('directoryName').strip('/')}",
    )  # fmt: skip


def _cosmos(context: Context, get: Options) -> ExternalDataset | None:
    return context.place("cosmos", host=get("databaseEndpoint"), database=get("databaseName"),
                      table=get("containerName"))  # fmt: skip


def _subject(
    store: str, host: str, part: str
) -> Callable[[Context, Options], ExternalDataset | None]:
    def place(context: Context, get: Options) -> ExternalDataset | None:
        found = context.place(store, "STREAM", **{"host": get(host), part: get("topic")})
        return found.with_columns(UNKNOWN) if found else None

    return place


def _web(context: Context, get: Options) -> ExternalDataset | None:
    found = context.uri(get("url"), "") if "://" in get("url") else None
    return found.with_columns(UNKNOWN) if found else None


def _pubsub(context: Context, get: Options) -> ExternalDataset | None:
    if subscription := get("subscriptionName"):
        place = context.place("pubsub_subscription", "STREAM", project=get("projectId"),
                           subscription=subscription)  # fmt: skip
    else:
        place = context.place("pubsub", "STREAM", project=get("projectId"), topic=get("topicName",
                           "destinationName"))  # fmt: skip
    return place.with_columns(UNKNOWN) if place else None


STORES: dict[str, Callable[[Context, Options], ExternalDataset | None]] = {
    "aws-s3": _bucket("s3"),
    "aws-s3-streaming-upload": _bucket("s3"),
    "google-storage": _bucket("gcs"),
    "minio": _bucket("s3"),
    "azure-storage-blob": _blob,
    "azure-storage-datalake": _datalake,
    "azure-cosmosdb": _cosmos,
    "sftp": _folder("sftp"),
    "ftp": _folder("ftp"),
    "http": _web,
    "http-secured": _web,
    "mqtt": _subject("mqtt", "brokerUrl", "topic"),
    "nats": _subject("nats", "servers", "subject"),
    "mongodb": _mongodb,
    "mongodb-changes-stream": _mongodb,
    "postgresql": _sql("postgres"),
    "mysql": _sql("mysql"),
    "mariadb": _sql("mariadb"),
    "sqlserver": _sql("mssql"),
    "cassandra": _cassandra,
    "elasticsearch-index": _index("elasticsearch"),
    "elasticsearch-search": _index("elasticsearch"),
    "opensearch-index": _index("opensearch"),
    "google-bigquery": _bigquery,
    "aws-ddb": _dynamodb,
    "aws-ddb-streams": _dynamodb,
    "aws-sqs": _named("sqs", "queue", "queueNameOrArn"),
    "aws-sns": _named("sns", "topic", "topicNameOrArn"),
    "aws-kinesis": _named("kinesis", "stream", "stream"),
    "google-pubsub": _pubsub,
    "kafka": lambda context, get: context.place(
        "kafka", "TOPIC", host=get("bootstrapServers"), topic=get("topic")
    ),
}
SCHEMES: dict[str, Callable[[Context, Options], ExternalDataset | None]] = {
    "aws2-s3": _bucket("s3"),
    "aws-s3": _bucket("s3"),
    "google-storage": _bucket("gcs"),
    "aws2-ddb": _dynamodb,
    "aws2-sqs": _named("sqs", "queue", "path", "queueNameOrArn"),
    "aws2-sns": _named("sns", "topic", "path", "topicNameOrArn"),
    "aws2-kinesis": _named("kinesis", "stream", "path", "streamName"),
    "mongodb": _mongodb,
    "file": lambda context, get: context.uri(get("path", "directoryName")),
}
PATHS = {"aws2-s3": "bucketName", "aws-s3": "bucketName", "google-storage": "bucketName",
          "aws2-ddb": "table"}  # fmt: skip
