"""Two real workers in one cluster: tasks move between them, told at once, and no run notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from headwater.lab.clients import ConnectClient, KafkaClient
from headwater.lab.services.connect import Connect
from headwater.lab.waiting import wait_until

from .secured import add
from .watching import ClusterAgent, runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psutil

    from headwater.lab.services.base import LabContext

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

FILE = "org.apache.kafka.connect.file.FileStream"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"


class SecondConnect(Connect):
    """One more worker of another lab's cluster."""

    needs: ClassVar[tuple[str, ...]] = ()  # type: ignore[assignment]

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def prepare(self, lab: LabContext) -> None:
        super().prepare(lab)
        add(lab, "connect.properties", {"bootstrap.servers": self.bootstrap})


class Pair:
    """A cluster's two workers, each to be started and killed."""

    def __init__(self, folder: Path) -> None:
        from headwater.lab.lab import Lab

        self.labs = [Lab(folder / "first"), Lab(folder / "second")]
        self.labs[0].up(["kafka", "connect"])
        self.kafka = KafkaClient(self.labs[0], "kafka")
        self.start(1)
        self.workers = [ConnectClient(lab, "connect") for lab in self.labs]

    def start(self, number: int) -> None:
        from headwater.lab.services import SERVICES

        with pytest.MonkeyPatch.context() as patch:
            if number == 1:
                patch.setitem(SERVICES, "connect", SecondConnect(self.kafka.bootstrap))
            self.labs[number].up(["connect"])

    def kill(self, number: int) -> None:
        from headwater.lab import process

        leader: psutil.Process = process.find(self.labs[number].home.root)["connect"]
        leader.kill()
        leader.wait(10)

    def id(self, number: int) -> str:
        return f"127.0.0.1:{self.workers[number].port}"

    def close(self) -> None:
        for lab in reversed(self.labs):
            lab.down()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path / "labs")
    yield made
    made.close()


def test_tasks_move_and_no_run_notices(pair: Pair, tmp_path: Path) -> None:
    first, second = pair.workers
    topic = pair.kafka.topic("moved", partitions=4)
    lines = tmp_path / "lines.txt"
    lines.write_text("one\n")
    configs: dict[str, dict[str, Any]] = {
        "sink": {
            "connector.class": f"{FILE}SinkConnector", "file": tmp_path / "out.txt",
            "topics": topic, "tasks.max": 4,
        },
        **{
            f"source-{n}": {
                "connector.class": f"{FILE}SourceConnector", "file": lines, "topic": topic,
            }
            for n in range(2)
        },
    }  # fmt: skip
    names = [
        first.create({**config, "key.converter": STRINGS, "value.converter": STRINGS}, name)
        for name, config in configs.items()
    ]
    agent = ClusterAgent(
        tmp_path, f"{first.url},{second.url}", "--kafka-bootstrap", pair.kafka.bootstrap,
        "--poll", "0.3", "--heartbeat", "600", "--grace", "120",
    ).start()  # fmt: skip

    def settled(through: ConnectClient, *wanted: int) -> None:
        """Every part runs, on just these workers, by Connect's word and then by the agent's."""

        def as_connect_says() -> bool:
            answer = through.http.get("/connectors?expand=status")
            if answer.status_code != 200:
                return False
            parts = [
                part
                for one in answer.json().values()
                for part in (one["status"]["connector"], *one["status"]["tasks"])
            ]
            return {(p["state"], p["worker_id"]) for p in parts} == {
                ("RUNNING", pair.id(number)) for number in wanted
            }

        wait_until(as_connect_says, seconds=120, what="the rebalance", interval=0.3)

        def as_told() -> bool:
            found = [agent.events(name)[-1]["run"]["facets"]["headwater_connect"] for name in names]
            where = {part["workerId"] for one in found for part in (one, *one["tasks"])}
            return where == {pair.id(number) for number in wanted}

        wait_until(as_told, seconds=120, what="the agent to follow", interval=0.2)

    def check() -> None:
        for name in names:
            assert agent.types(name) == ["START"], agent.log[-3000:]
            assert len(runs(agent.events(name))) == 1

    try:
        for name in names:
            agent.wait_for(name, "START")
        settled(first, 0, 1)
        check()
        pair.kill(1)
        settled(first, 0)
        check()
        pair.start(1)
        settled(second, 0, 1)
        check()
        pair.kill(0)  # the address that the agent asks first
        settled(second, 1)
        check()
        sink = next(name for name in names if name.startswith("sink"))
        assert len(agent.events(sink)[-1]["run"]["facets"]["headwater_connect"]["tasks"]) == 4
    finally:
        agent.kill()
