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

if TYPE_CHECKING:
    from headwater.lab.services.base import LabContext

THRIFT_CALL = 0x80010001
THRIFT_REPLY = 0x80010002


class Hive(Service):
    name = "hive"
    title = "Hive metastore"
    optional = True

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
            "hive.metastore.warehouse.dir": f"file://{data / 'warehouse'}",
            "hive.async.log.enabled": "false",
            "metastore.stats.autogather": "false",
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
            "HMS_ENDPOINT": f"thrift://{LOOPBACK}:{lab.port('hive')}",
            "HIVE_WAREHOUSE": f"file://{lab.home.data('hive') / 'warehouse'}",
        }
