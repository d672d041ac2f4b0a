"""Files on the worker's disk and on file servers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.family import ExternalDataset, Plugin, SourceLineage, SourceTopic
from headwater.lineage.secrets import scrub

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_FILESYSTEMS = {"AmazonS3": "s3", "Gcs": "gs", "GCS": "gs", "AzureBlob": "wasbs", "Sftp": "sftp"}


def stream_source(context: Context) -> SourceLineage:
    """Lines of one file; without a file it is the worker's standard input."""
    place = context.uri(context.get("file")) if context.get("file") else None
    return SourceLineage(
        tuple(SourceTopic(topic, place) for topic in context.names("topic")), place=place
    )


def stream_sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Lines of one file; without a file it is the worker's standard output."""
    place = context.uri(context.get("file")) if context.get("file") else None
    return [place] if place else []


def spooldir_source(context: Context) -> SourceLineage:
    """Every file of a folder."""
    place = context.uri(context.get("input.path")) if context.get("input.path") else None
    return SourceLineage(
        tuple(SourceTopic(topic, place) for topic in context.names("topic")), place=place
    )


def filepulse_source(context: Context) -> SourceLineage:
    """Files of a folder or bucket, by the class that lists them."""
    kind = context.get("fs.listing.class").rpartition(".")[2]
    scheme = next((v for k, v in _FILESYSTEMS.items() if kind.startswith(k)), "file")
    place: ExternalDataset | None = None
    if scheme == "s3" and (bucket := context.get("aws.s3.bucket.name")):
        key = context.get("aws.s3.bucket.prefix", default="/")
        place = context.place("s3", "FILE", bucket=bucket, key=key.strip("/") or "/")
    elif scheme == "gs" and (bucket := context.get("gcs.bucket.name")):
        key = context.get("gcs.blobs.filter.prefix", default="/")
        place = context.place("gcs", "FILE", bucket=bucket, key=key.strip("/") or "/")
    elif scheme == "file" and (folder := context.get("fs.listing.directory.path")):
        place = context.uri(folder)
    else:
        context.problem(f"fs.listing.class: {scrub(kind)} does not say where the files are")
    return SourceLineage(
        tuple(SourceTopic(topic, place) for topic in context.names("topic")), place=place
    )


def sftp_place(context: Context, folder: str) -> ExternalDataset | None:
    """A folder behind an SFTP server."""
    host, port = context.get("sftp.host"), context.get("sftp.port", default="22")
    path = re.sub(r"/{2,}", "/", f"/{folder}").rstrip("/") or "/"
    return context.place("sftp", "FILE", host=host, port=port, path=path)


def sftp_source(context: Context) -> SourceLineage:
    """Files of a folder on a server."""
    place = sftp_place(context, context.get("input.path"))
    topics = context.names("kafka.topic", "topic")
    return SourceLineage(tuple(SourceTopic(topic, place) for topic in topics), place=place)


def sftp_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """A folder for each topic."""
    place = sftp_place(context, f"{context.get('topics.dir', default='topics')}/{topic}")
    return [place] if place else []


_SPOOLDIR = "com.github.jcustenborder.kafka.connect.spooldir.SpoolDir"
PLUGINS = (
    Plugin(
        "file", ("org.apache.kafka.connect.file.FileStreamSourceConnector",), "source",
        ("file", "topic"), source=stream_source, stores="Local file",
    ),
    Plugin(
        "file", ("org.apache.kafka.connect.file.FileStreamSinkConnector",), "sink", ("file",),
        sink=stream_sink, stores="Local file",
    ),
    Plugin(
        "spooldir",
        (*(f"{_SPOOLDIR}{name}SourceConnector" for name in (
            "Csv", "Json", "Avro", "LineDelimited", "SchemaLessJson", "BinaryFile", "ELF")),
         f"{_SPOOLDIR}*SourceConnector"),
        "source", ("input.path", "topic"), source=spooldir_source, stores="Local folder",
    ),
    Plugin(
        "filepulse", ("io.streamthoughts.kafka.connect.filepulse.source.FilePulseSourceConnector",),
        "source",
        ("fs.listing.class", "fs.listing.directory.path", "aws.s3.bucket.name",
         "aws.s3.bucket.prefix", "gcs.bucket.name", "gcs.blobs.filter.prefix", "topic"),
        source=filepulse_source, stores="Local folder, S3, Google Cloud Storage",
    ),
    Plugin(
        "sftp",
        ("io.confluent.connect.sftp.SftpCsvSourceConnector",
         "io.confluent.connect.sftp.SftpJsonSourceConnector",
         "io.confluent.connect.sftp.SftpBinarySourceConnector", "SftpSource"),
        "source", ("sftp.host", "sftp.port", "input.path", "kafka.topic", "topic"),
        source=sftp_source, stores="SFTP",
    ),
    Plugin(
        "sftp", ("io.confluent.connect.sftp.SftpSinkConnector", "SftpSink"), "sink",
        ("sftp.host", "sftp.port", "topics.dir"), sink=sftp_sink, stores="SFTP",
    ),
)  # fmt: skip
