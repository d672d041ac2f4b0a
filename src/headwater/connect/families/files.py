"""Files on the worker's disk and on file servers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.redact import scrub

from .base import Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_FILESYSTEMS = {"AmazonS3": "s3", "Gcs": "gs", "GCS": "gs", "AzureBlob": "wasbs", "Sftp": "sftp"}


def stream_source(plan: Plan) -> Reading:
    """Lines of one file; without a file it is the worker's standard input."""
    place = plan.uri(plan.get("file")) if plan.get("file") else None
    return Reading(tuple(Origin(topic, place) for topic in plan.names("topic")), place=place)


def stream_sink(plan: Plan, _topic: str) -> list[Place]:
    """Lines of one file; without a file it is the worker's standard output."""
    place = plan.uri(plan.get("file")) if plan.get("file") else None
    return [place] if place else []


def spooldir_source(plan: Plan) -> Reading:
    """Every file of a folder."""
    place = plan.uri(plan.get("input.path")) if plan.get("input.path") else None
    return Reading(tuple(Origin(topic, place) for topic in plan.names("topic")), place=place)


def filepulse_source(plan: Plan) -> Reading:
    """Files of a folder or bucket, by the class that lists them."""
    kind = plan.get("fs.listing.class").rpartition(".")[2]
    scheme = next((v for k, v in _FILESYSTEMS.items() if kind.startswith(k)), "file")
    place: Place | None = None
    if scheme == "s3" and (bucket := plan.get("aws.s3.bucket.name")):
        key = plan.get("aws.s3.bucket.prefix", default="/")
        place = plan.place("s3", "FILE", bucket=bucket, key=key.strip("/") or "/")
    elif scheme == "gs" and (bucket := plan.get("gcs.bucket.name")):
        key = plan.get("gcs.blobs.filter.prefix", default="/")
        place = plan.place("gcs", "FILE", bucket=bucket, key=key.strip("/") or "/")
    elif scheme == "file" and (folder := plan.get("fs.listing.directory.path")):
        place = plan.uri(folder)
    else:
        plan.problem(f"fs.listing.class: {scrub(kind)} does not say where the files are")
    return Reading(tuple(Origin(topic, place) for topic in plan.names("topic")), place=place)


def sftp_place(plan: Plan, folder: str) -> Place | None:
    """A folder behind an SFTP server."""
    host, port = plan.get("sftp.host"), plan.get("sftp.port", default="22")
    path = re.sub(r"/{2,}", "/", f"/{folder}").rstrip("/") or "/"
    return plan.place("sftp", "FILE", host=host, port=port, path=path)


def sftp_source(plan: Plan) -> Reading:
    """Files of a folder on a server."""
    place = sftp_place(plan, plan.get("input.path"))
    topics = plan.names("kafka.topic", "topic")
    return Reading(tuple(Origin(topic, place) for topic in topics), place=place)


def sftp_sink(plan: Plan, topic: str) -> list[Place]:
    """A folder for each topic."""
    place = sftp_place(plan, f"{plan.get('topics.dir', default='topics')}/{topic}")
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
