"""The newcomer's first command, whole: `headwater demo --once`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

import psutil
import pytest

from headwater.lab import process
from headwater.lab.demo.row_counts import RowCounter
from headwater.lab.demo.verdict import EDGES, Judge
from headwater.lab.lab import Lab
from headwater.lineage.naming import hive_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.demo.lineage_client import LineageClient


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "demo")
    yield made
    made.down()


def play(lab: Lab, folder: Path, *options: str) -> None:
    """Run the demo to its verdict, and see that nothing of it is left."""
    home = lab.home.root
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "demo", "--once", "--home", str(home), *options],
        cwd=folder,
        env={**os.environ, "CI": "true"},
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    verdict = json.loads((folder / "demo-verdict.json").read_text())
    assert verdict["ok"]
    assert verdict["missing"] == []
    assert len(verdict["jobs"]) == 8
    assert len(verdict["columns"]) >= 7
    assert process.find(home) == {}
    assert not [p for p in process.strays(home) if p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.timeout(900)
def test_the_whole_pipeline_is_one_graph_and_every_run_ends(lab: Lab, tmp_path: Path) -> None:
    play(lab, tmp_path)
    lab.up(["server"])
    assert Judge(lab.context).running() == []


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_same_pipeline_on_a_hive_metastore(lab: Lab, tmp_path: Path) -> None:
    play(lab, tmp_path, "--catalog", "hive")
    lab.up(["server", "catalog"])
    judge = Judge(lab.context)
    assert judge.running() == []

    # Every job that touches a table names it alike, and creating one leaves no other name behind.
    tables = {"orders_landing", "bids", "orders", "supplier_stats"}
    used = {d for _, inputs, outputs in EDGES for d in (*inputs, *outputs)}
    assert {judge.lineage.name(d) for d in used if d.startswith("warehouse ")} == {
        ("s3://warehouse", f"hive/{table}") for table in tables
    }
    assert listed(judge.lineage, "s3://warehouse") == {f"hive/{table}" for table in tables}
    metastore = hive_namespace(lab.env()["HMS_ENDPOINT"])
    for table in tables:
        found = judge.lineage.dataset(f"{metastore} default.{table}")
        assert (found["namespace"], found["name"]) == ("s3://warehouse", f"hive/{table}")

    catalog = RowCounter(lab.context, "").catalog
    for table in tables:
        kept = catalog.load_table(f"default.{table}")
        assert kept.location() == f"s3://warehouse/hive/{table}"
        assert [str(field.transform) for field in kept.spec().fields] == ["day"]
        assert kept.properties["write.metadata.previous-versions-max"] == "3"


def listed(lineage: LineageClient, namespace: str) -> set[str]:
    """Names of the datasets that the server has in a namespace."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/datasets"
    return {dataset["name"] for dataset in lineage.get(path, limit=1000)["datasets"]}
