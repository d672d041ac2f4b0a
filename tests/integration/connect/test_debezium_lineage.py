"""A real Debezium that reports lineage itself, an agent that watches it, and one job in the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.errors import HeadwaterError
from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

from .eye import Eye
from .reporting import Database, Reporting, Server
from .watching import ClusterAgent, Event, names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

NAMESPACE = "cdc"


class WatchedConnector:
    """One connector that reports itself, as the server shows it."""

    def __init__(
        self, reporting: Reporting, agent: ClusterAgent, url: str, more: dict[str, str]
    ) -> None:
        self.reporting, self.agent = reporting, agent
        self.prefix = unique("reported")
        self.database = Database(reporting.postgres)
        password = reporting.connect.secret("postgres.password")
        config = self.database.config(self.prefix, password, reporting.client)
        self.name = reporting.connect.create({**config, **more}, "reported")
        namespace = more.get("openlineage.integration.job.namespace", self.prefix)
        self.server = Server(url, namespace, f"{self.prefix}.0")
        tables, here = ("orders", "customers"), self.database.at
        self.tables = {
            f"dataset:postgres://{here['host']}:{here['port']}:{here['dbname']}.public.{table}"
            for table in tables
        }
        self.topics = {
            f"dataset:kafka://{reporting.kafka.bootstrap}:{self.prefix}.public.{table}"
            for table in tables
        }

    def wait(self, met: Callable[[], bool], what: str, seconds: float = 60) -> None:
        try:
            wait_until(met, seconds=seconds, what=what, interval=0.3)
        except HeadwaterError as error:
            states, graph = self.server.states(), sorted(self.server.graph())
            log = self.agent.log[-2000:]
            pytest.fail(f"{error.message}; runs {states}, graph {graph}:\n{log}")

    def wait_for_states(self, *states: str) -> None:
        """Wait until the job's runs are just these, the newest first."""
        self.wait(lambda: self.server.states() == list(states), f"runs {states}")

    def wait_for_lineage(self) -> None:
        """Wait until the job stands alone between its tables and topics."""
        job = f"job:{self.server.namespace}:{self.server.job}"
        whole = {job, *self.tables, *self.topics}
        self.wait(lambda: self.server.graph() == whole, f"{sorted(whole)} and nothing else")

    def remove(self) -> None:
        self.reporting.connect.http.delete(f"/connectors/{self.name}")
        self.wait(self.database.let_go, "the slot to be free")

    def events(self, who: str) -> list[Event]:
        return [e for e in self.server.events() if who in e["producer"]]


@pytest.fixture
def watched(reporting: Reporting, watcher: ClusterAgent, server: str) -> Iterator[WatchedConnector]:
    made = WatchedConnector(
        reporting, watcher, server,
        {
            "openlineage.integration.job.namespace": NAMESPACE,
            "openlineage.integration.dataset.kafka.bootstrap.servers": reporting.kafka.bootstrap,
            # An error ends the task at once, as it does in the end.
            "errors.max.retries": "0",
        },
    )  # fmt: skip
    made.wait_for_states("RUNNING")
    with Eye(Server(server, NAMESPACE, made.server.job), made.prefix, made.name):
        yield made
        made.remove()


def test_one_job_one_run_and_the_lineage_of_both(watched: WatchedConnector) -> None:
    watched.wait_for_states("RUNNING")
    watched.wait_for_lineage()
    jobs = watched.server.get("/api/v1/jobs", limit=100)["jobs"]
    ours = [
        job["name"] for job in jobs if watched.prefix in job["name"] or job["name"] == watched.name
    ]
    assert ours == [watched.server.job]
    (run,) = watched.server.runs()
    watched.wait(lambda: len(watched.events("headwater")) >= 2, "heartbeats")
    for who in ("debezium/debezium", "headwater"):
        told = watched.events(who)
        assert {e["run"]["runId"] for e in told} == {run["id"]}, who
        assert {(e["job"]["namespace"], e["job"]["name"]) for e in told} == {
            (NAMESPACE, watched.server.job)
        }

    def pairs() -> set[tuple[str, str]]:
        lineage = watched.events("headwater")[-1]["job"]["facets"]["lineage"]["entries"]
        return {
            (i["name"].rsplit(".")[-1], e["name"].rsplit(".")[-1])
            for e in lineage
            for i in e["inputs"]
        }

    both = {("orders", "orders"), ("customers", "customers")}
    watched.wait(lambda: pairs() == both, f"{both}")
    assert watched.server.states() == ["RUNNING"]


def test_a_pause_ends_the_run_and_a_resumed_connector_has_one_of_its_own(
    watched: WatchedConnector,
) -> None:
    watched.wait_for_states("RUNNING")
    watched.agent.command("pause", watched.name)
    watched.wait_for_states("COMPLETED")
    watched.agent.command("resume", watched.name)
    watched.wait_for_states("RUNNING", "COMPLETED")
    watched.wait_for_lineage()
    watched.reporting.connect.delete(watched.name)
    watched.wait_for_states("COMPLETED", "COMPLETED")
    watched.wait(lambda: len(watched.server.graph()) == 1, "its edges to end")


def test_what_was_paused_before_the_agent_came_runs_no_more(
    watched: WatchedConnector, tmp_path: Path
) -> None:
    watched.wait_for_states("RUNNING")
    watched.agent.kill()
    watched.reporting.connect.http.put(f"/connectors/{watched.name}/pause").raise_for_status()
    stranger = ClusterAgent(
        tmp_path, watched.agent.url, *watched.agent.options, env=watched.agent.env
    )
    assert watched.server.states() == ["RUNNING"]
    stranger.start()
    watched.wait_for_states("COMPLETED")
    stranger.kill()
    watched.agent.start()


def test_delete_ends_the_run_once(watched: WatchedConnector) -> None:
    watched.wait_for_states("RUNNING")
    watched.reporting.connect.delete(watched.name)
    watched.wait_for_states("COMPLETED")
    watched.wait(lambda: watched.name not in watched.agent.command("list"), "the connector to go")
    assert watched.server.states() == ["COMPLETED"]


def test_a_failure_is_told_and_recovery_is_a_new_run(watched: WatchedConnector) -> None:
    watched.wait_for_states("RUNNING")
    watched.wait(watched.database.break_off, "a connection to break off")
    watched.wait_for_states("FAILED")
    assert "task 0 FAILED" in str(watched.server.facets()["errorMessage"]["message"])
    watched.reporting.connect.http.post(
        f"/connectors/{watched.name}/restart?includeTasks=true&onlyFailed=true"
    ).raise_for_status()
    watched.wait_for_states("RUNNING", "FAILED")


def test_no_run_of_a_killed_worker_stays(watched: WatchedConnector) -> None:
    watched.wait_for_states("RUNNING")
    watched.reporting.kill()
    watched.reporting.start()
    watched.wait_for_states("RUNNING", "ABORTED")
    watched.wait_for_lineage()


def test_no_dataset_has_two_names_where_it_does_not_know_the_address(
    reporting: Reporting, watcher: ClusterAgent, server: str
) -> None:
    watched = WatchedConnector(reporting, watcher, server, {})
    watched.wait_for_states("RUNNING")

    def told() -> bool:
        theirs = [e for e in watched.events("debezium/debezium") if watched.prefix in str(e["job"])]
        topics = {name for e in theirs for name in names(e, "outputs")}
        return topics == {
            f"kafka://unknown:unknown {watched.prefix}.public.{t}" for t in ("orders", "customers")
        }

    watched.wait(told, "topics without an address")
    watched.wait_for_lineage()
    watched.remove()
    watched.wait_for_states("COMPLETED")
