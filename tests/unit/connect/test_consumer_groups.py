"""Readers that nobody reports, over a Kafka that answers from memory."""

from __future__ import annotations

import json
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator

from headwater.connect.agent.cluster_lineage import JobNames
from headwater.connect.agent.process import ClusterThread
from headwater.connect.config import ClusterConfig
from headwater.connect.groups.client_watcher import MAX_WATCHED as MAX_GROUPS
from headwater.connect.groups.excluded import is_named
from headwater.connect.groups.generated import common_name
from headwater.connect.groups.life import GROUP, PRODUCER, TrackedClient, encode_client
from headwater.connect.groups.watcher import MAX_ALIKE, GroupWatcher
from headwater.connect.life.intervals import Intervals
from headwater.connect.life.state import TrackedConnector
from headwater.connect.services.consumer_groups import MAX_CLIENTS
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.kafka import EndOffsets, KafkaCluster
from headwater.connect.services.lineage_server import LineageServers, NamedGroups
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.emit import Outbox, OutboxChange
from headwater.emit.flow import FlowReporter
from headwater.lineage.openlineage import events
from headwater.lineage.openlineage.events import EventType

from .test_agent import Clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.emit.flow import FlowSample

FACETS = Path(__file__).parents[3] / "docs" / "facets"
RUN = "01a1e245-affa-7afa-9152-c0de9c3ae55c"
ROUND, HEARTBEAT, GRACE = 30.0, 300.0, 600.0


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(value, Exception):
        future.set_exception(value)
    else:
        future.set_result(value)
    return future


class Brokers:
    """A cluster's admin client and the client below it: answers shaped as confluent-kafka's own."""

    def __init__(self) -> None:
        self.bootstrap = "k1:9092"
        self.bootstraps = ("k1:9092", "k2:9092")
        topics = frozenset({"orders", "bids", "__consumer_offsets"})
        self.cluster: KafkaCluster | None = KafkaCluster("id-1", ("k2:9092",), topics)
        self.problem = self.groups_problem = self.producers_problem = ""
        self.admin = self
        self.groups: dict[str, Any] = {}
        self.offsets: dict[str, dict[tuple[str, int], int]] = {}
        self.down: list[str] = []
        """Errors of brokers that do not list groups."""
        self.silent: set[str] = set()
        """Groups whose coordinator does not answer."""

    def put(
        self,
        name: str,
        *topics: str,
        state: str = "STABLE",
        committed: dict[str, int] | None = None,
        clients: Iterable[str] = ("app-1",),
    ) -> None:
        """A group whose members are assigned these topics."""
        parts = [SimpleNamespace(topic=topic) for topic in topics]
        members = [
            SimpleNamespace(client_id=c, assignment=SimpleNamespace(topic_partitions=parts))
            for c in clients
        ]
        empty = state in ("EMPTY", "DEAD")
        self.groups[name] = SimpleNamespace(
            group_id=name, state=SimpleNamespace(name=state), members=[] if empty else members
        )
        self.offsets[name] = {(topic, 0): offset for topic, offset in (committed or {}).items()}

    def poll(self, _: float) -> None:
        pass

    def list_consumer_groups(self, request_timeout: float) -> Future[Any]:
        valid = [g for g in self.groups.values() if not self.down or g.group_id.startswith("b")]
        return done(SimpleNamespace(valid=valid, errors=self.down))

    def describe_consumer_groups(
        self, names: list[str], request_timeout: float
    ) -> dict[str, Future[Any]]:
        return {
            name: done(TimeoutError() if name in self.silent else self.groups[name])
            for name in names
        }

    def committed(self, groups: Iterable[str]) -> dict[str, dict[tuple[str, int], int]]:
        return {name: dict(self.offsets[name]) for name in groups}

    def ends(self, topics: Iterable[str]) -> dict[str, EndOffsets]:
        return {topic: EndOffsets({0: 112}) for topic in topics}


