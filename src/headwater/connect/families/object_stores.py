"""Object stores and HDFS: Confluent's and Aiven's sinks and sources."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from headwater.connect.derive.context import templated
from headwater.connect.derive.family import (
    UNKNOWN,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)
from headwater.lineage import naming
from headwater.lineage.model import Symlink

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

FAMILY = "object store"
_VARIABLE = re.compile(r"\{\{\s*(\w+)[^{}]*\}\}")
_ACCOUNT = re.compile(r"AccountName=([^;]+)", re.IGNORECASE)


def located(context: Context, store: str, path: str) -> ExternalDataset | None:
    """A folder of a bucket or container."""
    path = re.sub(r"/{2,}", "/", path).strip("/") or "/"
    if store == "s3":
        bucket = context.get("s3.bucket.name", "aws.s3.bucket.name", "aws_s3_bucket")
        return context.place("s3", "FILE", bucket=bucket, key=path)
    if store == "gcs":
        return context.place("gcs", "FILE", bucket=context.get("gcs.bucket.name"), key=path)
    if store == "adls":
        # No key names the container: it is the first folder of `topics.dir`.
        container, _, below = path.partition("/")
        return context.place(
            "abfss", "FILE", account=context.get("azure.datalake.gen2.account.name"),
            container=container if below else "", path=below,
        )  # fmt: skip
    account = context.get("azblob.account.name")
    if not account and (found := _ACCOUNT.search(context.get("azure.storage.connection.string"))):
        account = found[1]
    container = context.get("azblob.container.name", "azure.storage.container.name")
    return context.place("wasbs", "FILE", account=account, container=container, path=path)


def sink(context: Context, topic: str, store: str) -> list[ExternalDataset]:
    """Confluent's sinks: one folder a topic below `topics.dir`, partitions below that."""
    place = located(context, store, _below(context, topic))
    return [place] if place else []


def _below(context: Context, topic: str) -> str:
    """The topic's folder; an empty `topics.dir` is none, and the delimiter need not be a slash."""
    folder = templated(context.get("topics.dir", default="topics"), topic)
    if context.config.get("topics.dir", "topics").strip() == "":
        folder = ""
    mark = context.get("directory.delim", default="/")
    return f"{folder}{mark}{topic}" if folder else topic


def hdfs_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """HDFS: the folder, and the Hive table that the connector keeps over it."""
    folder = templated(context.get("topics.dir", default="topics"), topic)
    place = context.uri(f"{context.get('hdfs.url', 'store.url').rstrip('/')}/{folder}/{topic}")
    if place is None:
        return []
    ident = naming.canonical(*place.id)
    place = place.updated(namespace=ident.namespace, name=ident.name)
    if context.flag("hive.integration") and (metastore := context.get("hive.metastore.uris")):
        table = templated(context.get("hive.table.name", default="${topic}"), topic)
        database = context.get("hive.database", default="default")
        name = f"{database}.{re.sub(r'[.-]', '_', table)}"
        hive = context.name(lambda: naming.canonical(naming.hive_namespace(metastore), name))
        if hive:
            place = place.linked(Symlink(*hive))
    return [place]


def source(context: Context, store: str) -> SourceLineage:
    """Confluent's sources: a backup gives each topic its own folder, else expressions choose."""
    folder = context.get("topics.dir", default="topics")
    if context.get("mode").upper() == "GENERIC":
        topics = [item.partition(":")[0] for item in context.names("topic.regex.list")]
        place = located(context, store, context.get("topics.dir", default="/"))
        return SourceLineage(tuple(SourceTopic(topic, place) for topic in topics), place=place)
    return SourceLineage(
        reverse=lambda topic: located(context, store, f"{folder}/{topic}"),
        place=located(context, store, folder),
    )


def aiven_sink(context: Context, topic: str, store: str) -> list[ExternalDataset]:
    """Aiven's sinks: the prefix and the fixed part of the file name's template."""
    prefix = context.get("aws.s3.prefix", "aws_s3_prefix", "file.name.prefix", "azure.blob.prefix")
    shape = context.get("file.name.template", default="{{topic}}-{{partition}}-{{start_offset}}")
    place = located(context, store, _fixed(prefix + shape, topic))
    if place is None:
        return []
    # Only the value itself keeps its columns: lines of text or a record around it do not.
    plain = context.get("format.output.type", default="csv").lower() in ("json", "jsonl", "parquet")
    bare = context.get("format.output.envelope", default="true").lower() == "false"
    return [place if plain and bare else place.with_columns(UNKNOWN)]


