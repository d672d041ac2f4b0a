"""The agent's life of a run, row by row, over answers shaped as Connect's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect.agent.cluster_agent import ClusterAgent
from headwater.connect.agent.cluster_lineage import JobNames
from headwater.connect.agent.connector_states import STATUS
from headwater.connect.agent.orders import WITHDRAWN, Order, leave_order
from headwater.connect.agent.process import ClusterThread
from headwater.connect.config import ClusterConfig
from headwater.connect.debezium.naming import task_job
from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.metadata import NoMetadata, TopicSchema
from headwater.connect.derive.refresh import derivation
from headwater.connect.life.intervals import Intervals
from headwater.connect.model import Connector, Derived, job_of
from headwater.connect.services.endpoint import ConnectError, Endpoint, ProblemKind
from headwater.connect.services.lineage_server import LineageServers, NoLookup
from headwater.connect.services.registry import RegistryError
from headwater.emit import Outbox
from headwater.emit.flow import FlowReporter
from headwater.lineage.model import Dataset, Lineage, Symlink
from headwater.lineage.schema import Field, Schema

from .fake_connect import SINK, FakeConnect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from headwater.connect.derive.refresh import Derivation
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.life.steps import Emission
    from headwater.connect.services.lineage_server import RunLookup


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class FakeMetadata(NoMetadata):
    """Knows the version of one schema, unless its registry is down."""

    def __init__(self) -> None:
        self.fields: tuple[str, ...] = ("id",)
        self.missing: set[str] = set()
        self.keys_alone: set[str] = set()
        self.down = False
        self.asked = 0

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        self.asked += 1
        if self.down:
            raise RegistryError(ProblemKind.UNREACHABLE, "registry down")
        if topic in self.missing:
            return None
        schema = Schema(tuple(Field(name, "string") for name in self.fields))
        return TopicSchema(key=schema) if topic in self.keys_alone else TopicSchema(value=schema)


def derive(connector: Connector, metadata: Any, settings: DeriveSettings) -> Derived:
    if connector.config.get("break"):
        raise ValueError("cannot read password=hunter2")
    topics = connector.active_topics or tuple(connector.config["topics"].split(","))
    name = connector.config.get("headwater.job.name", connector.name)
    return Derived(
        job_of(settings.namespace, name, "file"),
        Lineage(
            inputs=tuple(
                Dataset(
                    "kafka://k:9092",
                    topic,
                    schema=found.value
                    if (found := metadata.topic_schema(topic, connector))
                    else None,
                )
                for topic in topics
            ),
            outputs=(
                Dataset(
                    "file",
                    connector.config["file"],
                    symlinks=tuple(
                        Symlink("file", n) for n in connector.config.get("links", "").split()
                    ),
                ),
            ),
            edges=(),
        ),
        family="file",
        joined=connector.config.get("joined", ""),
    )


class Bench:
    """An agent on a fake cluster with lineage of its own, and the events it emitted."""

    def __init__(self, path: Path) -> None:
        self.connect = FakeConnect()
        self.metadata = FakeMetadata()
        self.clock = Clock()
        self.outbox = Outbox(str(path / "state.db"))
        assert self.outbox.lead()
        self.outbox.register({"all": "all"})
        self.claims: dict[str, str] = {}
        self.around: dict[str, str] = {}
        self.mute = False
        self.runs: RunLookup = NoLookup()
        self.agent = self.make()
        self.seen = 0

    def make(self) -> ClusterAgent:
        return ClusterAgent(
            "lab",
            self.connect,  # type: ignore[arg-type]
            self.outbox,
            self,
            intervals=Intervals(poll=5, heartbeat=300, grace=600, rotation=60),
            clock=self.clock,
            lookup=self.runs,
        )

    def order(self, action: str, name: str, by: str = "ann", ago: float = 0) -> None:
        """Leave the note that `headwater connect pause|stop|…` leaves."""
        at = int((self.clock() - ago) * 1_000_000)
        leave_order(self.outbox, "http://fake:8083/", Order(name, at, action, by))

    def order_restart(self, *names: str, at: int | None = None) -> None:
        """Leave the note that `headwater connect restart` of earlier versions left."""
        for name in names:
            ordered = int(self.clock() * 1_000_000) if at is None else at
            self.outbox.note("restart/http://fake:8083", json.dumps([name, ordered]).encode())

    def read_root(self, root: Mapping[str, str]) -> None:
        pass

    def derive(self, connector: Connector) -> Derivation:
        return derivation(connector, self.metadata, DeriveSettings("ns"), derive)

    def unknown(self, name: str) -> Derived:
        return Derived(job_of("ns", name))

    def claim_name(self, tracked: TrackedConnector) -> str | None:
        return self.claims.get(tracked.name)

    def problems(self) -> Mapping[str, str]:
        return self.around

    def event(self, emission: Emission) -> bytes:
        tracked, task = emission.tracked, emission.task
        derived = tracked.derived
        assert derived is not None
        assert tracked.name != "unspeakable" or not self.mute
        return json.dumps(
            {
                "type": "DELETED" if emission.deleted else emission.type.value,
                "job": task_job(derived.job.name, task) if task else derived.job.name,
                "part": task,
                "run": tracked.run,
                "at": tracked.emitted_at,
                "inputs": [d.name for d in derived.lineage.inputs],
                "columns": [
                    f.name for d in derived.lineage.inputs if d.schema for f in d.schema.fields
                ],
                "failed": [t.id for t in tracked.status.tasks if t.state == "FAILED"],
                "trace": tracked.status.trace + "".join(t.trace for t in tracked.status.tasks),
                "inferred": emission.inferred,
                "end": emission.end and [emission.end.reason, emission.end.by],
                "mute": tracked.suppressed,
                "workers": [t.worker_id for t in tracked.status.tasks],
            }
        ).encode()

    def tick(self, seconds: float = 5) -> list[dict[str, Any]]:
        self.clock.now += seconds
        self.agent.poll()
        return self.new()

    def new(self) -> list[dict[str, Any]]:
        found = self.outbox.pending("all", 10_000)[self.seen :]
        self.seen += len(found)
        return [json.loads(one.body) for one in found]

    def types(self, seconds: float = 5) -> list[str]:
        return [event["type"] for event in self.tick(seconds)]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.outbox.close()
    made.outbox.forget_connection()


def test_start_once_then_a_heartbeat(bench: Bench) -> None:
    bench.connect.put("sink", tasks=("RUNNING",) * 3)
    first = bench.tick()
    assert [event["type"] for event in first] == ["START"]
    assert first[0]["inputs"] == ["orders"]
    assert bench.types(5) == bench.types(280) == []
    beat = bench.tick(20)
    assert [event["type"] for event in beat] == ["RUNNING"]
    assert beat[0]["run"] == first[0]["run"]
    assert beat[0]["inputs"] == ["orders"]


def test_a_change_is_told_at_once(bench: Bench) -> None:
    bench.connect.put("sink")
    assert bench.types() == ["START"]
    bench.connect.put("sink", config={**SINK, "file": "/data/other.txt"})
    assert bench.types() == ["RUNNING"]
    bench.connect.put(
        "sink", tasks=("RUNNING", "RUNNING"), config={**SINK, "file": "/data/other.txt"}
    )
    assert bench.types() == ["RUNNING"]
    bench.connect.active["sink"] = ("orders", "returns")
    found = bench.tick()
    assert [(e["type"], e["inputs"]) for e in found] == [("RUNNING", ["orders", "returns"])]
    assert bench.types() == []


def test_another_name_is_another_run(bench: Bench) -> None:
    bench.connect.put("sink")
    run = bench.tick()[0]["run"]
    bench.connect.put("sink", config={**SINK, "headwater.job.name": "archive"})
    found = bench.tick()
    assert [(e["job"], e["type"]) for e in found] == [
        ("sink", "COMPLETE"),
        ("sink", "DELETED"),
        ("archive", "START"),
    ]
    assert found[0]["run"] == run != found[2]["run"]
    assert bench.types() == []


def test_a_new_schema_version_is_told_within_the_rotation(bench: Bench) -> None:
    bench.connect.put("sink")
    assert bench.tick()[0]["columns"] == ["id"]
    assert bench.types(120) == []
    bench.metadata.fields = ("id", "price")
    found = bench.tick(60)
    assert [(e["type"], e["columns"]) for e in found] == [("RUNNING", ["id", "price"])]


def test_columns_are_reported_by_the_poll_that_finds_them(bench: Bench) -> None:
    """However old the run is, and however many connectors there are whose columns are known."""
    for number in range(100):
        bench.connect.put(f"c{number}")
        bench.connect.active[f"c{number}"] = ("orders",)
    bench.connect.put("late", config={**SINK, "topics": "bids"})
    bench.connect.active["late"] = ("bids",)
    bench.metadata.missing.add("bids")
    assert [e["columns"] for e in bench.tick() if e["job"] == "late"] == [[]]
    for _ in range(30):
        assert bench.tick() == []
    bench.metadata.missing.clear()
    found = bench.tick()
    assert [(e["type"], e["job"], e["columns"]) for e in found] == [("RUNNING", "late", ["id"])]


def test_a_further_topic_is_reported_by_the_poll_that_finds_it(bench: Bench) -> None:
    """Also of one among many connectors of which everything was known."""
    for number in range(90):
        bench.connect.put(f"c{number}")
        bench.connect.active[f"c{number}"] = ("orders",)
    bench.tick()
    for _ in range(30):
        assert bench.tick() == []
    for name in ("c7", "c50", "c89"):
        bench.connect.active[name] = ("orders", "bids")
        found = bench.tick()
        assert [(e["job"], e["inputs"]) for e in found] == [(name, ["orders", "bids"])]


def test_a_value_schema_is_reported_by_the_poll_that_finds_it(bench: Bench) -> None:
    """Also where the schema of the key was there before, and Connect answers slowly."""
    late = []
    for number in range(100):
        topic = "bids" if number % 11 == 5 else "orders"
        name = f"c{number:02}"
        bench.connect.put(name, config={**SINK, "topics": topic})
        bench.connect.active[name] = (topic,)
        late += [name] if topic == "bids" else []
    bench.metadata.keys_alone.add("bids")

    def answers_slowly() -> None:
        bench.clock.now += 0.02

    bench.connect.asking = answers_slowly
    for _ in range(30):
        bench.tick()
    bench.metadata.keys_alone.clear()
    found = sorted((e["job"], e["columns"]) for e in bench.tick())
    assert found == [(name, ["id"]) for name in late]


def test_the_first_record_is_reported_by_the_poll_that_finds_it(bench: Bench) -> None:
    for number in range(100):
        bench.connect.put(f"c{number}")
        bench.connect.active[f"c{number}"] = ("orders",)
    bench.connect.put("late")
    bench.tick()
    for _ in range(30):
        bench.tick()
    bench.connect.active["late"] = ("orders", "bids")
    found = bench.tick()
    assert [(e["job"], e["inputs"]) for e in found] == [("late", ["orders", "bids"])]


def test_the_log_has_the_reason_of_every_event(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "headwater.connect")

    def reasons() -> list[str]:
        found = [r.message.split(": ", 3)[3] for r in caplog.records if " of run " in r.message]
        caplog.clear()
        return found

    bench.metadata.missing.add("orders")
    bench.connect.put("sink")
    bench.tick()
    assert reasons() == ["it runs"]
    bench.metadata.missing.clear()
    bench.tick()
    assert reasons() == ["columns of orders are known now"]
    bench.metadata.fields = ("id", "price")
    bench.tick()
    assert reasons() == ["columns of orders changed"]
    bench.connect.active["sink"] = ("orders", "returns")
    bench.tick()
    assert reasons() == ["topics in use: orders, returns; new dataset returns"]
    bench.tick(300)
    assert reasons() == ["heartbeat"]
    bench.connect.put("sink", tasks=("RUNNING",) * 2, config={**SINK, "file": "/other"})
    bench.tick()
    (changes,) = reasons()
    assert changes.split("; ") == [
        "its configuration changed",
        "2 tasks instead of 1",
        "new dataset /other",
        "dataset /data/out.txt is gone",
    ]
    placed = {**SINK, "file": "/lake/other", "links": "/other"}
    bench.connect.put("sink", config=placed)
    bench.tick()
    (changes,) = reasons()
    assert changes.split("; ")[1:] == ["1 task instead of 2", "dataset /other is /lake/other now"]
    bench.connect.put("sink", tasks=("RUNNING", "FAILED"), config=placed)
    bench.tick()
    assert reasons() == ["task 1 failed"]
    bench.connect.put("sink", tasks=("RUNNING",) * 2, config={**SINK, "file": "/other"})
    bench.tick()
    assert reasons() == ["it runs again after FAIL"]
    bench.connect.put("sink", config={**SINK, "headwater.job.name": "archive"})
    bench.tick()
    assert reasons() == ["its job has another name now", "it runs"]
    bench.connect.put(
        "sink", "PAUSED", ("PAUSED",), config=SINK | {"headwater.job.name": "archive"}
    )
    bench.tick()
    assert reasons() == ["it is paused"]


def test_a_task_that_fails_fails_the_run_and_recovery_is_a_new_one(bench: Bench) -> None:
    bench.connect.put("sink", tasks=("RUNNING",) * 3)
    run = bench.tick()[0]["run"]
    bench.connect.put("sink", tasks=("RUNNING", "FAILED", "RUNNING"), traces={1: "boom at x"})
    (fail,) = bench.tick()
    assert (fail["type"], fail["run"], fail["failed"]) == ("FAIL", run, [1])
    assert fail["trace"] == "boom at x"
    assert bench.types() == bench.types(400) == []
    bench.connect.put("sink", tasks=("RUNNING", "FAILED", "FAILED"), traces={1: "boom", 2: "bang"})
    assert bench.types() == []
    bench.connect.put("sink", tasks=("RUNNING", "UNASSIGNED", "RUNNING"))
    assert bench.types() == []
    bench.connect.put("sink", tasks=("RUNNING",) * 3)
    (start,) = bench.tick()
    assert start["type"] == "START"
    assert start["run"] != run


def test_a_run_starts_when_all_configured_tasks_run(bench: Bench) -> None:
    bench.connect.put("sink", tasks=(), planned=0)  # just made: not divided into tasks yet
    assert bench.types() == []
    bench.connect.put("sink", tasks=("RUNNING",), planned=3)
    assert bench.types(60) == []
    bench.connect.put("sink", tasks=("RUNNING",) * 3)
    (start,) = bench.tick()
    assert start["type"] == "START"
    bench.connect.put("sink", tasks=("RUNNING",) * 3, planned=4)
    assert bench.types() == []
    bench.connect.put("sink", tasks=("RUNNING",) * 4)
    assert bench.types() == ["RUNNING"]


def test_a_connector_without_work_runs_all_the_same(bench: Bench) -> None:
    bench.connect.put("sink", tasks=(), planned=0)
    assert [bench.types() for _ in range(3)] == [[], [], []]
    assert bench.types() == ["START"]
    assert bench.types() == []
    bench.connect.put("sink")
    assert bench.types() == ["RUNNING"]
    bench.connect.put("sink", tasks=(), planned=0)
    assert bench.types() == ["RUNNING"]


def test_a_task_that_never_starts_is_taken_for_lost(bench: Bench) -> None:
    bench.connect.put("sink")
    assert bench.types() == ["START"]
    bench.connect.put("sink", tasks=("RUNNING",), planned=2)
    assert bench.types() == []
    (end,) = bench.tick(600)
    assert (end["type"], end["inferred"]) == ("ABORT", True)


def test_first_seen_failed_is_a_start_and_a_fail(bench: Bench) -> None:
    bench.connect.put("sink", "FAILED", (), trace="no class")
    found = bench.tick()
    assert [event["type"] for event in found] == ["START", "FAIL"]
    assert found[0]["run"] == found[1]["run"]
    assert found[0]["at"] < found[1]["at"]
    assert bench.types() == []


@pytest.mark.parametrize(
    ("state", "tasks", "end"),
    [
        ("PAUSED", ("PAUSED",), "COMPLETE"),
        ("STOPPED", (), "ABORT"),
        ("PAUSED", ("RUNNING",), "COMPLETE"),
    ],
)
def test_pause_and_stop_end_the_run_and_resuming_makes_a_new_one(
    bench: Bench, state: str, tasks: tuple[str, ...], end: str
) -> None:
    bench.connect.put("sink")
    run = bench.tick()[0]["run"]
    bench.connect.put("sink", state, tasks)
    (last,) = bench.tick()
    assert (last["type"], last["run"], last["inputs"]) == (end, run, ["orders"])
    assert bench.types(700) == []
    bench.connect.put("sink", "RUNNING", ("PAUSED",))
    assert bench.types() == []
    bench.connect.put("sink")
    (start,) = bench.tick()
    assert start["type"] == "START"
    assert start["run"] != run


def test_first_seen_paused_says_nothing_until_it_runs(bench: Bench) -> None:
    bench.connect.put("sink", "PAUSED", ("PAUSED",))
    assert bench.types() == []
    bench.connect.put("sink")
    assert bench.types() == ["START"]


def test_resumed_and_failed_between_two_looks(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.connect.put("sink", "PAUSED", ("PAUSED",))
    bench.tick()
    bench.connect.put("sink", tasks=("FAILED",), traces={0: "boom"})
    assert bench.types() == ["START", "FAIL"]


def test_deleted_is_complete_with_the_lineage_remembered(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    del bench.connect.connectors["sink"]
    last, deleted = bench.tick()
    assert (last["type"], last["inputs"]) == ("COMPLETE", ["orders"])
    assert (deleted["type"], deleted["run"], deleted["at"]) == ("DELETED", "", last["at"])
    assert bench.outbox.state("connect/lab/") == {}
    bench.connect.put("sink")
    assert bench.types() == ["START"]


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED", "FAILED"])
def test_one_that_ran_no_more_is_deleted_too_and_one_that_never_ran_was_never_there(
    bench: Bench, state: str
) -> None:
    bench.connect.put("sink")
    bench.connect.put("never", state="UNASSIGNED")
    bench.tick()
    bench.connect.put("sink", state=state)
    assert len(bench.types()) == 1
    bench.connect.connectors.clear()
    assert [(e["job"], e["type"]) for e in bench.tick()] == [("sink", "DELETED")]
    assert bench.types() == []


def test_a_connector_that_is_only_missing_from_the_list_is_not_gone(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.connect.put("other")
    bench.tick()
    bench.connect.unlisted = {"sink"}
    assert bench.types() == []
    bench.connect.unlisted = set()
    assert bench.types() == []


@pytest.mark.parametrize(
    ("state", "tasks"),
    [("UNASSIGNED", ("RUNNING",)), ("UNASSIGNED", ("UNASSIGNED",)), ("RUNNING", ("UNASSIGNED",))],
)
def test_a_rebalance_is_nothing_unless_it_lasts(
    bench: Bench, state: str, tasks: tuple[str, ...]
) -> None:
    bench.connect.put("sink")
    run = bench.tick()[0]["run"]
    bench.connect.put("sink", state, tasks)
    assert bench.types() == bench.types(500) == []
    bench.connect.put("sink")
    assert [e["run"] for e in bench.tick()] in ([], [run])
    bench.connect.put("sink", state, tasks)
    assert bench.types() == []
    (last,) = bench.tick(601)
    assert (last["type"], last["inferred"], last["run"]) == ("ABORT", True, run)
    bench.connect.put("sink")
    (start,) = bench.tick()
    assert start["run"] != run


@pytest.mark.parametrize("trouble", [ProblemKind.UNREACHABLE, ProblemKind.TIMEOUT])
def test_a_cluster_gone_past_the_grace_time_is_an_inferred_abort(
    bench: Bench, trouble: ProblemKind
) -> None:
    bench.connect.put("sink")
    bench.connect.put("failed", tasks=("FAILED",))
    run = next(e["run"] for e in bench.tick() if e["job"] == "sink")
    bench.connect.fail(trouble)
    assert bench.types() == bench.types(590) == []
    found = bench.tick(20)
    assert [(e["type"], e["run"], e["inferred"]) for e in found] == [("ABORT", run, True)]
    assert bench.types(1000) == []
    bench.connect.broken = None
    found = bench.tick()
    assert [(e["type"], e["job"]) for e in found] == [("START", "sink")]
    assert found[0]["run"] != run


def test_a_task_that_moved_is_told_once_the_rebalance_has_settled(bench: Bench) -> None:
    bench.connect.put("sink", tasks=("RUNNING", "RUNNING"))
    (start,) = bench.tick()
    tasks = bench.connect.connectors["sink"]["status"]["tasks"]
    tasks[0]["worker_id"] = "127.0.0.2:8083"
    assert bench.tick() == []
    tasks[1] |= {"worker_id": "127.0.0.2:8083", "state": "UNASSIGNED"}
    assert bench.tick() == []
    assert bench.tick() == []
    tasks[1]["state"] = "RUNNING"
    (told,) = bench.tick()
    assert (told["type"], told["run"]) == ("RUNNING", start["run"])
    assert told["workers"] == ["127.0.0.2:8083"] * 2
    assert bench.tick() == []
    bench.connect.put("sink", tasks=("RUNNING",))  # another number of tasks is told at once
    assert bench.types() == ["RUNNING"]
    assert bench.tick() == []


def test_a_broker_that_is_down_shows_in_health_alone(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.connect.sick = "timed out"
    assert bench.types() == bench.types(400) == []
    assert [(e["type"], e["inferred"]) for e in bench.tick(300)] == [("ABORT", True)]
    bench.connect.sick = None
    assert bench.types() == ["START"]


@pytest.mark.parametrize(
    "trouble",
    [
        ProblemKind.AUTH,
        ProblemKind.TLS,
        ProblemKind.GARBAGE,
        ProblemKind.REBALANCE,
        ProblemKind.SERVER,
        ProblemKind.STARTING,
    ],
)
def test_a_cluster_that_answers_oddly_is_never_taken_for_gone(
    bench: Bench, trouble: ProblemKind, caplog: pytest.LogCaptureFixture
) -> None:
    bench.connect.put("sink")
    run = bench.tick()[0]["run"]
    bench.connect.fail(trouble)
    for _ in range(5):
        assert bench.types(500) == []
    assert sum(trouble.value in record.message for record in caplog.records) == 1
    assert trouble.value in bench.outbox.state(STATUS)["connect-status/lab"].decode()
    assert bench.agent.poll_delay == 30.0
    bench.connect.broken = None
    assert [e["run"] for e in bench.tick()] == [run]
    assert bench.outbox.state(STATUS)["connect-status/lab"] == b"[]"
    assert bench.agent.poll_delay == 5.0


def test_a_poll_that_ends_after_its_cluster_was_removed_leaves_no_problem(bench: Bench) -> None:
    config = ClusterConfig(name="lab", endpoint=Endpoint(("http://127.0.0.1:1",)))
    thread = ClusterThread(
        config, bench.outbox, JobNames(), FlowReporter(()), LineageServers(()), list
    )

    def removed() -> str | None:
        thread.stop()
        raise ConnectError(ProblemKind.TIMEOUT, "no answer")

    thread.connect.unhealthy = removed  # type: ignore[method-assign]
    thread.agent.poll()
    assert bench.outbox.state(STATUS) == {}


def test_who_else_cannot_be_asked_is_said_once_and_costs_no_run(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.around = {"registry": "registry answered 401", "kafka": "Kafka: SASL password=hunter2"}
    bench.connect.put("sink")
    assert bench.types() == ["START"]
    for _ in range(3):
        assert bench.types(1) == []
    bench.around.pop("kafka")
    assert bench.types(1) == []
    told = json.loads(bench.outbox.state(STATUS)["connect-status/lab"])
    assert [one["problem"] for one in told] == ["registry answered 401"]
    bench.around.clear()
    bench.types(1)
    assert bench.outbox.state(STATUS)["connect-status/lab"] == b"[]"
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert sum("401" in line for line in said) == sum("SASL" in line for line in said) == 1
    assert sum("problem is over" in line for line in said) == 2
    assert "hunter2" not in caplog.text


def test_restarting_ends_a_run_that_would_have_gone_on(bench: Bench) -> None:
    bench.connect.put("sink")
    run = bench.tick()[0]["run"]
    bench.connect.put("sink", "RESTARTING", ("RESTARTING",))
    assert [(e["type"], e["run"]) for e in bench.tick()] == [("ABORT", run)]
    bench.connect.put("sink")
    assert bench.types() == ["START"]


def test_our_own_restart_makes_a_new_run_though_nothing_was_seen(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.connect.put("bad", tasks=("FAILED",))
    bench.tick()
    bench.order_restart("sink", "bad")
    assert bench.types(1) == []
    found = bench.tick()
    assert [(e["job"], e["type"]) for e in found] == [
        ("sink", "ABORT"), ("sink", "START"), ("bad", "START"), ("bad", "FAIL"),
    ]  # fmt: skip
    assert bench.types() == []


def test_a_restart_that_was_seen_before_its_note_is_one(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    ordered = int(bench.clock() * 1_000_000)
    bench.connect.put("sink", "RESTARTING", ("RESTARTING",))
    assert bench.types() == ["ABORT"]
    bench.connect.put("sink")
    assert bench.types() == ["START"]
    bench.order_restart("sink", at=ordered)
    assert [bench.types() for _ in range(4)] == [[]] * 4


@pytest.mark.parametrize(
    ("action", "state", "kind", "reason"),
    [
        ("pause", "PAUSED", "COMPLETE", "paused"),
        ("stop", "STOPPED", "ABORT", "stopped"),
        ("restart", "RESTARTING", "ABORT", "restarted"),
    ],
)
def test_an_end_names_whoever_ordered_it(
    bench: Bench, action: str, state: str, kind: str, reason: str
) -> None:
    bench.connect.put("sink")
    bench.connect.put("other")
    bench.tick()
    bench.order(action, "sink")
    for name in ("sink", "other"):
        bench.connect.put(name, state, (state,))
    found = {e["job"]: (e["type"], e["end"]) for e in bench.tick()}
    assert found == {"sink": (kind, [reason, "ann"]), "other": (kind, None)}
    bench.connect.put("sink")
    assert [(e["type"], e["end"]) for e in bench.tick()] == [("START", None)]
    bench.connect.put("sink", state, (state,))
    assert [(e["type"], e["end"]) for e in bench.tick()] == [(kind, None)]


def test_a_restart_that_no_poll_shows_names_whoever_ordered_it(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.order("restart", "sink")
    assert bench.types(1) == []
    found = [(e["type"], e["end"]) for e in bench.tick()]
    assert found == [("ABORT", ["restarted", "ann"]), ("START", None)]


@pytest.mark.parametrize(
    ("noted", "state", "reason"),
    [("pause", "PAUSED", "paused"), ("restarting", "RESTARTING", "restarted")],
)
def test_an_order_is_found_by_the_very_poll_that_shows_what_it_did(
    bench: Bench, noted: str, state: str, reason: str
) -> None:
    bench.connect.put("sink")
    bench.tick()
    polled = bench.connect.poll

    def poll() -> Any:
        bench.clock.now += 1
        bench.order(noted, "sink")
        bench.connect.put("sink", state, (state,))
        return polled()

    bench.connect.poll = poll  # type: ignore[method-assign]
    assert [e["end"] for e in bench.tick()] == [[reason, "ann"]]


def test_a_restart_that_connect_has_not_carried_out_yet_is_none(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.order("restarting", "sink")
    assert [bench.types() for _ in range(4)] == [[]] * 4
    bench.order("restart", "sink")
    assert bench.types() == []
    assert [e["end"] for e in bench.tick()] == [["restarted", "ann"], None]


@pytest.mark.parametrize(
    ("between", "by"),
    [
        ("", "ann"),
        ("it is resumed", None),
        ("another order", None),
        ("Connect refuses it", None),
        ("a minute in which it runs", None),
        ("nobody polls for an hour", "ann"),
    ],
)
def test_an_order_counts_until_it_must_have_been_seen(
    bench: Bench, between: str, by: str | None
) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.order("pause", "sink")
    if between == "it is resumed":
        bench.order("resume", "sink")
    elif between == "Connect refuses it":
        bench.order(WITHDRAWN, "sink")
    elif between == "another order":
        bench.order("stop", "sink", "bob")
    elif between == "a minute in which it runs":
        assert bench.types(5) == bench.types(60) == []
    elif between:
        bench.clock.now += 3600
    bench.connect.put("sink", "PAUSED", ("PAUSED",))
    (end,) = [e["end"] for e in bench.tick() if e["type"] == "COMPLETE"]
    assert end == (by and ["paused", by])


def test_an_order_from_before_a_run_is_not_why_it_ends(bench: Bench) -> None:
    bench.order("pause", "sink", ago=1)
    bench.connect.put("sink")
    bench.tick()
    bench.connect.put("sink", "PAUSED", ("PAUSED",))
    assert [e["end"] for e in bench.tick()] == [None]


def test_a_failure_is_nobodys_order(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.order("stop", "sink")
    bench.connect.put("sink", tasks=("FAILED",))
    assert [(e["type"], e["end"]) for e in bench.tick()] == [("FAIL", None)]


def test_another_process_goes_on_with_the_same_runs(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.connect.put("paused", "PAUSED", ("PAUSED",))
    bench.connect.put("failed", tasks=("FAILED",))
    run = next(e["run"] for e in bench.tick() if e["job"] == "sink")
    bench.agent = bench.make()
    assert bench.types() == []
    bench.connect.put("sink", "PAUSED", ("PAUSED",))
    assert [(e["type"], e["run"]) for e in bench.tick()] == [("COMPLETE", run)]


def test_what_the_registry_said_holds_while_it_is_down(bench: Bench) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.metadata.down = True
    assert bench.types(61) == []
    bench.agent = bench.make()
    assert bench.types() == []
    bench.connect.active["sink"] = ("orders", "returns")
    (told,) = bench.tick(61)
    assert (told["inputs"], told["columns"]) == (["orders", "returns"], ["id"])
    bench.connect.put("young")
    assert [e["columns"] for e in bench.tick()] == [[]]
    bench.metadata.down = False
    found = {e["job"]: e["columns"] for e in [*bench.tick(), *bench.tick(61)]}
    assert found == {"young": ["id"], "sink": ["id", "id"]}


def test_one_broken_connector_never_hides_the_others(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.connect.put("good")
    bench.connect.put("bad", config={**SINK, "break": "yes"})
    bench.connect.connectors["garbled"] = {"status": {"connector": 3}, "info": []}
    bench.connect.connectors["half"] = {"info": bench.connect.connectors["good"]["info"]}
    found = bench.tick()
    assert {(e["job"], e["type"]) for e in found} == {("good", "START"), ("bad", "START")}
    for _ in range(3):
        assert bench.types() == []
    for name in ("bad", "garbled", "half"):
        warnings = [r.message for r in caplog.records if r.levelname == "WARNING"]
        said = [message for message in warnings if f"lab: connector {name}:" in message]
        assert len(said) == 1, said
    assert "hunter2" not in caplog.text
    told = json.loads(bench.outbox.state(STATUS)["connect-status/lab"])
    assert {one["connector"] for one in told} == {"bad", "garbled", "half"}
    bench.connect.put("garbled")
    assert [e["job"] for e in bench.tick(600)][-1:] == ["garbled"]


def test_secrets_in_traces_stay_out_of_events_and_state(bench: Bench, tmp_path: Path) -> None:
    config = {**SINK, "db.password": "s3cr3t-pw", "odd.setting": "odd-secret-1"}
    trace = "at jdbc:postgresql://u:in-url@h/db with s3cr3t-pw and odd-secret-1"
    bench.connect.put("sink", tasks=("FAILED",), config=config, traces={0: trace})
    found = bench.tick()
    assert found[1]["trace"].startswith("at jdbc:postgresql://")
    everything = json.dumps(found).encode() + b"".join(bench.outbox.state().values())
    for secret in (b"s3cr3t-pw", b"odd-secret-1", b"in-url"):
        assert secret not in everything
        for file in tmp_path.iterdir():
            assert secret not in file.read_bytes()


def test_a_store_that_fails_loses_no_step(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.connect.put("sink")
    bench.tick()
    bench.connect.put("sink", tasks=("FAILED",))
    with monkeypatch.context() as patch:
        patch.setattr(bench.outbox, "transaction", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bench.tick()
    assert bench.types() == ["FAIL"]


def test_an_event_that_cannot_be_worded_costs_no_other(bench: Bench) -> None:
    bench.mute = True
    bench.connect.put("unspeakable")
    bench.connect.put("sink")
    assert [e["job"] for e in bench.tick()] == ["sink"]
    bench.mute = False
    assert ("unspeakable", "START") in [(e["job"], e["type"]) for e in bench.tick(600)]


def test_a_name_that_another_cluster_has_is_said(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.claims["sink"] = "cluster west has a job sink in namespace ns too"
    bench.connect.put("sink")
    assert bench.types() == ["START"]
    assert sum("cluster west" in r.message for r in caplog.records) == 1


def test_a_clock_that_goes_back_never_reorders_a_run(bench: Bench) -> None:
    bench.connect.put("sink")
    (start,) = bench.tick()
    bench.connect.put("sink", "PAUSED", ("PAUSED",))
    (last,) = bench.tick(-100)
    assert last["at"] > start["at"]


def test_many_heartbeats_are_spread_and_topics_asked_in_rotation(bench: Bench) -> None:
    for number in range(200):
        bench.connect.put(f"c{number}")
    assert len(bench.tick()) == 200
    bench.clock.now += 100
    bench.connect.asked_topics = 0

    def answers_slowly() -> None:
        bench.clock.now += 0.02

    bench.connect.asking = answers_slowly
    for _ in range(12):
        bench.tick(5)
    assert 200 <= bench.connect.asked_topics <= 620
    most, total = 0, 0
    for _ in range(60):
        count = len(bench.tick(5))
        most, total = max(most, count), total + count
    assert 200 <= total <= 450
    assert most <= 60