class Bench:
    def __init__(self, path: Path) -> None:
        self.kafka, self.clock = Brokers(), Clock()
        self.outbox = Outbox(str(path / "state.db"))
        assert self.outbox.lead()
        self.outbox.register({"all": "all"})
        self.connectors: list[TrackedConnector] = []
        self.skip: tuple[str, ...] = ()
        self.named: dict[str, list[str]] = {}
        """By topic, the groups that queries name as theirs."""
        self.known, self.asked = True, 0
        self.seen = 0
        self.samples: list[FlowSample] = []
        self.watcher = self.make()

    def make(self) -> GroupWatcher:
        config = ClusterConfig(
            name="lab",
            endpoint=Endpoint(("http://c:8083",)),
            namespace="shop",
            times=Intervals(poll=5, heartbeat=HEARTBEAT, grace=GRACE),
            skip_groups=self.skip,
        )
        kafka: Any = self.kafka
        return GroupWatcher(
            config,
            kafka,
            self.outbox,
            lambda: self.connectors,
            self.clock,
            named_groups=self.named_groups,
        )

    def named_groups(self, namespace: str) -> NamedGroups:
        """What the servers say of this cluster's topics."""
        assert namespace == "kafka://k1:9092"
        self.asked += 1
        return NamedGroups(self.named, self.known)

    def events(self, seconds: float = ROUND) -> list[dict[str, Any]]:
        """What one more round emits."""
        self.clock.now += seconds
        self.samples = self.watcher.round()
        found = self.outbox.pending("all", 10_000)[self.seen :]
        self.seen += len(found)
        return [json.loads(one.body) for one in found]

    def said(self, seconds: float = ROUND) -> list[tuple[str, str]]:
        return [(e["eventType"], e["job"]["name"]) for e in self.events(seconds)]

    def begin(self, name: str = "billing-api") -> dict[str, Any]:
        """Two rounds that show a group at work."""
        self.kafka.put(name, "orders", committed={"orders": 100})
        assert self.events() == []
        (start,) = self.events()
        return start


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.outbox.close()
    made.outbox.forget_connection()


def validate(event: dict[str, Any]) -> None:
    body = json.dumps(event).encode()
    events.read(body, now=datetime.fromisoformat(event["eventTime"].replace("Z", "+00:00")))
    schema = json.loads((FACETS / "headwater_consumerGroup.json").read_text())
    Draft202012Validator(schema).validate(event["run"]["facets"]["headwater_consumerGroup"])


def read(event: dict[str, Any]) -> list[str]:
    return [one["name"] for one in event["inputs"]]


def evidence(event: dict[str, Any]) -> dict[str, bool]:
    facet = event["job"]["facets"]["headwater_evidence"]
    return {one["name"]: one["evidence"][0]["observed"] for one in facet["datasets"]}


def test_a_group_that_nobody_accounts_for_is_a_streaming_job_that_reads(bench: Bench) -> None:
    start = bench.begin()
    validate(start)
    assert (start["eventType"], start["outputs"]) == ("START", [])
    assert start["job"]["namespace"] == "shop"
    assert start["job"]["name"] == "consumer-group.billing-api"
    kind = start["job"]["facets"]["jobType"]
    assert (kind["processingType"], kind["integration"], kind["jobType"]) == (
        "STREAMING", "KAFKA", "CONSUMER_GROUP",
    )  # fmt: skip
    assert kind["emissionPattern"]["windowDuration"] == HEARTBEAT
    (topic,) = start["inputs"]
    assert (topic["namespace"], topic["name"]) == ("kafka://k1:9092", "orders")
    assert topic["facets"]["headwater_cluster"]["clusterId"] == "id-1"
    assert evidence(start) == {"orders": True}
    group = start["run"]["facets"]["headwater_consumerGroup"]
    assert (group["group"], group["state"], group["members"]) == ("billing-api", "STABLE", 1)
    assert group["clients"] == ["app-1"]
    assert group["lastActiveAt"].startswith("2027-")


