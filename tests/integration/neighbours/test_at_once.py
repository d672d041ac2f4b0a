"""Four producers that report one table at the same time, each by a name and columns of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headwater.lab.files.ivy import pyspark_jar
from headwater.lab.files.jars import peer_jar
from headwater.lab.java import find_java

from .playing import HERE, SECONDS, Graph, dbt_variables, environment, run, settled, variables

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

RUNS = "12"


def test_one_table_without_flapping(server: str, tmp_path: Path) -> None:
    programs, told = environment("dbt"), HERE / "programs"
    file, project, state = tmp_path / "shop.duckdb", tmp_path / "shop", tmp_path / "state"
    shutil.copytree(HERE / "dbt_shop", project)
    create = "create table orders (order_id text, supplier text, price decimal(10, 2))"
    filled = f"import duckdb; duckdb.connect('{file}').execute('{create}')"
    run(programs / "python", "-c", filled, cwd=tmp_path, env=variables(server, "dbt"))
    space = f"duckdb://{file}"
    classes = os.pathsep.join(map(str, [peer_jar(), pyspark_jar("slf4j-api")]))
    java = ["-XX:TieredStopAtLevel=1", "-cp", classes, told / "Reader.java"]
    commands = {
        "ours": [sys.executable, told / "writer.py", space, "orders", RUNS],
        "python": [programs / "python", told / "reader.py", space, "main.orders", RUNS],
        "java": [find_java().executable, *java, server, space, "shop.main.orders", RUNS],
        "dbt": [programs / "dbt-ol", "build", "--project-dir", project, "--profiles-dir", project],
    }
    env = dbt_variables(server, programs, DUCKDB_FILE=str(file), HEADWATER_STATE_DIR=str(state))
    started = {
        name: subprocess.Popen(
            [str(word) for word in argv],
            env=env, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for name, argv in commands.items()
    }  # fmt: skip
    for name, one in started.items():
        said, _ = one.communicate(timeout=SECONDS)
        assert one.returncode == 0, (name, said[-3000:])
    settled(state)
    graph, orders = Graph(server), (space, "shop.main.orders")
    assert graph.datasets(space) == {"shop.main.orders", "shop.main.supplier_totals"}
    assert graph.writers(*orders) == {"writer"}
    assert graph.readers(*orders) == {"reader", "shop.main.shop.supplier_totals.build.run"}
    assert graph.histories(*orders) == [["order_id", "supplier", "price"]]
    for namespace, runs in (("ours", RUNS), ("python", RUNS), ("java", RUNS), ("dbt", 1)):
        for job, states in graph.states(namespace).items():
            assert states == ["COMPLETED"] * int(runs), (namespace, job)
    changes = graph.get("/api/v2/overview")["changes"]
    assert [one for one in changes if one["change"] != "edges"] == []
    jobs = [(one["job"]["namespace"], one["job"]["name"]) for one in changes]
    assert len(jobs) == len(set(jobs)), "an edge comes once and stays"
    diagnosis = graph.doctor()
    assert diagnosis["pairs"] == []
    assert [one for one in diagnosis["findings"] if one["kind"] == "schema"] == []