def aiven_source(context: Context, store: str) -> SourceLineage:
    """Aiven's sources: everything below a prefix, into the topics named."""
    prefix = context.get("aws.s3.prefix", "azure.blob.prefix", "file.name.prefix", default="/")
    place = located(context, store, prefix)
    topics = [t for t in context.names("topic", "topics", "distribution.topic") if "{{" not in t]
    return SourceLineage(tuple(SourceTopic(topic, place) for topic in topics), place=place)


def _fixed(shape: str, topic: str) -> str:
    text = _VARIABLE.sub(lambda m: topic if m[1] == "topic" else "\0", shape)
    fixed, cut, _ = text.partition("\0")
    if not cut or fixed.endswith("/"):
        return fixed
    return fixed.rstrip("-_.") if topic in fixed.rpartition("/")[2] else fixed.rpartition("/")[0]


_DIR = ("topics.dir", "directory.delim")
_BUCKET = {
    "s3": ("s3.bucket.name",),
    "gcs": ("gcs.bucket.name",),
    "blob": ("azblob.account.name", "azblob.container.name"),
    "adls": ("azure.datalake.gen2.account.name",),
}
_SINKS = {
    "s3": ("io.confluent.connect.s3.S3SinkConnector", "S3_SINK", "S3Sink"),
    "gcs": ("io.confluent.connect.gcs.GcsSinkConnector", "GcsSink"),
    "blob": ("io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector", "AzureBlobSink"),
    "adls": ("io.confluent.connect.azure.datalake.gen2.AzureDataLakeGen2SinkConnector",
             "AzureDataLakeGen2Sink"),
}  # fmt: skip
_SOURCES = {
    "s3": ("io.confluent.connect.s3.source.S3SourceConnector", "S3Source"),
    "gcs": ("io.confluent.connect.gcs.GcsSourceConnector", "GcsSource"),
    "blob": ("io.confluent.connect.azure.blob.storage.AzureBlobStorageSourceConnector",
             "AzureBlobSource"),
}  # fmt: skip
_AIVEN = {
    "s3": ("aws.s3.bucket.name", "aws_s3_bucket", "aws.s3.prefix", "aws_s3_prefix"),
    "gcs": ("gcs.bucket.name", "file.name.prefix"),
    "blob": ("azure.storage.connection.string", "azure.storage.container.name",
             "file.name.prefix", "azure.blob.prefix"),
}  # fmt: skip
_FORMAT = ("format.output.type", "format.output.envelope")
_TITLES = {"s3": "S3", "gcs": "Google Cloud Storage", "blob": "Azure Blob Storage",
           "adls": "Azure Data Lake Gen2"}  # fmt: skip

PLUGINS = (
    *(
        Plugin(FAMILY, names, "sink", (*_BUCKET[store], *_DIR), sink=partial(sink, store=store),
               stores=_TITLES[store])
        for store, names in _SINKS.items()
    ),
    *(
        Plugin(FAMILY, names, "source", (*_BUCKET[store], *_DIR, "mode", "topic.regex.list"),
               source=partial(source, store=store), stores=_TITLES[store])
        for store, names in _SOURCES.items()
    ),
    Plugin(FAMILY, ("io.confluent.connect.hdfs.HdfsSinkConnector",
                    "io.confluent.connect.hdfs3.Hdfs3SinkConnector"), "sink",
           ("hdfs.url", "store.url", "topics.dir", "hive.integration", "hive.metastore.uris",
            "hive.database", "hive.table.name"), sink=hdfs_sink, stores="HDFS"),
    Plugin(FAMILY, ("io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",), "sink",
           (*_AIVEN["s3"], "file.name.template", *_FORMAT), sink=partial(aiven_sink, store="s3"),
           stores="S3"),
    Plugin(FAMILY, ("io.aiven.kafka.connect.gcs.GcsSinkConnector",), "sink",
           (*_AIVEN["gcs"], "file.name.template", *_FORMAT), sink=partial(aiven_sink, store="gcs"),
           stores="Google Cloud Storage"),
    Plugin(FAMILY, ("io.aiven.kafka.connect.azure.sink.AzureBlobSinkConnector",), "sink",
           (*_AIVEN["blob"], "file.name.template", *_FORMAT), sink=partial(aiven_sink, store="blob"),
           stores="Azure Blob Storage"),
    Plugin(FAMILY, ("io.aiven.kafka.connect.s3.source.S3SourceConnector",), "source",
           (*_AIVEN["s3"], "topic", "topics", "distribution.topic"),
           source=partial(aiven_source, store="s3"), stores="S3"),
    Plugin(FAMILY, ("io.aiven.kafka.connect.azure.source.AzureBlobSourceConnector",), "source",
           (*_AIVEN["blob"], "topic", "topics"), source=partial(aiven_source, store="blob"),
           stores="Azure Blob Storage"),
)  # fmt: skip