def test_its_lag_is_sampled_and_in_its_heartbeats(bench: Bench) -> None:
    start = bench.begin()
    assert bench.events() == []
    (sample,) = bench.samples
    assert (sample.run, sample.dataset.name, sample.lag) == (start["run"]["runId"], "orders", 12)
    assert bench.said(60) == []
    (beat,) = bench.events(HEARTBEAT - 90)
    validate(beat)
    assert (beat["eventType"], beat["run"]["runId"]) == ("RUNNING", start["run"]["runId"])
    facets = beat["run"]["facets"]
    assert facets["headwater_consumerGroup"]["lag"] == 12
    assert [one["lag"] for one in facets["headwater_flow"]["topics"]] == [12]


def test_nothing_is_kept_of_the_flow_of_runs_that_are_over(bench: Bench) -> None:
    """Else an agent that sees groups come and go for months would remember all of them."""
    bench.begin()
    del bench.kafka.groups["billing-api"]
    bench.events()
    assert len(bench.watcher._flow._before) == 1
    bench.events(GRACE)
    bench.events()
    assert bench.watcher._flow._before == {}


def test_a_topic_more_is_told_at_once_and_none_is_forgotten_in_a_run(bench: Bench) -> None:
    bench.begin()
    bench.kafka.put("billing-api", "bids", committed={"orders": 100})
    (more,) = bench.events()
    assert (more["eventType"], read(more)) == ("RUNNING", ["orders", "bids"])
    bench.kafka.put("billing-api", state="PREPARING_REBALANCING")
    assert bench.events() == []
    (beat,) = bench.events(HEARTBEAT)
    assert read(beat) == ["orders", "bids"]


def test_offsets_alone_are_derived_until_they_move(bench: Bench) -> None:
    """A reader may assign partitions itself: then it has no members, and its offsets tell."""
    bench.kafka.put("loader", state="EMPTY", committed={"orders": 1, "bids": 5})
    assert [bench.events(), bench.events()] == [[], []]
    bench.kafka.put("loader", state="EMPTY", committed={"orders": 2, "bids": 5})
    assert bench.events() == []
    bench.kafka.put("loader", state="EMPTY", committed={"orders": 9, "bids": 5})
    (start,) = bench.events()
    assert evidence(start) == {"orders": True, "bids": False}
    bench.kafka.put("loader", state="EMPTY", committed={"orders": 9, "bids": 6})
    (more,) = bench.events()
    assert evidence(more) == {"orders": True, "bids": True}


def test_a_group_whose_members_are_not_described_is_seen_by_its_state(bench: Bench) -> None:
    bench.kafka.put("newer", state="STABLE", committed={"orders": 7}, clients=())
    assert bench.events() == []
    (start,) = bench.events()
    assert evidence(start) == {"orders": False}
    assert bench.said(GRACE) == [("RUNNING", "consumer-group.newer")]


@pytest.mark.parametrize("how", ["empty", "deleted"])
def test_a_group_without_members_ends_after_the_grace_time(bench: Bench, how: str) -> None:
    start = bench.begin()
    if how == "empty":
        bench.kafka.put("billing-api", state="EMPTY", committed={"orders": 100})
    else:
        del bench.kafka.groups["billing-api"]
    assert bench.said() == []
    # Heartbeats go on, so that no server ends the run earlier.
    assert bench.said(GRACE - 1) == [("RUNNING", "consumer-group.billing-api")]
    (end,) = bench.events(1)
    validate(end)
    assert (end["eventType"], end["run"]["runId"]) == ("ABORT", start["run"]["runId"])
    assert end["run"]["facets"]["headwater_end"]["inferred"] is True
    assert read(end) == ["orders"]
    assert [bench.events(), bench.events(GRACE)] == [[], []]
    again = bench.begin()
    assert again["run"]["runId"] != start["run"]["runId"]


