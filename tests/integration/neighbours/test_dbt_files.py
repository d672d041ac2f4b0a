"""dbt on files that it calls tables: doctor knows the file of a source, and says so of a model."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from .playing import HERE, Graph, dbt_variables, environment, run, variables

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

SOURCES = """\
sources:
  - name: raw
    meta:
      external_location: "{folder}/{{name}}.csv"
    tables:
      - name: bids
        columns: [{{name: bid_id, data_type: text}}, {{name: price, data_type: numeric}}]
"""
MODEL = """\
{{{{ config(materialized="external", location="{folder}/totals.parquet") }}}}
select count(*) as bids, sum(price) as total from {{{{ source("raw", "bids") }}}}
"""


LANDS = """\
import sys
from pathlib import Path
import headwater
with headwater.run("lands", namespace="ours") as run:
    Path(sys.argv[1]).write_text("bid_id,price\\na,1\\nb,2\\n")
    run.outputs(("file", sys.argv[1]))
"""


def test_files_that_dbt_calls_tables(server: str, tmp_path: Path) -> None:
    programs, file, project = environment("dbt"), tmp_path / "shop.duckdb", tmp_path / "shop"
    bids = tmp_path / "bids.csv"
    shutil.copytree(HERE / "dbt_shop", project)
    (project / "models" / "raw.yml").write_text(SOURCES.format(folder=tmp_path))
    (project / "models" / "bid_totals.sql").write_text(MODEL.format(folder=tmp_path))
    ours = variables(server, "ours", HEADWATER_STATE_DIR=str(tmp_path / "state"))
    run(sys.executable, "-c", LANDS, bids, cwd=tmp_path, env=ours)
    options: list[str | Path] = [
        "--project-dir",
        project,
        "--profiles-dir",
        project,
        "--select",
        "bid_totals",
    ]
    env = dbt_variables(server, programs, DUCKDB_FILE=str(file))
    run(programs / "dbt-ol", "build", *options, cwd=tmp_path, env=env)

    graph = Graph(server)
    found = graph.doctor()
    # As the origin of columns dbt names the file itself, as a table.
    aliases = {pair["alias"]["name"] for pair in found["pairs"]}
    assert aliases == {"shop.raw.bids", str(bids)}
    for pair in found["pairs"]:
        assert (pair["rule"], pair["score"] >= found["defaultScore"]) == ("file", True)
        assert pair["alias"]["namespace"] == f"duckdb://{file}"
        assert pair["dataset"] == {"namespace": "file", "name": str(bids)}
    (unknown,) = [one for one in found["findings"] if one["kind"] == "external file"]
    assert unknown["named"]["name"] == "shop.main.bid_totals"

    graph.http.post("/api/v2/doctor", json={"action": "apply"}).raise_for_status()
    assert graph.doctor()["pairs"] == []
    assert graph.writers("file", str(bids)) == {"lands"}
    assert graph.readers("file", str(bids)) == {"shop.main.shop.bid_totals.build.run"}
