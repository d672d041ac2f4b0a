"""A Spark standalone cluster from the installed PySpark: master, two workers, history server."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from headwater.lab.files.ivy import pyspark_jars
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers
from headwater.lab.services.s3 import credentials

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.services.base import LabContext

# What Spark asks of a modern JVM; its own launcher adds the same.
OPENS = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
]


# A master that comes back waits this long for workers that were killed with it.
WORKER_SECONDS = 12


def _core() -> tuple[str, str]:
    """The versions of Scala and Spark, read from the name of Spark's core jar."""
    (jar,) = pyspark_jars().glob("spark-core_*.jar")
    scala, _, spark = jar.stem.removeprefix("spark-core_").partition("-")
    return scala, spark


class SparkDaemon(Service):
    optional = True
    main: ClassVar[str]

    def version(self) -> str:
        return _core()[1]

    @abstractmethod
    def arguments(self, lab: LabContext) -> list[str]:
        """What follows the main class."""

    def settings(self, lab: LabContext) -> dict[str, object]:
        return {}

    def command(self, lab: LabContext) -> Command:
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS]
        settings = {"spark.worker.timeout": WORKER_SECONDS, **self.settings(lab)}
        defines = [f"-D{key}={value}" for key, value in settings.items()]
        argv = lab.run_java(
            self.name,
            self.main,
            *self.arguments(lab),
            classpath=lab.pyspark_classpath(),
            heap=256,
            flags=[*opens, *defines],
        )
        return Command(
            argv,
            {
                "SPARK_HOME": str(pyspark_jars().parent),
                # Keeps the web pages on the loopback address too.
                "SPARK_LOCAL_IP": LOOPBACK,
                # Spark's scripts set it; without it a worker cannot start an executor.
                "SPARK_SCALA_VERSION": _core()[0],
            },
        )


class SparkMaster(SparkDaemon):
    name = "spark"
    title = "Spark master"
    ports = ("spark", "spark-ui")
    main = "org.apache.spark.deploy.master.Master"

    def arguments(self, lab: LabContext) -> list[str]:
        ports = ["--port", str(lab.port("spark")), "--webui-port", str(lab.port("spark-ui"))]
        return ["--host", LOOPBACK, *ports]

    def settings(self, lab: LabContext) -> dict[str, object]:
        # A master that comes back knows its workers and applications again.
        return {
            "spark.deploy.recoveryMode": "FILESYSTEM",
            "spark.deploy.recoveryDirectory": lab.home.data("spark") / "recovery",
            "spark.master.rest.enabled": "false",
        }

    def prepare(self, lab: LabContext) -> None:
        (lab.home.data("spark") / "recovery").mkdir(parents=True, exist_ok=True)

    def ready(self, lab: LabContext) -> bool:
        return bool(answers(lab.url("spark-ui", "/json/")).json()["status"] == "ALIVE")

    def page(self, lab: LabContext) -> str:
        return lab.url("spark-ui")

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "SPARK_MASTER": f"spark://{LOOPBACK}:{lab.port('spark')}",
            "SPARK_MASTER_UI": self.page(lab),
            "SPARK_LOCAL_IP": LOOPBACK,
        }


class SparkWorker(SparkDaemon):
    needs = ("spark",)
    main = "org.apache.spark.deploy.worker.Worker"

    def arguments(self, lab: LabContext) -> list[str]:
        ports = [
            "--port",
            str(lab.port(self.name)),
            "--webui-port",
            str(lab.port(f"{self.name}-ui")),
        ]
        size = [
            "--cores",
            "2",
            "--memory",
            "2g",
            "--work-dir",
            str(lab.home.data(self.name) / "work"),
        ]
        return ["--host", LOOPBACK, *ports, *size, f"spark://{LOOPBACK}:{lab.port('spark')}"]

    def command(self, lab: LabContext) -> Command:
        # The machines of a cluster may reach its storage: executors inherit this, and no job has to
        # carry keys in its settings, which Spark would write into its event log.
        found = super().command(lab)
        return Command(found.argv, {**found.env, **credentials(lab)})

    def ready(self, lab: LabContext) -> bool:
        workers = answers(lab.url("spark-ui", "/json/")).json()["workers"]
        here = [w for w in workers if w["port"] == lab.port(self.name)]
        return any(worker["state"] == "ALIVE" for worker in here)

    def page(self, lab: LabContext) -> str:
        return lab.url(f"{self.name}-ui")

    def env(self, lab: LabContext) -> dict[str, str]:
        return {}


class SparkWorker1(SparkWorker):
    name = "spark-worker-1"
    title = "Spark worker"
    ports = ("spark-worker-1", "spark-worker-1-ui")


class SparkWorker2(SparkWorker):
    name = "spark-worker-2"
    title = "Spark worker"
    ports = ("spark-worker-2", "spark-worker-2-ui")


class SparkHistory(SparkDaemon):
    name = "spark-history"
    title = "Spark history server"
    main = "org.apache.spark.deploy.history.HistoryServer"

    def arguments(self, lab: LabContext) -> list[str]:
        return []

    def settings(self, lab: LabContext) -> dict[str, object]:
        return {
            "spark.history.ui.port": lab.port(self.name),
            "spark.history.fs.logDirectory": f"file://{self.events(lab)}",
            "spark.history.fs.update.interval": "2s",
            # A stream writes its log for as long as it runs.
            "spark.history.fs.eventLog.rolling.maxFilesToRetain": 5,
        }

    def prepare(self, lab: LabContext) -> None:
        self.events(lab).mkdir(parents=True, exist_ok=True)

    def ready(self, lab: LabContext) -> bool:
        return answers(lab.url(self.name, "/api/v1/applications")).status_code == 200

    def page(self, lab: LabContext) -> str:
        return lab.url(self.name)

    def env(self, lab: LabContext) -> dict[str, str]:
        # An application takes this for a URI, where the server takes its own setting for a path.
        events = self.events(lab).as_uri()
        return {"SPARK_HISTORY_URL": self.page(lab), "SPARK_EVENT_LOG_DIR": events}

    @classmethod
    def events(cls, lab: LabContext) -> Path:
        """The folder that programs write their event logs to."""
        return lab.home.data(cls.name) / "events"