def test_a_short_absence_is_no_end(bench: Bench) -> None:
    beat = [("RUNNING", "consumer-group.billing-api")]
    bench.begin()
    for _ in range(3):
        bench.kafka.put("billing-api", state="EMPTY", committed={"orders": 100})
        assert [bench.said(), bench.said(GRACE - 1)] == [[], beat]
        bench.kafka.put("billing-api", "orders", committed={"orders": 100})
        assert bench.said() == []


def test_an_agent_that_is_killed_goes_on_with_the_run(bench: Bench) -> None:
    start = bench.begin()
    bench.watcher = bench.make()
    assert bench.events() == []
    (beat,) = bench.events(HEARTBEAT)
    assert (beat["eventType"], beat["run"]["runId"]) == ("RUNNING", start["run"]["runId"])


def test_groups_of_connectors_and_of_spark_are_reported_by_these(bench: Bench) -> None:
    bench.connectors = [
        TrackedConnector(cluster="lab", name="sink"),
        TrackedConnector(cluster="other", name="mine", group="my-own-group"),
    ]
    for name in (
        "connect-sink", "connect-sink-coord", "my-own-group", "spark-kafka-source-1-driver-0",
        "cg-control-7", "shop-schemahistory", "console-consumer-12", "headwater",
    ):  # fmt: skip
        bench.kafka.put(name, "orders")
    bench.kafka.put("connect-of-another-cluster", "orders")
    del bench.kafka.groups["connect-of-another-cluster"]
    assert bench.said() == []
    # Where nothing is left to judge, nobody is asked.
    assert bench.asked == 0
    bench.kafka.put("connect-of-another-cluster", "orders")
    assert bench.said() == []
    assert bench.said() == [("START", "consumer-group.connect-of-another-cluster")]
    # Somebody watches that cluster now, too.
    bench.connectors.append(TrackedConnector(cluster="other", name="of-another-cluster"))
    (end,) = bench.events()
    assert end["eventType"] == "COMPLETE"
    assert end["run"]["facets"]["headwater_end"]["reason"] == "reported by another job"
    assert end["job"]["facets"]["headwater_deleted"]["at"] == end["eventTime"]
    assert bench.events(GRACE) == []


def test_a_group_that_a_query_names_as_its_own_is_read_by_the_query(bench: Bench) -> None:
    bench.named = {"orders": ["etl", "mine-*", "shared"], "bids": ["etl"]}
    bench.kafka.put("etl", "orders", "bids")
    bench.kafka.put("mine-3f0c9a52-8f4e-4b1e-9c59-0a6f2f3b7d11-77-driver-0", "orders")
    # Of these, one reads a topic that no query reads in its group; the other is named by none.
    bench.kafka.put("shared", "orders", "bids")
    bench.kafka.put("etl2", "orders", committed={"bids": 1})
    assert bench.said() == []
    expected = [("START", "consumer-group.etl2"), ("START", "consumer-group.shared")]
    assert sorted(bench.said()) == expected
    # However many topics they read, the server is asked once a round.
    assert bench.asked == 2
    # The query that begins later takes its group over.
    bench.named["orders"].append("etl2")
    (end,) = bench.events()
    assert (end["eventType"], end["job"]["name"]) == ("COMPLETE", "consumer-group.etl2")
    assert end["job"]["facets"]["headwater_deleted"]["at"] == end["eventTime"]
    # Once the query has ended, whoever still reads in its group is somebody else.
    bench.named = {}
    assert bench.said() == []
    assert ("START", "consumer-group.etl") in bench.said()


def test_no_run_begins_until_the_servers_said_whose_a_group_may_be(bench: Bench) -> None:
    bench.begin("audit")
    bench.watcher, bench.known = bench.make(), False  # an agent that starts before its server
    bench.kafka.put("etl", "orders")
    bench.kafka.put("other", "orders")
    assert [bench.said(), bench.said(), bench.said()] == [[], [], []]
    # What was reported already goes on.
    assert bench.said(HEARTBEAT) == [("RUNNING", "consumer-group.audit")]
    bench.named, bench.known = {"orders": ["etl"]}, True
    assert [bench.said(), bench.said()] == [[], [("START", "consumer-group.other")]]
    assert [bench.said(), bench.said()] == [[], []]


