"""A Hive metastore, from the jars inside PySpark."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from headwater.lab.files.ivy import pyspark_jars
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import PROBE_SECONDS, Service
from headwater.lab.services.s3 import WAREHOUSE, warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.services.base import LabContext

THRIFT_CALL = 0x80010001
THRIFT_REPLY = 0x80010002
# Iceberg's catalog in Hive for the other services: each of a version that fits the Iceberg there.
FOR_CATALOG, FOR_SINK = "hive-catalog", "hive-sink"
# What such a catalog needs besides, of the jars inside PySpark.
CLIENT = (
    "hive-metastore",
    "hive-common",
    "hive-shims",
    "hive-shims-common",
    "hive-serde",
    "hive-storage-api",
    "libthrift",
    "libfb303",
    "commons-lang",
    "jdo-api",
    "guava",
    "failureaccess",
)
# The lab's metastore has no transactions, by which Iceberg would lock a table.
WITHOUT_LOCKS = {"iceberg.engine.hive.lock-enabled": "false"}


def endpoint(lab: LabContext) -> str:
    """The metastore's address."""
    return f"thrift://{LOOPBACK}:{lab.port('hive')}"


def client_jars() -> list[Path]:
    """What a client of the metastore needs."""
    return sorted(jar for name in CLIENT for jar in pyspark_jars().glob(f"{name}-[0-9]*.jar"))


class Hive(Service):
    name = "hive"
    title = "Hive metastore"
    optional = True
    bundles = (FOR_CATALOG, FOR_SINK)

    def version(self) -> str:
        (jar,) = pyspark_jars().glob("hive-metastore-*.jar")
        return jar.stem.removeprefix("hive-metastore-")

    def prepare(self, lab: LabContext) -> None:
        data = lab.home.data("hive")
        (data / "warehouse").mkdir(parents=True, exist_ok=True)
        settings = {
            "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={data / 'metastore'};create=true",
            "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "hive.metastore.warehouse.dir": self._warehouse(lab),
            "hive.async.log.enabled": "false",
            "metastore.stats.autogather": "false",
            **(self._without_s3(lab) if lab.home.settings.hive else {}),
        }
        folder = lab.home.root / "conf" / "hive"
        folder.mkdir(exist_ok=True)
        properties = "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
            for name, value in settings.items()
        )
        lab.write("hive/hive-site.xml", [f"<configuration>\n{properties}</configuration>"])

    def command(self, lab: LabContext) -> Command:
        return Command(
            lab.run_source(
                "hive",
                "Metastore.java",
                LOOPBACK,
                str(lab.port("hive")),
                classpath=[lab.home.root / "conf" / "hive", *lab.pyspark_classpath()],
                heap=256,
                flags=[f"-Dderby.stream.error.file={lab.home.logs / 'hive-derby.log'}"],
            )
        )

    def ready(self, lab: LabContext) -> bool:
        """Call `getName`, which every Thrift service of Hive's has."""
        name = b"getName"
        call = struct.pack(f">Ii{len(name)}siB", THRIFT_CALL, len(name), name, 0, 0)
        with socket.create_connection((LOOPBACK, lab.port("hive")), PROBE_SECONDS) as sock:
            sock.settimeout(PROBE_SECONDS)
            sock.sendall(call)
            (kind,) = struct.unpack(">I", sock.recv(4))
        return bool(kind == THRIFT_REPLY)

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "HMS_ENDPOINT": endpoint(lab),
            "HIVE_WAREHOUSE": self._warehouse(lab),
        }

    def _warehouse(self, lab: LabContext) -> str:
        if lab.home.settings.hive:
            return warehouse(lab)
        return f"file://{lab.home.data('hive') / 'warehouse'}"

    def _without_s3(self, lab: LabContext) -> dict[str, str]:
        """Let the metastore take addresses in S3 without a client for it.

        It makes a folder for each table, which nothing is written to: Iceberg's files come from others.
        """
        return {
            "fs.s3.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
            f"fs.viewfs.mounttable.{WAREHOUSE}.linkMergeSlash": (
                (lab.home.data("hive") / "warehouse").as_uri()
            ),
            "hive.stats.autogather": "false",
            "hive.warehouse.subdir.inherit.perms": "false",
        }
