"""Jobs of the lab are watched where their pages say: at Spark's own page, and later at the history server's."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.lab.clients import KafkaClient
from headwater.lab.demo.lineage_client import LineageClient
from headwater.lab.lab import Lab
from headwater.lab.waiting import wait_until
from tests.integration.pipelines import wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STREAM = "supplier-stats"
BATCH = """\
import headwater.spark
from pyspark.sql import SparkSession
spark = headwater.spark.attach(SparkSession.builder.appName("numbers").getOrCreate())
spark.range(3).write.parquet("numbers.parquet")
spark.stop()
"""


@pytest.fixture
def watched_lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab with a history server and with orders for a stream to read."""
    lab = Lab(tmp_path / "lab")
    lab.up(["kafka", "registry", "spark-history"])
    number = wire.register(lab.env()["REGISTRY_URL"], "orders", wire.schema())
    order = wire.encode(wire.schema(), number, wire.order("o-1", "9.99", "12:00"))
    KafkaClient(lab, "kafka").produce("orders", [order])
    yield lab
    lab.reset()


def answers(url: str) -> bool:
    """Whether a browser that follows the link sees a page; the history server needs a moment."""
    try:
        return httpx.get(url, follow_redirects=True, trust_env=False, timeout=30).is_success
    except httpx.HTTPError:
        return False


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_links_of_a_run_lead_to_its_pages(watched_lab: Lab, tmp_path: Path) -> None:
    lab = watched_lab
    rows = {row.service: row for row in lab.up([STREAM])}
    lineage = LineageClient(lab.context)

    def pages(job: str = STREAM) -> dict[str, Any]:
        run = lineage.get(f"/api/v1/jobs/runs/{lineage.latest(job)['id']}")
        return dict(run["facets"].get("headwater_spark", {}))

    told = pages()
    assert told["ui"].rstrip("/") == rows[STREAM].page
    assert answers(told["ui"])
    history = lab.env()["SPARK_HISTORY_URL"]
    assert told["history"].startswith(f"{history}/history/")
    wait_until(lambda: answers(told["history"]), seconds=60, what="the stream in the history")

    lab.down([STREAM])
    assert lineage.latest(STREAM)["state"] == "ABORTED"
    assert not answers(told["ui"])
    assert pages()["history"] == told["history"]
    assert answers(told["history"])

    # Those of a batch, which has ended when anybody looks.
    (tmp_path / "one_batch.py").write_text(BATCH)
    home = ["--home", str(lab.home.root)]
    subprocess.run(
        [sys.executable, "-m", "headwater", "lab", "run", *home, "one_batch.py"],
        cwd=tmp_path, check=True, timeout=300,
    )  # fmt: skip
    wait_until(
        lambda: lineage.latest("numbers")["state"] == "COMPLETED", seconds=60, what="its end"
    )
    ended = pages("numbers")["history"]
    assert ended.startswith(f"{history}/history/")
    wait_until(lambda: answers(ended), seconds=60, what="the batch in the history")