def test_a_server_that_stays_away_is_waited_for_no_longer_than_the_grace_time(bench: Bench) -> None:
    bench.known = False
    bench.kafka.put("other", "orders")
    assert [bench.said(), bench.said(GRACE - 2 * ROUND)] == [[], []]
    assert [bench.said(), bench.said()] == [[], [("START", "consumer-group.other")]]


@pytest.mark.parametrize(
    ("group", "named"),
    [
        ("etl", False),
        ("etl-*", True),
        ("etl-billing-dashboard", False),
        ("etl-2026-11", False),
        (f"etl-{RUN}", True),
        (f"etl-{RUN}-77-driver-0", True),
        (f"etl-{RUN.upper()}--1486295537-executor", True),
        (f"etl-{RUN}0", False),
        (f"etl-of-us-{RUN}", False),
        (f"my-etl-{RUN}", False),
        (RUN, False),
    ],
)
def test_a_prefix_names_the_groups_that_spark_makes_of_it(group: str, named: bool) -> None:
    assert is_named(group, ["other", "etl-*"]) is named
    assert is_named(group, ["other"]) is False


@pytest.mark.parametrize(
    ("named", "group"),
    [
        (f"app-{RUN}", f"app-{RUN}"),
        ("etl-20261119", "etl-20261119"),
        ("etl-20261119-*", f"etl-20261119-{RUN}-77-driver-0"),
        (f"{RUN}-*", f"{RUN}-3f0c9a52-8f4e-4b1e-9c59-0a6f2f3b7d11-77-driver-0"),
    ],
)
def test_a_group_that_a_query_names_may_have_a_generated_name(
    bench: Bench, named: str, group: str
) -> None:
    bench.named = {"orders": [named]}
    bench.kafka.put(group, "orders")
    bench.kafka.put("other", "orders")
    assert [bench.said(), bench.said()] == [[], [("START", "consumer-group.other")]]
    bench.named = {}
    assert bench.said() == []
    assert bench.said() == [("START", f"consumer-group.{common_name(group)}")]


def test_of_groups_that_are_alike_only_those_of_queries_are_left_to_them(bench: Bench) -> None:
    queries = [f"etl-{UUID(int=number << 64)}-7" for number in range(2 * MAX_ALIKE)]
    bench.named = {"orders": queries}
    for group in queries:
        bench.kafka.put(group, "orders", clients=["spark"])
    # Behind all of those that have members, one that reads without.
    mine = f"etl-{RUN}-7"
    for offset in (60, 70, 80):
        bench.kafka.put(mine, state="EMPTY", committed={"orders": offset})
        started = bench.events()
    (start,) = started
    assert start["job"]["name"] == "consumer-group.etl-*"
    group = start["run"]["facets"]["headwater_consumerGroup"]
    assert (group.get("groups"), group["clients"]) == (None, [])
    bench.named["orders"].append(mine)
    bench.kafka.put(mine, state="EMPTY", committed={"orders": 90})
    (end,) = bench.events()
    assert (end["eventType"], end["run"]["runId"]) == ("COMPLETE", start["run"]["runId"])


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("anonymous.3f0c9a52-8f4e-4b1e-9c59-0a6f2f3b7d11", "anonymous.*"),
        ("3F0C9A52-8F4E-4B1E-9C59-0A6F2F3B7D11", "*"),
        ("3f0c9a528f4e4b1e9c590a6f2f3b7d11-etl", "*-etl"),
        ("mine-3f0c9a52-8f4e-4b1e-9c59-0a6f2f3b7d11--1486295537-driver-0", "mine-*-driver-0"),
        ("mine-3f0c9a52-8f4e-4b1e-9c59-0a6f2f3b7d11-77-executor", "mine-*-executor"),
        ("billing-api-7d9f8b6c5d-x2x9z", "billing-api-*"),
        ("backfill_20261117", "backfill_*"),
        ("replay-1763392800000", "replay-*"),
        ("preview-9f86d081", "preview-*"),
        *[(name, name) for name in (
            "billing-api", "tenant-10023", "orders-v2", "cafe2024", "deadbeef", "etl-2026-11",
            "eu-west-1.billing.0", "my-schedulers", "café-ingest-7",
        )],
    ],
)  # fmt: skip
def test_what_is_generated_in_a_name_is_told_from_what_people_write(group: str, name: str) -> None:
    assert common_name(group) == name
    assert common_name(name) == name


