"""PySpark programs run as their users run them, and the events they leave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark

from headwater.lab.files.jars import pipeline_jars
from headwater.lab.waiting import wait_until
from headwater.lineage.openlineage.events import read
from tests.strict_events import check

if TYPE_CHECKING:
    from headwater.lab.clients import CatalogClient

BIN = Path(sys.executable).parent
PROGRAMS = Path(__file__).parent / "programs"
TERMINAL = frozenset({"COMPLETE", "FAIL", "ABORT"})
SECONDS = 400


class Told(NamedTuple):
    """What a program told, and how it ended."""

    events: list[dict[str, Any]]
    code: int
    error: str
    output: str = ""

    def of(self, job: str) -> list[dict[str, Any]]:
        """The events of one job, as they were sent."""
        return [event for event in self.events if event["job"]["name"] == job]

    def types(self, job: str) -> list[str]:
        return [event["eventType"] for event in self.of(job)]

    def last(self, job: str) -> dict[str, Any]:
        return self.of(job)[-1]

    @property
    def jobs(self) -> set[str]:
        return {event["job"]["name"] for event in self.events}


class Drivers:
    """Runs programs against the lab's services, one at a time."""

    def __init__(self, work: Path, catalog: CatalogClient | None = None) -> None:
        self.work = work
        self.python = sys.executable
        self.seconds = SECONDS
        self.file = work / "events.ndjson"
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OPENLINEAGE", "SPARK_", "PYSPARK", "HEADWATER_"))
        }
        self.environment |= {
            "OPENLINEAGE__TRANSPORT__TYPE": "file",
            "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(self.file),
            "OPENLINEAGE__TRANSPORT__APPEND": "true",
            "OPENLINEAGE_NAMESPACE": "tests",
            "HEADWATER_STATE_DIR": str(work / "state"),
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(PROGRAMS.parents[3]), os.environ.get("PYTHONPATH")])
            ),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SUBMIT_OPTS": os.environ.get("SPARK_SUBMIT_OPTS", ""),
            "WAREHOUSE": str(work / "warehouse"),
            "JARS": os.pathsep.join(str(jar) for jar in pipeline_jars(spark=pyspark.__version__)),
        }
        if catalog is not None:
            settings = catalog.lab.home.settings
            self.environment |= {
                "ICEBERG_CATALOG_URI": catalog.url,
                "S3_ENDPOINT": catalog.lab.context.url("s3"),
                "AWS_ACCESS_KEY_ID": settings.s3_access_key,
                "AWS_SECRET_ACCESS_KEY": settings.s3_secret_key,
                "AWS_REGION": "us-east-1",
            }

    def run(self, *argv: str, **environment: str) -> Told:
        """Run one program to its end, and until everything it told has arrived."""
        self.file.unlink(missing_ok=True)
        ours = argv[0].endswith(".py")
        start = [self.python, str(PROGRAMS / argv[0])] if ours else [str(BIN / argv[0])]
        ended = subprocess.run(
            [*start, *argv[1:]],
            env=self.environment | environment,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=self.seconds,
            check=False,
        )
        self.wait_settled()
        return Told(self.events(), ended.returncode, ended.stderr, ended.stdout)

    def events(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def wait_settled(self) -> None:
        """Wait until no outbox is left: the watchdog has said what the driver could not."""
        folder = self.work / "state" / "outbox"
        wait_until(lambda: not list(folder.rglob("*.db")), seconds=120, what="the outbox to empty")


def check_lives(events: list[dict[str, Any]]) -> None:
    """Every run: START first, one terminal event last, ids of one job only, times in order."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        runs.setdefault(event["run"]["runId"], []).append(event)
    for run, told in runs.items():
        types = [event["eventType"] for event in told]
        assert types[0] == "START", (run, types)
        assert [kind in TERMINAL for kind in types].count(True) == 1, (run, types)
        assert types[-1] in TERMINAL, (run, types)
        assert set(types[1:-1]) <= {"RUNNING"}, (run, types)
        assert len({event["job"]["name"] for event in told}) == 1
        times = [event["eventTime"] for event in told]
        assert times == sorted(times), (run, times)
        assert run[14] == "7", "run ids are UUIDs of version 7"


def check_valid(events: list[dict[str, Any]]) -> None:
    """Every event can be read, and is as the published schemas say."""
    for event in events:
        read(json.dumps(event).encode())
    check(events)


def names(datasets: list[dict[str, Any]]) -> set[str]:
    return {dataset["name"] for dataset in datasets}
