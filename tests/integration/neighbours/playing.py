"""Neighbours in environments of their own, and the server in which they meet our jobs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from headwater.lab.waiting import wait_until
from tests.integration.spark.matrix import LOCKS, find_python, installed

HERE = Path(__file__).parent
PYTHON = "3.11"
SECONDS = 300
Json = dict[str, Any]


def environment(name: str) -> Path:
    """The folder of programs of a neighbour, installed from its lock."""
    python = find_python(PYTHON)
    assert python is not None, f"no Python {PYTHON}"
    return installed(name, LOCKS / f"{name}.lock", python) / "bin"


def variables(server: str, namespace: str, **more: str) -> dict[str, str]:
    """The variables of a program that reports to a server, with nothing of the caller's own."""
    dropped = ("OPENLINEAGE", "SPARK_", "PYSPARK", "PYTHON", "VIRTUAL_ENV", "HEADWATER_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    said = {"OPENLINEAGE_URL": server, "OPENLINEAGE_NAMESPACE": namespace}
    return kept | said | more


def dbt_variables(server: str, programs: Path, **more: str) -> dict[str, str]:
    """The variables of `dbt-ol`, which calls `dbt` by its name."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return variables(
        server, "dbt", **{"PATH": path, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", **more}
    )


def run(*argv: str | Path, cwd: Path, env: dict[str, str]) -> str:
    """Run a program to a good end; returns what it printed."""
    ended = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-6000:]
    return ended.stdout + ended.stderr


def settled(state: Path) -> None:
    """Wait until our programs have sent all they had to say."""
    wait_until(
        lambda: not list(state.rglob("outbox/**/*.db")), seconds=120, what="the outbox to empty"
    )


class Graph:
    """What the server shows of everybody's jobs and datasets."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def get(self, path: str, **query: str | int) -> Any:
        return self.http.get(path, params=query).raise_for_status().json()

    def dataset(self, namespace: str, name: str) -> Json:
        found: Json = self.get(
            f"/api/v2/datasets/{quote(namespace, safe='')}/{quote(name, safe='')}"
        )
        return found

    def writers(self, namespace: str, name: str) -> set[str]:
        return {job["name"] for job in self.dataset(namespace, name)["producers"]}

    def readers(self, namespace: str, name: str) -> set[str]:
        return {job["name"] for job in self.dataset(namespace, name)["consumers"]}

    def datasets(self, namespace: str) -> set[str]:
        """Every dataset of a store; several spellings of one are one."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/datasets"
        listed = [one["name"] for one in self.get(path, limit=1000)["datasets"]]
        return {self.dataset(namespace, name)["name"] for name in listed}

    def histories(self, namespace: str, name: str) -> list[list[str]]:
        """The columns of each schema that a dataset had, the first one first."""
        path = f"/api/v2/datasets/{quote(namespace, safe='')}/{quote(name, safe='')}/history"
        versions = self.get(path)["versions"]
        return [[field["name"] for field in one["fields"]] for one in reversed(versions)]

    def states(self, namespace: str) -> dict[str, list[str]]:
        """The states of the runs of each job of a namespace, the newest first."""
        space = f"/api/v1/namespaces/{quote(namespace, safe='')}/jobs"
        jobs = self.get(space, limit=1000)["jobs"]
        return {
            job["name"]: [
                run["state"]
                for run in self.get(f"{space}/{quote(job['name'], safe='')}/runs", limit=100)[
                    "runs"
                ]
            ]
            for job in jobs
        }

    def doctor(self) -> Json:
        found: Json = self.get("/api/v2/doctor")
        return found