def test_groups_of_generated_names_are_one_reader(bench: Bench) -> None:
    def put(number: int, **more: Any) -> None:
        bench.kafka.put(f"etl-{UUID(int=number << 64)}", *more.pop("topics", ()), **more)

    for number in range(MAX_GROUPS + 50):  # left behind by earlier starts
        put(number, state="EMPTY", committed={"orders": 1})
    put(900, topics=["orders"], committed={"orders": 110})
    put(901, topics=["orders"], committed={"orders": 100}, clients=["app-2"])
    assert bench.events() == []
    (start,) = bench.events()
    validate(start)
    assert start["job"]["name"] == "consumer-group.etl-*"
    group = start["run"]["facets"]["headwater_consumerGroup"]
    assert (group["group"], group["groups"]) == ("etl-*", MAX_GROUPS + 52)
    assert (group["members"], group["clients"]) == (2, ["app-1", "app-2"])
    assert bench.events() == []
    assert [sample.lag for sample in bench.samples] == [12]
    assert bench.kafka.groups_problem == ""
    # It starts anew under another name, and is the same reader in the same run.
    for number in (900, 901):
        put(number, state="EMPTY", committed={"orders": 110})
    put(902, topics=["orders"], committed={"orders": 112})
    assert bench.events() == []
    assert [sample.lag for sample in bench.samples] == [0]
    put(902, state="EMPTY", committed={"orders": 112})
    # In the first round without members, offsets of other groups count, as if they had moved.
    assert [bench.events(), bench.events()] == [[], []]
    (end,) = bench.events(GRACE)
    assert (end["eventType"], end["run"]["runId"]) == ("ABORT", start["run"]["runId"])


def test_a_generated_group_that_assigns_partitions_itself_is_seen_among_dead_ones(
    bench: Bench,
) -> None:
    bench.kafka.put("etl-20261116", state="EMPTY", committed={"orders": 50})
    for offset in (60, 70, 80):
        bench.kafka.put("etl-20261117", state="EMPTY", committed={"orders": offset})
        said = bench.said()
    assert said == [("START", "consumer-group.etl-*")]


def test_a_generated_group_that_was_reported_by_its_own_name_is_taken_back(bench: Bench) -> None:
    name = "etl-20261117"
    earlier = TrackedClient(
        cluster="lab", name=name, run=RUN, last_event=EventType.RUNNING, emitted_at=1
    )
    bench.outbox.commit([OutboxChange(earlier.key, encode_client(earlier), [])])
    bench.watcher = bench.make()
    bench.kafka.put(name, "orders", committed={"orders": 100})
    assert bench.said() == [("COMPLETE", f"consumer-group.{name}")]
    assert bench.said() == [("START", "consumer-group.etl-*")]
    bench.skip = ("etl-2026*",)
    bench.watcher = bench.make()
    assert bench.said() == [("COMPLETE", "consumer-group.etl-*")]


def test_groups_that_a_pattern_names_are_left_out(bench: Bench) -> None:
    bench.begin("etl-1")
    bench.skip = ("etl-*",)
    bench.watcher = bench.make()
    bench.kafka.put("etl-2", "orders")
    assert bench.said() == [("COMPLETE", "consumer-group.etl-1")]
    assert [bench.said(), bench.said()] == [[], []]


