"""Throughput, lag and samples, over a Kafka that answers from memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from headwater.connect.agent.flow import FlowMeter
from headwater.connect.life.state import TrackedConnector
from headwater.connect.model import Connector, Derived, job_of
from headwater.connect.services.kafka import (
    EndOffsets,
    KafkaAdmin,
    KafkaCluster,
    KafkaError,
    client_config,
)
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.emit.destinations import destinations
from headwater.emit.flow import FlowReporter
from headwater.errors import UsageError
from headwater.lineage.model import Dataset, Edge, Lineage
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Iterable

CONNECT_JSON = json.dumps(
    {
        "schema": {"type": "struct", "fields": [{"field": "id", "type": "int32"}]},
        "payload": {"id": 1},
    }
).encode()
RUN = "01a1e245-affa-7afa-9152-c0de9c3ae55c"


class FakeKafka:
    """Topics, groups and records in memory."""

    def __init__(self) -> None:
        self.bootstrap = "k1:9092"
        self.bootstraps = ("k1:9092", "k2:9092")
        self.cluster = KafkaCluster("id-1", ("k2:9092",), frozenset({"orders"}))
        self.problem = ""
        self.topics = {"orders": {0: 100, 1: 50}}
        self.groups: dict[str, dict[tuple[str, int], int]] = {}
        self.last: int | None = 1_800_000_000_000_000
        self.records: dict[str, tuple[bytes | None, bytes | None]] = {}
        self.down = False

    def ends(self, topics: Iterable[str], *, newest: bool = False) -> dict[str, EndOffsets]:
        if self.down:
            raise KafkaError("Kafka k1:9092 does not tell topics")
        wanted = set(topics) & self.topics.keys()
        return {t: EndOffsets(dict(self.topics[t]), self.last if newest else None) for t in wanted}

    def committed(self, groups: Iterable[str]) -> dict[str, dict[tuple[str, int], int]]:
        return {group: self.groups[group] for group in groups if group in self.groups}

    def newest_record(self, topic: str) -> tuple[bytes | None, bytes | None] | None:
        return self.records.get(topic)


def tracked(kind: str = "sink", **more: Any) -> TrackedConnector:
    topic = Dataset("kafka://k1:9092", "orders", cluster_id="id-1")
    other = Dataset("file", "/out")
    sides = {"inputs": (topic,), "outputs": (other,)}
    if kind == "source":
        sides = {"inputs": (other,), "outputs": (topic,)}
    derived = Derived(job_of("ns", "c", "file"), Lineage(sides["inputs"], sides["outputs"], ()))
    return TrackedConnector(
        cluster="lab",
        name="c",
        type=kind,
        run=RUN,
        last_event=EventType.START,
        derived=derived,
        **more,
    )


@pytest.fixture
def kafka() -> FakeKafka:
    return FakeKafka()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_800_000_000.0]
    monkeypatch.setattr("headwater.connect.agent.flow.time.time", lambda: now[0])
    return now


def test_a_sinks_lag_and_speed(kafka: FakeKafka, clock: list[float]) -> None:
    kafka.groups["connect-c"] = {("orders", 0): 90, ("orders", 1): 50, ("old", 0): 7}
    flow = FlowMeter(kafka)  # type: ignore[arg-type]
    (first,) = flow.measure([tracked()])
    assert (first.lag, first.records_per_second, first.direction) == (10, None, "input")
    assert first.last_record_at == "2027-01-15T08:00:00Z"
    clock[0] += 10
    kafka.groups["connect-c"][("orders", 0)] = 100
    (second,) = flow.measure([tracked()])
    assert (second.lag, second.records_per_second, second.end_offset) == (0, 1.0, 150)
    assert second.last_record_at == first.last_record_at
    assert flow.latest[RUN] == (second,)


def test_what_a_sink_takes_from_its_topics_it_delivers(
    kafka: FakeKafka, clock: list[float]
) -> None:
    kafka.topics["bids"] = {0: 10}
    kafka.groups["connect-c"] = {("orders", 0): 0, ("bids", 0): 0}
    orders = Dataset("kafka://k1:9092", "orders", cluster_id="id-1")
    bids = Dataset("kafka://k1:9092", "bids", cluster_id="id-1")
    both, one = Dataset("s3://raw", "all"), Dataset("s3://raw", "orders")
    edges = (Edge(orders.id, both.id), Edge(bids.id, both.id), Edge(orders.id, one.id))
    lineage = Lineage((orders, bids), (both, one), edges)
    sink = msgspec.structs.replace(tracked(), derived=Derived(job_of("ns", "c", "file"), lineage))
    flow = FlowMeter(kafka)  # type: ignore[arg-type]
    assert {sample.direction for sample in flow.measure([sink])} == {"input"}, "no rate yet"
    clock[0] += 10
    kafka.groups["connect-c"] = {("orders", 0): 20, ("bids", 0): 5}
    found = flow.measure([sink])
    rates = {s.dataset.name: s.records_per_second for s in found if s.direction == "output"}
    assert rates == {"all": 2.5, "orders": 2.0}
    # The facet of a heartbeat has topics alone.
    assert {sample.direction for sample in flow.latest[RUN]} == {"input"}


def test_a_sources_speed_and_another_group(kafka: FakeKafka, clock: list[float]) -> None:
    flow = FlowMeter(kafka)  # type: ignore[arg-type]
    flow.measure([tracked("source")])
    kafka.topics["orders"][0] += 500
    clock[0] += 10
    (sample,) = flow.measure([tracked("source")])
    assert (sample.direction, sample.records_per_second, sample.lag) == ("output", 50.0, None)
    kafka.groups["mine"] = {("orders", 0): 600, ("orders", 1): 49}
    (sample,) = flow.measure([tracked(group="mine")])
    assert sample.lag == 1


def test_what_does_not_run_is_not_measured_nor_is_a_kafka_that_is_away(kafka: FakeKafka) -> None:
    flow = FlowMeter(kafka)  # type: ignore[arg-type]
    over = tracked()
    assert flow.measure([TrackedConnector(cluster="lab", name="x"), over]) != []
    kafka.down = True
    assert flow.measure([over]) == flow.measure([over]) == []


def test_nothing_is_kept_of_runs_that_are_over(kafka: FakeKafka, clock: list[float]) -> None:
    flow = FlowMeter(kafka)  # type: ignore[arg-type]
    flow.measure([tracked("source")])
    flow.measure([])
    clock[0] += 10
    (sample,) = flow.measure([tracked("source")])
    assert sample.records_per_second is None


def test_samples_go_to_servers_that_know_flow(kafka: FakeKafka) -> None:
    import httpx

    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(404 if request.url.host == "old" else 202)

    samples = FlowMeter(kafka).measure([tracked("source")])  # type: ignore[arg-type]
    login = {"type": "api_key", "api_key": "t"}
    new = destinations({"type": "http", "url": "http://new/", "auth": login})
    old = destinations({"type": "http", "url": "http://old"})
    reporter = FlowReporter([*new, *old, *destinations({"type": "console"})])
    reporter._http = httpx.Client(transport=httpx.MockTransport(handler))
    for _ in range(2):
        reporter.post(samples)
    reporter.post([])
    assert [str(r.url) for r in asked] == [
        "http://new/api/v2/flow", "http://old/api/v2/flow", "http://new/api/v2/flow",
    ]  # fmt: skip
    assert asked[0].headers["Authorization"] == "Bearer t"
    (sent,) = json.loads(asked[0].content)["samples"]
    assert sent["run"] == RUN
    assert sent["dataset"] == {"namespace": "kafka://k1:9092", "name": "orders"}


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (b'{"id": 1, "to": {"city": "Oslo"}, "ok": true}', [("id", "long"), ("to.city", "string"), ("ok", "boolean")]),
        (CONNECT_JSON, [("id", "int32")]),
        (b"no json", None),
        (b"[1]", None),
        (None, None),
    ],
)  # fmt: skip
def test_columns_out_of_a_record_when_that_was_allowed(
    kafka: FakeKafka, value: bytes | None, fields: list[tuple[str, str]] | None
) -> None:
    kafka.records["orders"] = (None, value)
    connector = Connector("c", "sink", {})
    closed = LiveMetadata(kafka=kafka)  # type: ignore[arg-type]
    assert closed.topic_schema("orders", connector) is None
    metadata = LiveMetadata(kafka=kafka, sample=True)  # type: ignore[arg-type]
    found = metadata.topic_schema("orders", connector)
    if fields is None:
        assert found is None
    else:
        assert found is not None
        assert found.sampled
        assert found.value is not None
        assert [name for name, _ in fields] == [f.name for f in found.value.columns()]


def test_kafka_settings_as_the_client_takes_them() -> None:
    config = client_config({"bootstrap.servers": "SASL_SSL://a:9093, b:9093", "sasl.username": "u"})
    assert config["bootstrap.servers"] == "a:9093,b:9093"
    assert config["sasl.username"] == "u"
    iam = client_config({"bootstrap.servers": "b:9098", "headwater.msk.iam.region": "eu-west-1"})
    assert iam["sasl.mechanism"] == "OAUTHBEARER"
    assert "headwater.msk.iam.region" not in iam
    with pytest.raises(UsageError):
        KafkaAdmin({})
