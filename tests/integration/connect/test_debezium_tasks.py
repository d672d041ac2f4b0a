"""A real Debezium with three tasks that report a job each: one job and one run, whatever happens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from headwater.errors import HeadwaterError
from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

from .eye import LIVE, SOON, Eye
from .reporting import PARTITIONS, Gate, Server, Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .reporting import Reporting
    from .watching import ClusterAgent

pytestmark = pytest.mark.timeout(300)


class Sunk:
    """The connector, as the server shows it."""

    def __init__(
        self, reporting: Reporting, agent: ClusterAgent, url: str, gate: Gate | None = None
    ) -> None:
        self.reporting, self.agent, self.url = reporting, agent, url
        self.sink = Sink(reporting.kafka, reporting.postgres)
        if gate:
            self.sink.at["port"] = gate.port
        password = reporting.connect.secret("postgres.password")
        self.config = self.sink.config(password, reporting.client)
        if gate:  # its tasks do not run until the gate is open
            self.name = unique("sunk")
            self.put(self.config)
        else:
            self.name = reporting.connect.create(self.config, "sunk")
        self.server = self.again()
        self.rows = PARTITIONS

    def again(self, task: int = 0) -> Server:
        return Server(self.url, self.name, f"{self.name}.{task}")

    def parts(self) -> list[list[str]]:
        """The states of the runs that the further tasks began."""
        return [self.again(task).states() for task in range(1, PARTITIONS)]

    def wait(self, met: Callable[[], bool], what: str, seconds: float = 60) -> None:
        try:
            wait_until(met, seconds=seconds, what=what, interval=0.2)
        except HeadwaterError as error:
            shown = [self.server.states(), *self.parts(), self.server.jobs(self.name)]
            tasks = [str(task)[:300] for task in self.reporting.connect.status(self.name)["tasks"]]
            pytest.fail(f"{error.message}; {shown}, {tasks}:\n{self.agent.log[-3000:]}")

    def wait_for_states(self, *states: str) -> None:
        """Wait until the job's runs are just these, the newest first."""
        self.wait(lambda: self.server.states() == list(states), f"runs {states}")

    def wait_for_rest(self) -> None:
        """Wait until no further task has a run under way."""
        self.wait(lambda: not self.under_way(), "the parts to end")

    def under_way(self) -> list[str]:
        return [state for part in self.parts() for state in part if state in LIVE]

    def spoil(self) -> None:
        """Let every task fail before its own code sees why, so that it calls its end complete."""
        for partition in range(PARTITIONS):
            self.sink.write(self.sink.topics[0], partition, "no JSON")
        self.wait_for_failed(PARTITIONS)

    def mend(self) -> None:
        """Leave out what cannot be read."""
        self.put({**self.config, "errors.tolerance": "all"})

    def put(self, config: dict[str, str]) -> None:
        place = f"/connectors/{self.name}/config"
        self.reporting.connect.http.put(place, json=config).raise_for_status()

    def fail(self, partition: int) -> None:
        """Let the task that reads the partition fail at a row, and be able to go on after it."""
        table = self.sink.topics[0]
        self.sink.execute(f"alter table {table} add constraint small check (id < 1000) not valid")
        self.sink.produce(table, partition, 1000 + self.rows)
        self.rows += 1
        self.wait_for_failed(1)
        self.sink.execute(f"alter table {table} drop constraint small")

    def wait_for_failed(self, count: int) -> None:
        def failed() -> bool:
            tasks = self.reporting.connect.status(self.name)["tasks"]
            return [task["state"] for task in tasks].count("FAILED") >= count

        self.wait(failed, f"{count} tasks to fail")

    def restart(self) -> None:
        """Begin anew what failed; a row that one task failed at may have moved to another."""

        def running() -> bool:
            tasks = self.reporting.connect.status(self.name)["tasks"]
            states = {task["state"] for task in tasks}
            if "FAILED" in states:
                self.reporting.connect.http.post(
                    f"/connectors/{self.name}/restart?includeTasks=true&onlyFailed=true"
                ).raise_for_status()
            return states == {"RUNNING"}

        self.wait(running, "all tasks to run")

    def works(self) -> None:
        """All rows of the first topic are in its table."""
        table = self.sink.topics[0]
        self.wait(lambda: self.sink.rows(table) == self.rows, f"{self.rows} rows")


@pytest.fixture
def sunk(reporting: Reporting, watcher: ClusterAgent, server: str) -> Iterator[Sunk]:
    made = Sunk(reporting, watcher, server)
    yield made
    reporting.connect.http.delete(f"/connectors/{made.name}")


