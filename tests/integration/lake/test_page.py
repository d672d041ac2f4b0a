"""The commands of docs/lake.md, in the page's order, on a real Kafka, Spark and catalog."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lab.services.pipeline_streams import spark_job
from tests.integration.docs.reader import lines
from tests.integration.server.making import event
from tests.integration.server.test_forward import forwarded, logged
from tests.integration.server.test_kafka import until

from .test_stream import post

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.server.conftest import Process

    from .lakes import TestLake

PAGE = Path(__file__).parents[3] / "docs" / "lake.md"
SAYS = {
    "trace": "load_orders",
    "diff": "corrected",
    "audit": "load_orders",
    "lake sql": "COMPLETE",
    "lake ask": "load_orders",
    "lake analyse": "3 datasets",
    "lake analysis": "orders",
    "lake maintain": "events",
    "lake repair": "0 late events",
}
"""What the answer of each has in it, on the two events below."""


def loaded(day: str, run: int, read: str) -> dict[str, Any]:
    made = event("COMPLETE", 0, run=run, job="load_orders", inputs=[read], outputs=["orders"])
    return made | {"eventTime": f"{day}T12:00:00Z"}


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_page_can_be_followed(
    lake: TestLake, server: Callable[[], Process], tmp_path: Path
) -> None:
    one = server()
    post(one, loaded("2025-02-28", 1, "raw"), loaded("2025-03-01", 2, "corrected"))
    until(lambda: forwarded(one) == len(logged(one)))
    settings = spark_job(lake.lab.context, "lake.py", scratch=tmp_path).env
    name = str(settings["ICEBERG_CATALOG_NAME"])
    uri = str(settings["ICEBERG_CATALOG_URI"])
    environment = {
        **os.environ,
        **{key: str(value) for key, value in settings.items()},
        **{
            f"PYICEBERG_CATALOG__{name.upper()}__{key}": value
            for key, value in (
                ("URI", uri),
                ("S3__ENDPOINT", str(settings["S3_ENDPOINT"])),
                ("S3__ACCESS_KEY_ID", str(settings["AWS_ACCESS_KEY_ID"])),
                ("S3__SECRET_ACCESS_KEY", str(settings["AWS_SECRET_ACCESS_KEY"])),
            )
        },
        "AVAILABLE_NOW": "1",  # the stream ends once it has what is there
        "OPENLINEAGE_DISABLED": "true",
        "COLUMNS": "200",
    }
    here = {
        "--bootstrap kafka-1:9092": f"--topic {lake.topic}",  # the address stands in BOOTSTRAP
        "--catalog prod": f"--catalog {name} --namespace {lake.namespace}",
        "https://catalog:8181": uri,
        "s3a://lake/checkpoints/lineage": lake.checkpoint.as_uri(),
        "dataset:s3://warehouse:orders": "dataset:s3://lake:orders",
        "iceberg://prod/lineage": f"iceberg://{name}/{lake.namespace}",
    }

    def say(command: str) -> str:
        for shown, real in here.items():
            command = command.replace(shown, real)
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(
            words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr[-3000:]}"
        return done.stdout

    asked = [
        line.command
        for line in lines(PAGE.read_text())
        if line.command.startswith("headwater") and "--forward-kafka" not in line.command
    ]
    assert asked[0].startswith("headwater lake run")
    answered = {command: say(command) for command in asked}
    for what, text in SAYS.items():
        found = [said for c, said in answered.items() if c.startswith(f"headwater {what} ")]
        assert found, f"{what}: not on the page"
        assert all(text in said for said in found), f"{what}: {found}"
