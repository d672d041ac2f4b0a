"""The orders pipeline's two PySpark streams, as services of the lab."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import httpx

from headwater.lab.files.class_archive import archive_options
from headwater.lab.files.ivy import pyspark_jars
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers
from headwater.lab.services.headwater import HEARTBEAT_SECONDS
from headwater.lab.services.hive import WITHOUT_LOCKS, endpoint
from headwater.lab.services.logins import (
    kafka_env,
    producer_env,
    reader_headers,
    registry_env,
)
from headwater.lab.services.registry import CONFLUENT_API
from headwater.lab.services.s3 import credentials, warehouse
from headwater.lab.services.spark import SparkHistory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.lab.services.base import LabContext

BUNDLE = "pipeline"
# Python without Spark. PyIceberg lacks a package to ask Hive itself, and asks the REST catalog over it.
EXPORT_PROGRAM = "supplier_stats_export.py"
DRIVER_MEMORY = "512m"
# With the first compiler alone, Java has 48 MB for what it compiles. A driver with many
# kinds of plans fills them within two minutes, and Java then compiles no more and interprets what is new.
JVM_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=192m",
    "-Xss1m",
)


def programs() -> Path:
    """The folder of the pipeline's programs: in the wheel, or in a checkout."""
    shipped = Path(__file__).parents[1] / "pipelines"
    return shipped if shipped.is_dir() else Path(__file__).parents[4] / "pipelines"


def spark_job(
    lab: LabContext,
    program: str,
    *arguments: str,
    scratch: Path,
    master: str = "local[2]",
    conf: Sequence[tuple[str, object]] = (),
) -> Command:
    """How a program of the pipeline is run against this lab."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": scratch / "warehouse",
        "spark.local.dir": scratch / "tmp",
        # A quick start matters more than peak speed, as for the lab's other JVMs.
        "spark.driver.extraJavaOptions": " ".join([*JVM_OPTIONS, *archive_options()]),
        **_event_log(lab),
        **(_without_locks() if lab.home.settings.hive else {}),
        **dict(conf),
    }
    submit = ["--master", master, "--driver-memory", DRIVER_MEMORY]
    submit += ["--jars", ",".join(map(str, lab.jars(BUNDLE)))]
    for key, value in settings.items():
        submit += ["--conf", f"{key}={value}"]
    env = {
        "PYSPARK_SUBMIT_ARGS": shlex.join([*submit, "pyspark-shell"]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(pyspark_jars().parent),
        "SPARK_LOCAL_IP": LOOPBACK,
        "JAVA_HOME": str(Path(os.path.realpath(lab.java.executable)).parents[1]),
        "BOOTSTRAP": f"{LOOPBACK}:{lab.port('kafka')}",
        **kafka_env(lab),
        "REGISTRY_URL": lab.url("registry", CONFLUENT_API),
        **registry_env(lab),
        "ICEBERG_CATALOG_NAME": lab.home.settings.catalog,
        **catalog_env(lab, program),
        "ICEBERG_WAREHOUSE": warehouse(lab),
        "S3_ENDPOINT": lab.url("s3"),
        **credentials(lab),
        "OPENLINEAGE_URL": lab.url("server"),
        "OPENLINEAGE_NAMESPACE": lab.home.settings.namespace,
        **producer_env(lab),
        "HEADWATER_HEARTBEAT_SECONDS": str(HEARTBEAT_SECONDS),
        "HEADWATER_STATE_DIR": str(lab.home.root / "data" / "spark-state"),
    }
    return Command([sys.executable, str(programs() / program), *arguments], env)


def catalog_env(lab: LabContext, program: str) -> dict[str, str]:
    """Where a program of the pipeline asks for its tables."""
    if lab.home.settings.hive and Path(program).name != EXPORT_PROGRAM:
        # A REST catalog that the shell names would stand above Hive.
        return {"ICEBERG_CATALOG_URI": "", "HMS_ENDPOINT": endpoint(lab)}
    return {"ICEBERG_CATALOG_URI": lab.url("catalog")}


def _without_locks() -> dict[str, object]:
    return {f"spark.hadoop.{key}": value for key, value in WITHOUT_LOCKS.items()}


def _event_log(lab: LabContext) -> dict[str, object]:
    """The event log of a program, if this lab has a history server to read it."""
    if SparkHistory.name not in lab.home.settings.wanted:
        return {}
    events = SparkHistory.events(lab)
    # Spark does not start where the folder is missing.
    events.mkdir(parents=True, exist_ok=True)
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "true",
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "10m",
        "spark.headwater.history.url": lab.url(SparkHistory.name),
    }


class Stream(Service):
    optional = True
    needs = ("kafka", "registry", "catalog", "server")
    bundles = (BUNDLE,)
    program: ClassVar[str]
    arguments: ClassVar[tuple[str, ...]] = ()
    # Spark ends its query and the last lineage is sent.
    stop_seconds = 12.0

    def version(self) -> str:
        (jar,) = pyspark_jars().glob("spark-core_*.jar")
        return jar.stem.split("-")[-1]

    def port_names(self) -> tuple[str, ...]:
        return (self._ui,)

    @property
    def _ui(self) -> str:
        return f"{self.name}-ui"

    def prepare(self, lab: LabContext) -> None:
        (lab.home.root / "data" / "spark-state").mkdir(parents=True, exist_ok=True)

    def command(self, lab: LabContext) -> Command:
        data = lab.home.data(self.name)
        checkpoint = f"file://{data / 'checkpoint'}"
        page = [
            ("spark.ui.enabled", "true"),
            ("spark.ui.port", lab.port(self._ui)),
            ("spark.ui.showConsoleProgress", "false"),
            # A stream has a job for each micro-batch: the page need not hold a thousand of them.
            ("spark.ui.retainedJobs", 100),
            ("spark.ui.retainedStages", 100),
            ("spark.sql.ui.retainedExecutions", 50),
        ]
        words = ("--checkpoint", checkpoint, *self.arguments)
        return spark_job(lab, self.program, *words, scratch=data, conf=page)

    def ready(self, lab: LabContext) -> bool:
        """Its run is seen in the lineage server; while that is away, its own page answers."""
        path = f"/api/v1/namespaces/{lab.home.settings.namespace}/jobs/{self.name}"
        try:
            answer = answers(lab.url("server", path), headers=reader_headers(lab))
        except httpx.TransportError:
            return answers(self.page(lab)).is_success
        latest = answer.json().get("latestRun") or {}
        return bool(latest.get("state") == "RUNNING")

    def page(self, lab: LabContext) -> str:
        return lab.url(self._ui)

    def env(self, lab: LabContext) -> dict[str, str]:
        return {f"{self.name.upper().replace('-', '_')}_UI": self.page(lab)}


class SupplierStats(Stream):
    name = "supplier-stats"
    title = "PySpark stream: window totals"
    program = "supplier_stats_stream.py"


class IcebergIngestion(Stream):
    name = "iceberg-ingestion"
    title = "PySpark stream: orders into Iceberg"
    program = "iceberg_ingestion.py"
