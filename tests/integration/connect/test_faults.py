"""kill -9 of the agent, of its rival, of the worker and of the broker: nothing lost, nothing false."""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

from .watching import ClusterAgent, Event, runs

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import ConnectClient, KafkaClient, PostgresClient
    from headwater.lab.lab import Lab

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
TERMINAL = ("COMPLETE", "ABORT", "FAIL")
ACTIONS = ("create", "fail", "pause", "delete", "resume", "mend", "stop")
ABLE = {
    "fail": ("RUNNING",),
    "mend": ("FAILED",),
    "pause": ("RUNNING",),
    "stop": ("RUNNING",),
    "resume": ("PAUSED", "STOPPED"),
}
AFTER = {
    "delete": "deleted", "fail": "FAILED", "mend": "RUNNING", "pause": "PAUSED",
    "stop": "STOPPED", "resume": "RUNNING",
}  # fmt: skip


def check_life(events: list[Event]) -> None:
    """Every run of every job: one START first, one terminal state at most, no RUNNING after it."""
    by_run: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event not in by_run[event["run"]["runId"]]:
            by_run[event["run"]["runId"]].append(event)
    for run, told in by_run.items():
        types = [event["eventType"] for event in told]
        assert types[0] == "START", (run, types)
        assert types.count("START") == 1, (run, types)
        ends = [kind for kind in types if kind in TERMINAL]
        assert len(ends) <= 1, (run, types)
        assert not ends or types[-1] in TERMINAL, (run, types)
        times = [event["eventTime"] for event in told]
        assert times == sorted(times), run


class Crowd:
    """FileStream sources that come, pause, stop and go as dice say, and what became of each."""

    def __init__(self, connect: ConnectClient, kafka: KafkaClient, folder: Path, seed: int) -> None:
        self.connect, self.topic, self.folder = connect, kafka.topic("crowd"), folder
        self.dice = random.Random(seed)
        self.state: dict[str, str] = {}

    def act(self, action: str = "") -> None:
        """One change to the crowd, by name or by chance."""
        alive = [name for name, state in self.state.items() if state != "deleted"]
        action = action or self.dice.choice([*ACTIONS, "fail", "mend"])
        able = [name for name in alive if self.state[name] in ABLE.get(action, self.state[name])]
        if len(alive) < 3 or action == "create" or not able:
            self._create()
            return
        name = self.dice.choice(able)
        if action == "delete":
            self.connect.delete(name)
        elif action == "fail":
            self._put(name, topic="no topic may be called this")
        elif action == "mend":
            self._put(name)
        else:
            self.connect.http.put(f"/connectors/{name}/{action}").raise_for_status()
        self.state[name] = AFTER[action]

    def _create(self) -> None:
        name = unique("crowd")
        self._put(name)
        self.state[name] = "RUNNING"

    def _put(self, name: str, **more: str) -> None:
        path = self.folder / f"{unique(name)}.txt"
        path.write_text("line\n")
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(path),
            "topic": self.topic,
            "value.converter": STRINGS,
            **more,
        }
        self.connect.http.put(f"/connectors/{name}/config", json=config).raise_for_status()

    def clear(self) -> None:
        for name, state in self.state.items():
            if state != "deleted":
                self.connect.http.delete(f"/connectors/{name}")