@pytest.fixture
def eye(sunk: Sunk) -> Iterator[Eye]:
    """From the moment on that the job is shown as one."""
    sunk.wait(lambda: sunk.server.jobs(sunk.name) == [sunk.server.job], "one job")
    sunk.wait_for_states("RUNNING")
    with Eye(sunk.again(), sunk.name) as made:
        yield made


@pytest.mark.full
def test_three_tasks_are_one_job_with_one_run_through_all_its_life(sunk: Sunk, eye: Eye) -> None:
    sunk.works()
    sunk.wait(lambda: sunk.parts() == [["RUNNING"]] * 2, "a run of each further task")
    job = f"job:{sunk.name}:{sunk.name}.0"
    here = sunk.sink.at
    whole = {
        job,
        *(f"dataset:kafka://{sunk.sink.kafka.bootstrap}:{topic}" for topic in sunk.sink.topics),
        *(
            f"dataset:postgres://{here['host']}:{here['port']}:{here['dbname']}.public.{topic}"
            for topic in sunk.sink.topics
        ),
    }
    sunk.wait(lambda: sunk.server.graph() == whole, f"{sorted(whole)} and nothing else")
    sunk.spoil()
    sunk.wait_for_states("FAILED")
    assert "Tolerance exceeded" in str(sunk.server.facets()["errorMessage"]["message"])
    sunk.wait_for_rest()
    sunk.mend()
    sunk.wait_for_states("RUNNING", "FAILED")
    sunk.works()
    sunk.agent.command("pause", sunk.name)
    sunk.wait_for_states("COMPLETED", "FAILED")
    sunk.wait_for_rest()
    sunk.agent.command("resume", sunk.name)
    sunk.wait_for_states("RUNNING", "COMPLETED", "FAILED")
    assert eye.doubled < SOON
    sunk.reporting.connect.delete(sunk.name)
    sunk.wait_for_states("COMPLETED", "COMPLETED", "FAILED")
    sunk.wait_for_rest()
    sunk.wait(lambda: sunk.server.graph() == {job}, "its edges to end")


@pytest.mark.full
def test_tasks_that_take_long_to_start_keep_their_runs(
    reporting: Reporting, watcher: ClusterAgent, server: str
) -> None:
    """Debezium reports a run before it connects; until then Connect shows no task at all."""
    watcher.kill()  # so that it comes when the tasks have reported
    gate = Gate(reporting.postgres.port)
    sunk = Sunk(reporting, watcher, server, gate)
    try:
        sunk.wait(lambda: len(sunk.under_way()) == PARTITIONS - 1, "a run of each further task")
        assert reporting.connect.status(sunk.name)["tasks"] == []
        watcher.start()
        sunk.wait(lambda: sunk.server.jobs(sunk.name) == [sunk.server.job], "one job")
        looked = time.monotonic()
        while time.monotonic() < looked + 3 * SOON:
            assert len(sunk.under_way()) == PARTITIONS - 1, sunk.agent.log[-3000:]
            time.sleep(0.5)
        gate.open()
        sunk.works()
        sunk.wait_for_states("RUNNING")
        assert sunk.parts() == [["RUNNING"]] * 2
    finally:
        gate.close()
        reporting.connect.http.delete(f"/connectors/{sunk.name}")


@pytest.mark.full
def test_one_task_that_fails_is_a_failure_of_the_connector(sunk: Sunk, eye: Eye) -> None:
    for partition in range(PARTITIONS):  # one of them is the first task's
        sunk.works()
        before = len(sunk.server.states())
        sunk.fail(partition)
        sunk.wait(lambda: sunk.server.states()[0] == "FAILED", "a failure")
        sunk.wait_for_rest()
        sunk.restart()
        sunk.wait(lambda: sunk.server.states()[0] == "RUNNING", "a run")
        states = sunk.server.states()
        assert set(states[1:]) == {"FAILED"}
        assert len(states) > before
    assert eye.doubled < SOON


@pytest.mark.full
def test_no_run_of_a_killed_worker_stays_in_any_part(sunk: Sunk, eye: Eye) -> None:
    sunk.works()
    sunk.reporting.kill()
    sunk.reporting.start()
    sunk.wait_for_states("RUNNING", "ABORTED")
    sunk.wait(lambda: sunk.parts() == [["RUNNING", "ABORTED"]] * 2, "the parts' old runs to end")
    sunk.agent.command("stop", sunk.name)
    sunk.wait_for_states("ABORTED", "ABORTED")
    sunk.wait_for_rest()
