"""The life of a Spark Connect client's actions and queries, from attach to the end of the process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from headwater.lab.waiting import wait_until

from ..drivers import Drivers, Told, check_lives, check_valid, names
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.full

CLIENT = Path(__file__).parent / "client.py"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    made = Server(folder, {"spark.sql.warehouse.dir": f"file://{folder}/warehouse"})
    yield made
    made.stop()


class Client:
    """One program, its events, and its process while it runs."""

    def __init__(self, work: Path, address: str, mode: str) -> None:
        self.drivers = Drivers(work)
        self.process = subprocess.Popen(
            [sys.executable, str(CLIENT), address, mode],
            env=self.drivers.environment | {"SPARK_CONNECT_MODE_ENABLED": "1"},
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def told(self) -> Told:
        """What it told, when it has ended."""
        try:
            _, error = self.process.communicate(timeout=180)
        finally:
            self.process.kill()
        self.drivers.wait_settled()
        found = Told(self.drivers.events(), self.process.returncode, error)
        check_lives(found.events)
        check_valid(found.events)
        return found


def job(told: Told, part: str) -> str:
    (found,) = {name for name in told.jobs if part in name}
    return found


def facet(event: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = event["run"]["facets"].get(name, {})
    return found


def test_batches_have_one_life_each(server: Server, tmp_path: Path) -> None:
    client = Client(tmp_path, server.address, "batch")
    slow = "insert_into_hadoop_fs_relation"

    def started() -> bool:
        return any(
            event["eventType"] == "START" and event["job"]["name"].endswith("slow_out")
            for event in client.drivers.events()
        )

    wait_until(started, seconds=120, what="the slow write to start")
    assert not (tmp_path / "slow-is-over").exists(), "START comes while the work goes on"
    told = client.told()
    assert told.code == 0, told.error

    assert told.last("supplier_stats")["eventType"] == "COMPLETE"
    application = told.last("supplier_stats")["run"]["runId"]
    for event in told.events:
        if event["job"]["name"] != "supplier_stats":
            assert facet(event, "parent")["run"]["runId"] == application
    made = told.last(job(told, "create_table_as_select"))
    assert made["job"]["name"] == "supplier_stats.create_table_as_select.default_stats"
    assert names(made["inputs"]) == {str(tmp_path / "orders")}
    (stats,) = made["outputs"]
    assert stats["facets"]["symlinks"]["identifiers"][0]["name"] == "default.stats"
    fields = stats["facets"]["columnLineage"]["fields"]
    assert [one["field"] for one in fields["twice"]["inputFields"]] == ["price"]
    assert names(told.last(job(told, ".count."))["inputs"]) == names(made["outputs"])

    assert told.types(f"supplier_stats.{slow}.{tmp_path.name}_slow_out")[-1] == "COMPLETE"
    failed = told.last(job(told, "bad_out"))
    assert failed["eventType"] == "FAIL"
    # A server of Spark 3.5 cuts what it says of an error, sooner where paths are long.
    assert "in bad" in str(facet(failed, "errorMessage"))
    refused = [e for e in told.events if e["eventType"] == "FAIL" and "insert" in e["job"]["name"]]
    assert any("nothing" in facet(event, "errorMessage")["message"] for event in refused)
    assert not [name for name in told.jobs if "unheard" in name], "detached"
    assert "lineage:" not in told.error
    assert "ContextLogger" not in "".join(
        line for line in told.error.splitlines() if "nothing" not in line
    )


def test_statements_that_write_several_tables(server: Server, tmp_path: Path) -> None:
    told = Client(tmp_path, server.address, "statements").told()
    assert told.code == 0, told.error
    rows = str(tmp_path / "rows")

    def columns(output: dict[str, Any]) -> dict[str, list[str]]:
        fields = output["facets"]["columnLineage"]["fields"].items()
        return {name: [one["field"] for one in field["inputFields"]] for name, field in fields}

    def ended(job: str) -> dict[str, Any]:
        assert [kind for kind in told.types(f"supplier_stats.{job}") if kind != "RUNNING"][
            0::2
        ] == ["START"]
        return told.last(f"supplier_stats.{job}")

    done = ended("multi_insert.default_first")
    assert done["eventType"] == "COMPLETE"
    assert not facet(done, "headwater_problems")
    assert names(done["inputs"]) == {rows}
    first, second = done["outputs"]
    assert [one["name"].rpartition("/")[2] for one in (first, second)] == ["first", "second"]
    assert columns(first) == {"x": ["id"], "y": ["v"]}
    assert columns(second) == {"x": ["id"], "y": ["k"]}
    assert "lifecycleStateChange" not in first["facets"]
    assert second["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"

    done = ended("multi_insert.default_second")
    assert done["eventType"] == "COMPLETE"
    assert [columns(one) for one in done["outputs"]] == [
        {"x": ["v"], "y": ["id"]},
        {"x": ["k"], "y": ["id"]},
    ]
    refused = ended("multi_insert.default_third")
    assert refused["eventType"] == "FAIL"
    assert "nothing" in facet(refused, "errorMessage")["message"]
    assert {one["name"].rpartition("/")[2] for one in refused["outputs"]} == {"third", "fourth"}
    if pyspark.__version__ >= "4":
        script = ended("script.third")
        assert script["eventType"] == "COMPLETE"
        assert not script["inputs"]
        assert not script["outputs"]
        (problem,) = facet(script, "headwater_problems")["problems"]
        assert problem.endswith("is not known; its text names third, fourth")

    def partial(part: str) -> list[bool]:
        ends = [e for e in told.of(job(told, part)) if e["eventType"] == "COMPLETE"]
        assert all(
            e["outputs"][0]["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "OVERWRITE"
            for e in ends
        )
        return ["headwater_overwrite" in e["outputs"][0].get("outputFacets", {}) for e in ends]

    assert partial("insert_into_hadoop_fs_relation.default_parted") == [True, False]
    assert partial("_days") == [True, True]


def test_queries_are_one_run_each_whatever_their_end(server: Server, tmp_path: Path) -> None:
    told = Client(tmp_path, server.address, "stream").told()
    assert told.code == 0, told.error
    bounded = job(told, ".streaming.")
    ends = {name: told.last(name)["eventType"] for name in ("stopped", bounded, "failing", "left")}
    assert ends == {"stopped": "ABORT", bounded: "COMPLETE", "failing": "FAIL", "left": "ABORT"}
    assert "ValueError" in str(facet(told.last("failing"), "errorMessage"))
    moved = facet(told.last("stopped"), "headwater_streaming")
    assert moved["batchId"] >= 1
    assert names(told.last(bounded)["inputs"]) == {str(tmp_path / "come")}
    assert names(told.last(bounded)["outputs"]) == {str(tmp_path / "gone")}
    (read,) = told.last(bounded)["inputs"]
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 3
    for name in ends:
        assert len({event["run"]["runId"] for event in told.of(name)}) == 1
        assert told.of(name)[0]["outputs"] == told.last(name)["outputs"]


def test_queries_that_end_with_the_program_end_as_they_did(server: Server, tmp_path: Path) -> None:
    told = Client(tmp_path, server.address, "last").told()
    assert told.code == 0, told.error
    ends = [told.last(name)["eventType"] for name in (job(told, ".streaming."), "failing")]
    assert ends == ["COMPLETE", "FAIL"]


def test_an_exit_with_a_code_is_a_failure(server: Server, tmp_path: Path) -> None:
    told = Client(tmp_path, server.address, "leave").told()
    assert told.code == 3, told.error
    assert told.last("supplier_stats")["eventType"] == "FAIL"
    assert told.last(job(told, "left_out"))["eventType"] == "COMPLETE"


def ready(tmp_path: Path, address: str) -> Client:
    client = Client(tmp_path, address, "wait")
    wait_until((tmp_path / "ready").exists, seconds=120, what="the query to run")
    return client


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_a_signal_aborts(server: Server, tmp_path: Path, number: signal.Signals) -> None:
    client = ready(tmp_path, server.address)
    client.process.send_signal(number)
    told = client.told()
    assert told.last("waiting")["eventType"] == "ABORT"
    assert told.last("supplier_stats")["eventType"] == "ABORT"


def test_a_server_that_is_gone_fails_its_queries(tmp_path: Path) -> None:
    server = Server(tmp_path / "server", {})
    client = ready(tmp_path, server.address)
    server.kill()

    def failed() -> bool:
        return any(
            event["job"]["name"] == "waiting" and event["eventType"] == "FAIL"
            for event in client.drivers.events()
        )

    wait_until(failed, seconds=120, what="the failure to be told")
    client.process.terminate()
    told = client.told()
    assert told.types("waiting")[-1] == "FAIL"