def kill_loop(
    times: int, connect: ConnectClient, kafka: KafkaClient, tmp_path: Path, seed: int
) -> None:
    crowd = Crowd(connect, kafka, tmp_path, seed)
    agent = ClusterAgent(tmp_path, connect.url, "--poll", "0.2", "--heartbeat", "2").start()
    dice = random.Random(seed)
    plan = itertools.chain(ACTIONS, ACTIONS, itertools.repeat(""))
    try:
        for _ in range(4):
            crowd.act("create")
        for name in crowd.state:
            agent.wait_for(name, "START")
        for _ in range(times):
            for action in itertools.islice(plan, 3):
                crowd.act(action)
            # Killed at any instant: before it is up, while it looks, writes or sends.
            moment = dice.random() * 2.5
            deadline = time.monotonic() + moment
            wait_until(
                lambda: time.monotonic() > deadline,  # noqa: B023
                seconds=moment + 1,
                what="the moment",
                interval=0.01,
            )
            agent.kill()
            agent.start()
        expected = dict(crowd.state)

        def settled() -> bool:
            for name, state in expected.items():
                told = agent.types(name)
                last = told[-1] if told else None
                shown = connect.status(name) if state != "deleted" else {}
                failed = any(task["state"] == "FAILED" for task in shown.get("tasks", []))
                if state == "FAILED" and not (failed and last == "FAIL"):
                    return False
                if state == "RUNNING" and last != "START":
                    return False
                if state not in ("RUNNING", "FAILED") and last not in (*TERMINAL, None):
                    return False
            return True

        wait_until(settled, seconds=120, what=f"every end to be told: {expected}", interval=0.3)
    finally:
        agent.kill()
        crowd.clear()
    mine = [e for e in agent.events() if e["job"]["name"] in crowd.state]
    # Which ends it sees depends on when it is killed: a restart that it misses ends no run.
    emitted = {event["eventType"] for event in mine}
    assert "START" in emitted
    assert emitted.intersection(TERMINAL)
    check_life(mine)


@pytest.mark.full
def test_killed_again_and_again(connect: ConnectClient, kafka: KafkaClient, tmp_path: Path) -> None:
    kill_loop(3, connect, kafka, tmp_path, seed=5)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_killed_fifty_times(connect: ConnectClient, kafka: KafkaClient, tmp_path: Path) -> None:
    kill_loop(50, connect, kafka, tmp_path, seed=50)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(10))
def test_killed_for_hours(
    connect: ConnectClient, kafka: KafkaClient, tmp_path: Path, seed: int
) -> None:
    kill_loop(200, connect, kafka, tmp_path, seed=seed)


def test_a_standby_takes_over_with_the_same_runs(
    connect: ConnectClient, kafka: KafkaClient, postgres: PostgresClient, tmp_path: Path
) -> None:
    state = postgres.database("state")
    crowd = Crowd(connect, kafka, tmp_path, seed=1)
    options = ("--poll", "0.3", "--heartbeat", "1")
    first = ClusterAgent(tmp_path, connect.url, *options, state=state).start("first.log")
    crowd.act()
    (name,) = crowd.state
    second = ClusterAgent(tmp_path, connect.url, *options, state=state)
    try:
        first.wait_for(name, "START")
        second.start("second.log")
        wait_until(lambda: "standing by" in second.log, seconds=120, what="the standby")
        before = len(first.events(name))
        first.kill()
        wait_until(
            lambda: len(second.events(name)) > before, seconds=120, what="the standby's events"
        )
        connect.http.put(f"/connectors/{name}/pause").raise_for_status()
        second.wait_for(name, "START", "COMPLETE")
        assert len(runs(second.events(name))) == 1
        check_life(second.events(name))
        assert connect.lab.home.settings.postgres_password not in second.log
        assert second.stop() == 0
        assert second.types(name) == ["START", "COMPLETE"]
    finally:
        first.kill()
        second.kill()
        crowd.clear()


@pytest.mark.full
def test_a_file_of_clusters_is_read_again_when_it_changes(
    connect: ConnectClient, kafka: KafkaClient, tmp_path: Path
) -> None:
    file = tmp_path / "clusters.yml"
    cluster = (
        "  - {{name: {name}, url: '{url}', namespace: {space}, kafka: '{kafka}', poll: 0.3}}\n"
    )

    def write(*clusters: tuple[str, str]) -> None:
        made = [
            cluster.format(name=name, url=connect.url, space=space, kafka=kafka.bootstrap)
            for name, space in clusters
        ]
        file.write_text("clusters:\n" + "".join(made))

    crowd = Crowd(connect, kafka, tmp_path, seed=4)
    crowd.act()
    (name,) = crowd.state
    write(("east", "one"), ("west", "one"))
    agent = ClusterAgent(tmp_path, "", "--clusters", str(file)).start()
    try:
        wait_until(lambda: "namespace of its own" in agent.log, seconds=120, what="the collision")
        file.write_text("clusters: 3")
        wait_until(lambda: "what was read before stays" in agent.log, seconds=120, what="a word")
        write(("east", "one"), ("west", "two"))
        wait_until(
            lambda: {e["job"]["namespace"] for e in agent.events(name)} == {"one", "two"},
            seconds=120,
            what="both namespaces",
        )
        assert agent.stop() == 0
    finally:
        agent.kill()
        crowd.clear()


