"""A Connect cluster in memory at the edge of the agent: answers shaped as Connect 4.3.1's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.services.endpoint import ConnectError, ProblemKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WORKER = "127.0.0.1:8083"
SINK = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "topics": "orders",
    "file": "/data/out.txt",
}


def part(state: str, trace: str = "", **more: Any) -> dict[str, Any]:
    found = {"state": state, "worker_id": WORKER, "version": "4.3.1", **more}
    return {**found, "trace": trace} if trace else found


class FakeConnect:
    """Connectors and their states, set by a test; counts the requests."""

    shown = "fake"
    urls = ("http://fake:8083",)

    def __init__(self) -> None:
        self.connectors: dict[str, dict[str, Any]] = {}
        self.active: dict[str, tuple[str, ...]] = {}
        self.broken: ConnectError | None = None
        self.sick: str | None = None
        self.unlisted: set[str] = set()
        self.asked_topics = 0
        self.asking: Callable[[], None] = lambda: None
        """What happens while it answers which topics a connector uses."""

    def put(
        self,
        name: str,
        state: str = "RUNNING",
        tasks: tuple[str, ...] = ("RUNNING",),
        *,
        config: Mapping[str, str] = SINK,
        traces: Mapping[int, str] | None = None,
        trace: str = "",
        planned: int | None = None,
    ) -> None:
        """`planned`: how many tasks are configured, where not all of them have a status."""
        traces = traces or {}
        numbers = range(len(tasks) if planned is None else planned)
        self.connectors[name] = {
            "status": {
                "name": name,
                "connector": part(state, trace),
                "tasks": [part(one, traces.get(i, ""), id=i) for i, one in enumerate(tasks)],
                "type": "sink",
            },
            "info": {
                "name": name,
                "config": {**config, "name": name},
                "tasks": [{"connector": name, "task": number} for number in numbers],
                "type": "sink",
            },
        }

    def fail(self, trouble: ProblemKind) -> None:
        self.broken = ConnectError(trouble, f"fake: {trouble.value}")

    def unhealthy(self) -> str | None:
        if self.broken:
            raise self.broken
        return self.sick

    def root(self) -> dict[str, str]:
        return {"version": "4.3.1", "kafka_cluster_id": "abc"}

    def poll(self) -> dict[str, msgspec.Raw]:
        if self.broken:
            raise self.broken
        body = json.dumps({k: v for k, v in self.connectors.items() if k not in self.unlisted})
        return msgspec.json.decode(body.encode(), type=dict[str, msgspec.Raw])

    def exists(self, name: str) -> bool:
        return name in self.connectors

    def topics(self, name: str) -> tuple[str, ...]:
        self.asked_topics += 1
        self.asking()
        return self.active.get(name, ())

    def passwords(self, connector_class: str) -> frozenset[str]:
        return frozenset({"odd.setting"})
