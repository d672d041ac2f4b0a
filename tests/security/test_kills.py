"""Server, PostgreSQL, agent and Spark driver killed in turn under load: nothing lost, nothing twice."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from headwater.lab import process
from headwater.lab.clients import ConnectClient, KafkaClient, PostgresClient
from headwater.lab.lab import Lab
from headwater.lab.waiting import wait_until
from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import export, verify
from tests.integration.connect.test_faults import Crowd, check_life
from tests.integration.connect.watching import ClusterAgent
from tests.integration.server.conftest import Process
from tests.integration.server.test_faults import made

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER = Path(__file__).with_name("killed_driver.py")
KINDS = ("server", "postgresql", "agent", "server", "postgresql", "driver")
"""In turn; a driver's new JVM takes longest to start, and does so beside the other kills."""
TERMINAL = {"COMPLETE", "FAIL", "ABORT"}


class Producers:
    """Connections that send events, each again and again until it is acknowledged."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self.acked: list[bytes] = []
        self.failures: Counter[str] = Counter()
        self._threads = [threading.Thread(target=self._send) for _ in range(3)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        while not self._stop.is_set():
            body = made(next(self._numbers))
            while not self._taken(body):
                time.sleep(0.1)
            self.acked.append(body)

    def _taken(self, body: bytes) -> bool:
        connection = http.client.HTTPConnection(*self._address, timeout=30)
        try:
            connection.request("POST", "/api/v1/lineage", body)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            self.failures[type(error).__name__] += 1
            return False
        finally:
            connection.close()
        if status != 201:
            self.failures[str(status)] += 1
            assert status == 503, status
        return status == 201

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


class Estate:
    """A server on a PostgreSQL of its own, and everyone who sends to it."""

    def __init__(self, lab: Lab, connect: ConnectClient, kafka: KafkaClient, work: Path) -> None:
        self.lab, self.work = lab, work
        lab.up(["postgres"])
        self.store = PostgresClient(lab, "postgres").database()
        self.server = Process(self.store, work / "server.log", "--no-page")
        self.crowd = Crowd(connect, kafka, work, seed=1)
        for _ in range(3):
            self.crowd.act("create")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENLINEAGE")}
        self.environment = kept | {
            "OPENLINEAGE_URL": self.server.url,
            "HEADWATER_STATE_DIR": str(work / "state"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        sent = {"OPENLINEAGE_URL": self.server.url, "OPENLINEAGE_NAMESPACE": "agent"}
        options = ("--poll", "0.3", "--heartbeat", "5")
        self.agent = ClusterAgent(work, connect.url, *options, env=sent).start()
        self.starts = itertools.count()
        self.driver = self._driver()
        self.producers = Producers(self.server.url)

    def _driver(self) -> subprocess.Popen[bytes]:
        number = next(self.starts)
        with (
            (self.work / "named.txt").open("ab") as out,
            (self.work / "driver.log").open("ab") as log,
        ):
            return subprocess.Popen(
                [sys.executable, str(DRIVER), str(self.work / "lake"), str(number * 100_000)],
                env=self.environment | {"OPENLINEAGE_NAMESPACE": "driver"},
                stdout=out,
                stderr=log,
                cwd=self.work,
                start_new_session=True,
            )

    @property
    def named(self) -> list[str]:
        """The tables of which a driver said that the server has heard."""
        return (self.work / "named.txt").read_text().split()

    def kill(self, kind: str) -> None:
        """Kill one of them and start it again."""
        if kind == "server":
            self.server.kill()
            self.server.start()
        elif kind == "postgresql":
            for one in process.family(process.find(self.lab.home.root)["postgres"]):
                one.kill()
            self.lab.up(["postgres"])
        elif kind == "agent":
            self.crowd.act()
            self.agent.kill()
            self.agent.start()
        else:
            os.kill(self.driver.pid, signal.SIGKILL)  # its watchdog stays, as after an OOM kill
            self.driver.wait()
            self.driver = self._driver()

    def live(self, seconds: float, kind: str) -> None:
        """Let everyone work, and the driver at least until it has written something."""
        before, acked = len(self.named), len(self.producers.acked)
        time.sleep(seconds)
        wait_until(lambda: len(self.producers.acked) > acked, seconds=600, what="an event")
        if kind == "driver":
            wait_until(lambda: len(self.named) > before, seconds=600, what="a table of the driver")

    def close(self) -> None:
        """End everyone well, and wait for what they still have to send."""
        self.producers.stop()
        os.kill(self.driver.pid, signal.SIGTERM)
        self.driver.wait(300)
        folder = self.work / "state" / "outbox"
        wait_until(lambda: not list(folder.rglob("*.db")), seconds=300, what="the outbox to empty")
        self.agent.stop()

    def remove(self) -> None:
        for child in (self.driver, self.agent.process, self.server.process):
            if child is not None and child.poll() is None:
                child.kill()
        self.crowd.clear()


@pytest.fixture
def estate(
    connect: ConnectClient, kafka: KafkaClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Estate]:
    lab = Lab(tmp_path_factory.mktemp("kills") / "lab")
    made = Estate(lab, connect, kafka, tmp_path_factory.mktemp("estate"))
    yield made
    made.remove()
    lab.reset()


def judge(estate: Estate) -> dict[str, int]:
    """Assert that the log holds what was acknowledged, each once; answers what there is."""
    store = open_store(estate.store)
    bodies = Counter(export(store))
    verify(store)  # its chain; it counts changes too, such as the ends of runs that went silent
    store.close()
    lost = [body for body in estate.producers.acked if body not in bodies]
    twice = [body for body, count in bodies.items() if count > 1]
    assert not lost, f"{len(lost)} lost, such as {lost[:3]}"
    assert not twice, f"{len(twice)} twice, such as {twice[:3]}"
    # Reports of deleted connectors have no run.
    events = [event for body in bodies if "run" in (event := json.loads(body))]
    agent = [event for event in events if event["job"]["namespace"] == "agent"]
    check_life(sorted(agent, key=lambda event: event["eventTime"]))
    driver = [event for event in events if event["job"]["namespace"] == "driver"]
    ends: dict[str, list[str]] = {}
    written: Counter[str] = Counter()
    for event in driver:
        kinds = ends.setdefault(event["run"]["runId"], [])
        if event["eventType"] in TERMINAL:
            kinds.append(event["eventType"])
        if event["eventType"] == "COMPLETE":
            written.update(out["name"].rpartition("/")[2] for out in event.get("outputs", ()))
    assert not {run: kinds for run, kinds in ends.items() if len(kinds) != 1}, "one end each"
    assert not [name for name in estate.named if written[name] != 1], "tables lost or twice"
    return {
        "acknowledged": len(estate.producers.acked),
        "lost": len(lost),
        "twice": len(twice),
        "log": len(bodies),
        "agent's events": len(agent),
        "driver's events": len(driver),
        "driver's runs": len(ends),
        "tables": len(estate.named),
    }


def told(text: str) -> None:
    """Show how far a run is, and its figures: `make soak` shows what tests print."""
    print(text, flush=True)


def killed(estate: Estate, times: int, seed: int) -> None:
    chance = random.Random(seed)
    kills: Counter[str] = Counter()
    began = time.monotonic()
    for kind in itertools.islice(itertools.cycle(KINDS), times):
        estate.live(chance.uniform(0.2, 3), kind)
        estate.kill(kind)
        kills[kind] += 1
        acked = len(estate.producers.acked)
        told(f"kill {kills.total()}: {kind} at {time.monotonic() - began:.0f} s, {acked} events")
    estate.live(2, "driver")
    health = f"{estate.server.url}/api/v2/health"
    wait_until(lambda: httpx.get(health, timeout=60).status_code == 200, seconds=300, what="health")
    estate.close()
    found = {"kills": dict(kills), **judge(estate), "sent again": dict(estate.producers.failures)}
    told(f"{kills.total()} kills, nothing lost, nothing twice: {json.dumps(found)}")


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_twelve_kills_lose_and_double_nothing(estate: Any) -> None:
    killed(estate, 12, seed=12)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_hundred_kills_lose_and_double_nothing(estate: Any) -> None:
    killed(estate, 100, seed=100)