def test_a_server_that_is_down_gets_everything_in_order_later(
    connect: ConnectClient, kafka: KafkaClient, tmp_path: Path
) -> None:
    import json
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    took: list[Event] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            took.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    reserved = ThreadingHTTPServer(("127.0.0.1", 0), Takes, bind_and_activate=False)
    reserved.server_bind()  # bound and deaf: a server that is down
    serving = threading.Thread(target=reserved.serve_forever, daemon=True)
    crowd = Crowd(connect, kafka, tmp_path, seed=2)
    agent = ClusterAgent(
        tmp_path, connect.url, "--poll", "0.2",
        env={"OPENLINEAGE_URL": f"http://127.0.0.1:{reserved.server_port}"},
    ).start()  # fmt: skip
    crowd.act()
    (name,) = crowd.state
    try:
        connect.wait_running(name)
        emitted = f"connector {name}: %s of run"
        wait_until(lambda: emitted % "START" in agent.log, seconds=120, what="START")
        connect.http.put(f"/connectors/{name}/pause").raise_for_status()
        wait_until(lambda: emitted % "COMPLETE" in agent.log, seconds=120, what="COMPLETE")
        wait_until(lambda: "events stay queued" in agent.log, seconds=120, what="a warning")
        agent.kill()
        reserved.server_activate()
        serving.start()
        agent.start()

        def told() -> list[str]:
            mine = [e for e in took if e["job"]["name"] == name]
            return [e["eventType"] for e in mine if e["eventType"] != "RUNNING"]

        wait_until(lambda: told() == ["START", "COMPLETE"], seconds=120, what="both, in order")
    finally:
        agent.kill()
        crowd.clear()
        if serving.ident is not None:
            reserved.shutdown()
        reserved.server_close()


@pytest.mark.full
@pytest.mark.timeout(240)
def test_a_worker_or_a_broker_that_is_killed_is_an_abort_after_the_grace_time(
    killed_lab: Lab, tmp_path: Path
) -> None:
    from headwater.lab import process
    from headwater.lab.clients import ConnectClient, KafkaClient

    connect, kafka = ConnectClient(killed_lab, "connect"), KafkaClient(killed_lab, "kafka")
    crowd = Crowd(connect, kafka, tmp_path, seed=3)
    agent = ClusterAgent(
        tmp_path, connect.url, "--poll", "0.3", "--heartbeat", "1", "--grace", "6"
    ).start()
    crowd.act()
    (name,) = crowd.state
    try:
        agent.wait_for(name, "START")
        process.find(killed_lab.home.root)["connect"].kill()
        last = len(agent.events(name))
        wait_until(lambda: "cannot be reached" in agent.log, seconds=120, what="a word about it")
        assert agent.types(name) == ["START"]
        abort = agent.wait_for(name, "START", "ABORT")
        assert abort["run"]["facets"]["headwater_connect"]["inferred"] is True
        assert len(agent.events(name)) <= last + 3
        killed_lab.up(["connect"])
        agent.wait_for(name, "START", "ABORT", "START")
        process.find(killed_lab.home.root)["kafka"].kill()
        wait_until(lambda: "not healthy" in agent.log, seconds=120, what="a word about it")
        try:
            shown = connect.http.get("/connectors?expand=status", timeout=5).json()
        except httpx.HTTPError:
            shown = {}
        if shown:  # the worker still says RUNNING, which is why /health is asked
            assert shown[name]["status"]["connector"]["state"] == "RUNNING"
        agent.wait_for(name, "START", "ABORT", "START", "ABORT")
        check_life(agent.events(name))
    finally:
        agent.kill()
        killed_lab.up()