def test_topics_that_are_internal_or_gone_are_no_inputs(bench: Bench) -> None:
    bench.kafka.put("auditor", "__consumer_offsets", committed={"dropped": 3})
    assert [bench.said(), bench.said(), bench.said()] == [[], [], []]
    bench.kafka.put("auditor", "__consumer_offsets", "bids", committed={"dropped": 3})
    (start,) = bench.events()
    assert read(start) == ["bids"]


def test_nothing_is_emitted_while_brokers_do_not_answer(bench: Bench) -> None:
    start = bench.begin()
    a_run = bench.begin("audit")
    bench.kafka.down = ["broker 1 is away"]  # the one that keeps `audit`
    for _ in range(3):
        assert bench.said(GRACE) == [("RUNNING", "consumer-group.billing-api")]
    bench.kafka.down = []
    bench.kafka.silent = {"audit"}
    assert bench.said(GRACE) == [("RUNNING", "consumer-group.billing-api")]
    bench.kafka.silent = set()
    beats = bench.events(HEARTBEAT)
    assert {e["run"]["runId"] for e in beats} == {start["run"]["runId"], a_run["run"]["runId"]}
    del bench.kafka.groups["billing-api"]
    bench.kafka.down = ["not authorized"]
    assert bench.said(GRACE) == []
    kafka: Any = bench.kafka
    metadata = LiveMetadata(kafka=kafka)
    assert "not authorized" in metadata.problems["consumer groups"]
    bench.kafka.down = []
    bench.said()
    assert metadata.problems == {}
    bench.kafka.problem = "Kafka k1:9092 did not return the cluster"  # said once, and no more asked
    bench.kafka.down = ["away"]
    assert bench.said(GRACE) == []
    assert metadata.problems.keys() == {"kafka"}


def test_more_groups_than_are_asked_for_are_a_problem(bench: Bench) -> None:
    bench.begin("zebra")
    for number in range(MAX_GROUPS):  # left behind, with offsets that stand
        bench.kafka.put(f"a-{number:04}", state="EMPTY", committed={"orders": 1})
    for number in range(MAX_GROUPS + 5):
        bench.kafka.put(f"g-{number:04}", "orders", clients=[f"c{n}" for n in range(50)])
    bench.events()
    started = bench.events()
    assert len(started) == MAX_GROUPS - 1
    assert f"{2 * MAX_GROUPS + 6} consumer groups" in bench.kafka.groups_problem
    facet = started[0]["run"]["facets"]["headwater_consumerGroup"]
    assert (facet["members"], len(facet["clients"])) == (50, MAX_CLIENTS)
    assert ("RUNNING", "consumer-group.zebra") in bench.said(HEARTBEAT)
    odd = {"": 1, "a\nb": 1, "x" * 501: 1}
    bench.kafka.groups.clear()
    for name in odd:
        bench.kafka.put(name, "orders")
    assert bench.said() == []
    assert bench.kafka.groups_problem == ""


def test_two_connect_clusters_on_one_kafka_report_its_clients_once(bench: Bench) -> None:
    threads: list[ClusterThread] = []
    for name, cluster, groups in (
        ("c", "id-1", True), ("b", "id-1", True), ("a", "id-1", False), ("d", "id-2", True),
    ):  # fmt: skip
        config = ClusterConfig(
            name=name,
            endpoint=Endpoint(("http://c:8083",)),
            kafka={"bootstrap.servers": "127.0.0.1:1"},
            consumer_groups=groups,
            producers=name != "b",
        )
        thread = ClusterThread(
            config, bench.outbox, JobNames(), FlowReporter(()), LineageServers(()), lambda: threads
        )
        kafka = thread.metadata.kafka
        assert kafka is not None
        kafka._cluster = KafkaCluster(cluster, (), frozenset())
        kafka._until = float("inf")
        threads.append(thread)
    reporting = {
        kind: [
            thread.config.name
            for thread in threads
            if thread.reports(kind) and any(one.kind is kind for one in thread.watchers)
        ]
        for kind in (GROUP, PRODUCER)
    }
    assert reporting == {GROUP: ["b", "d"], PRODUCER: ["a", "d"]}
    for thread in threads:
        thread.stop()
