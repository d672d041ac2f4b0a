"""Writers that nobody reports, over a Kafka that answers from memory."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from headwater.connect.config import ClusterConfig
from headwater.connect.groups.client_watcher import MAX_WATCHED
from headwater.connect.groups.excluded import is_connector_producer
from headwater.connect.groups.generated import producer_name
from headwater.connect.groups.producers import ProducerWatcher
from headwater.connect.life.intervals import Intervals
from headwater.connect.life.state import TrackedConnector
from headwater.connect.services import transactions
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.kafka import KafkaCluster
from headwater.connect.services.transactions import Transaction, read_transaction
from headwater.emit import Outbox

from .test_agent import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

FACET = Path(__file__).parents[3] / "docs" / "facets" / "headwater_transactionalProducer.json"
ROUND, HEARTBEAT, GRACE = 30.0, 300.0, 600.0
# As Kafka 4.3 wrote them.
KEY = bytes.fromhex("0000001062696c6c696e672d7772697465722d30")
EMPTY = bytes.fromhex(
    "0001000000000000000000000000ea600000000001a1ed90e06dffffffffffffffff0100080000000000000000"
)
ONGOING = bytes.fromhex(
    "0001000000000000000000000000ea60010307626964732d78020000000000096f72646572732d780200000000"
    "00000001a1ed90e0ea000001a1ed90e0ea0100080000000000000000"
)
COMMITTED = bytes.fromhex(
    "0001000000000000000000000000ea600401000001a1ed90e16c000001a1ed90e0ea0100080000000000000000"
)


def text(value: str) -> bytes:
    return len(value).to_bytes(2, "big") + value.encode()


def key(name: str) -> bytes:
    return b"\0\0" + text(name)


def value(at: int, *topics: str, status: int = 1) -> bytes:
    """A record of the first version, which brokers before Kafka 4 write."""
    head = b"\0\0" + (7).to_bytes(8, "big") + b"\0\1" + (60_000).to_bytes(4, "big")
    parts = b"".join(text(topic) + (2).to_bytes(4, "big") + b"\0\0\0\0\0\0\0\1" for topic in topics)
    count = len(topics).to_bytes(4, "big", signed=True)
    return head + bytes([status]) + count + parts + 2 * (at // 1000).to_bytes(8, "big")


def test_records_of_both_versions_are_read() -> None:
    name, both = "billing-writer-0", frozenset({"orders-x", "bids-x"})
    assert read_transaction(KEY, ONGOING) == Transaction(name, both, 1_794_987_057_386_000)
    assert read_transaction(KEY, COMMITTED) == Transaction(name, frozenset(), 1_794_987_057_516_000)
    assert read_transaction(KEY, EMPTY) == Transaction(name)
    assert read_transaction(KEY, None) == Transaction(name)
    old = read_transaction(key("a"), value(5_000_000, "orders", "bids"))
    assert old == Transaction("a", frozenset({"orders", "bids"}), 5_000_000)
    null = value(5_000_000)[:17] + b"\xff\xff\xff\xff" + value(5_000_000)[21:]
    assert read_transaction(key("a"), null) == Transaction("a", frozenset(), 5_000_000)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (None, ONGOING), (b"", ONGOING), (KEY[:9], ONGOING), (b"\0\1" + KEY[2:], ONGOING),
        (KEY, b""), (KEY, b"\0\2" + ONGOING[2:]), (KEY, ONGOING[:30]), (key("a\nb"), ONGOING),
        (key("x" * 501), ONGOING), (b"\0\0\0\1\xff", ONGOING),
        (KEY, ONGOING[:17] + b"\xff" * 40), (KEY, value(1, "orders")[:24]),
    ],
)  # fmt: skip
def test_a_record_that_is_not_understood_is_none(name: bytes | None, body: bytes) -> None:
    assert read_transaction(name, body) is None


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_break_the_reader(name: bytes, body: bytes) -> None:
    read_transaction(name, body)
    read_transaction(KEY, b"\0\1" + body)
    read_transaction(KEY, b"\0\0" + body)


@pytest.mark.parametrize(
    ("transactional_id", "name"),
    [
        ("billing-writer-0", "billing-writer-*"),
        ("order-tx17", "order-tx*"),
        ("app-0_1", "app-*"),
        ("app-3f0c9a52-8f4e-4b1e-9c59-0a6f2f3b7d11-2", "app-*"),
        ("sink-3-17", "sink-*"),
        ("tx-billing.orders.4", "tx-billing.orders.*"),
        ("42", "*"),
        *[(name, name) for name in ("billing", "billing-v2", "v2", "eu-1-billing", "billing-", "*")],
    ],
)  # fmt: skip
def test_the_producers_of_an_application_are_one(transactional_id: str, name: str) -> None:
    assert producer_name(transactional_id) == name
    assert producer_name(name) == name


def test_tasks_of_source_connectors_are_known_by_their_ids() -> None:
    names = {"orders-source", "bids"}
    assert is_connector_producer("connect-lab-orders-source-0", names)
    assert is_connector_producer("lab-bids-12", names)
    for other in ("lab-bids", "bids-1", "lab-other-1", "lab-bids-x", "labbids-1", ""):
        assert not is_connector_producer(other, names)


class Consumer:
    """A consumer of `__transaction_state` with one partition, as confluent-kafka's is."""

    def __init__(self, kafka: Brokers) -> None:
        self._kafka, self._at, self._asked = kafka, 0, False

    def list_topics(self, name: str, timeout: float) -> Any:
        refused = self._kafka.refused
        topic = SimpleNamespace(error=Error(refused) if refused else None, partitions={0: None})
        return SimpleNamespace(topics={name: topic})

    def assign(self, parts: list[Any]) -> None:
        (part,) = parts
        self._at = max(0, part.offset)

    def consume(self, count: int, timeout: float) -> list[Any]:
        if self._kafka.silent:
            return []
        if not self._asked:  # librdkafka looks for the coordinator of the group, used or not
            self._asked = True
            return [Message(0, b"", b"", Error("GROUP_AUTHORIZATION_FAILED"))]
        records = self._kafka.records[self._at : self._at + count]
        found = [Message(self._at + n, *record) for n, record in enumerate(records)]
        self._at += len(found)
        return found or [Message(self._at, b"", b"", Error("_PARTITION_EOF"))]

    def close(self) -> None:
        self._kafka.closed += 1


class Error:
    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def __str__(self) -> str:
        return self._name


class Message:
    def __init__(self, offset: int, key: bytes, value: bytes | None, error: Any = None) -> None:
        self._offset, self._key, self._value, self._error = offset, key, value, error

    def key(self) -> bytes:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> Any:
        return self._error

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return 0


class Brokers:
    def __init__(self) -> None:
        self.bootstrap, self.bootstraps = "k1:9092", ("k1:9092",)
        topics = frozenset({"orders", "bids", "__consumer_offsets", "__transaction_state"})
        self.cluster = KafkaCluster("id-1", ("k1:9092",), topics)
        self.problem = self.producers_problem = self.refused = ""
        self.silent = False
        self.records: list[tuple[bytes, bytes | None]] = []
        self.made = self.closed = 0

    def consumer(self, group: str, **_: Any) -> Consumer:
        assert group.startswith("headwater")
        self.made += 1
        return Consumer(self)


class Bench:
    def __init__(self, path: Path) -> None:
        self.kafka, self.clock = Brokers(), Clock()
        self.outbox = Outbox(str(path / "state.db"))
        assert self.outbox.lead()
        self.outbox.register({"all": "all"})
        self.connectors: list[TrackedConnector] = []
        self.skip: tuple[str, ...] = ()
        self.seen = 0
        self.watcher = self.make()

    def make(self) -> ProducerWatcher:
        config = ClusterConfig(
            name="lab",
            endpoint=Endpoint(("http://c:8083",)),
            namespace="shop",
            times=Intervals(poll=5, heartbeat=HEARTBEAT, grace=GRACE),
            skip_producers=self.skip,
        )
        kafka: Any = self.kafka
        return ProducerWatcher(config, kafka, self.outbox, lambda: self.connectors, self.clock)

    def write(self, name: str, *topics: str, ago: float = 0) -> None:
        """A transaction, as the broker notes it."""
        at = round((self.clock.now - ago) * 1e6)
        self.kafka.records.append((key(name), value(at, *topics)))
        self.kafka.records.append((key(name), value(at, status=4)))

    def events(self, seconds: float = ROUND) -> list[dict[str, Any]]:
        self.clock.now += seconds
        assert self.watcher.round() == []
        assert self.kafka.made == self.kafka.closed
        found = self.outbox.pending("all", 10_000)[self.seen :]
        self.seen += len(found)
        return [json.loads(one.body) for one in found]

    def said(self, seconds: float = ROUND) -> list[tuple[str, str]]:
        return [(e["eventType"], e["job"]["name"]) for e in self.events(seconds)]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.outbox.close()
    made.outbox.forget_connection()


def written(event: dict[str, Any]) -> list[str]:
    return [one["name"] for one in event["outputs"]]


def test_a_producer_that_nobody_accounts_for_is_a_job_that_writes(bench: Bench) -> None:
    bench.write("billing-0", "orders", "__consumer_offsets", "dropped")
    bench.write("billing-1", "bids")
    assert bench.events() == []
    (start,) = bench.events()
    assert (start["eventType"], start["inputs"], written(start)) == (
        "START",
        [],
        ["bids", "orders"],
    )
    assert (start["job"]["namespace"], start["job"]["name"]) == ("shop", "producer.billing-*")
    kind = start["job"]["facets"]["jobType"]
    assert (kind["integration"], kind["jobType"]) == ("KAFKA", "TRANSACTIONAL_PRODUCER")
    assert start["outputs"][0]["namespace"] == "kafka://k1:9092"
    facet = start["run"]["facets"]["headwater_transactionalProducer"]
    Draft202012Validator(json.loads(FACET.read_text())).validate(facet)
    assert (facet["transactionalId"], facet["ids"]) == ("billing-*", 2)
    assert bench.said(HEARTBEAT) == [("RUNNING", "producer.billing-*")]


def test_a_producer_without_transactions_for_the_grace_time_is_over_and_no_trouble(
    bench: Bench,
) -> None:
    bench.write("billing", "orders")
    bench.events()
    (start,) = bench.events()
    bench.write("billing", "bids")
    (more,) = bench.events()
    assert (more["eventType"], written(more)) == ("RUNNING", ["orders", "bids"])
    bench.watcher = bench.make()  # an agent that is killed goes on with the run
    assert bench.said() == []
    assert bench.said(HEARTBEAT) == [("RUNNING", "producer.billing")]
    (end,) = bench.events(GRACE)
    assert (end["eventType"], end["run"]["runId"]) == ("COMPLETE", start["run"]["runId"])
    reason = end["run"]["facets"]["headwater_end"]
    assert (reason["reason"], reason["inferred"]) == ("no transactions", True)
    assert [bench.said(), bench.said(GRACE)] == [[], []]
    assert (bench.watcher._ids, bench.watcher._watched) == ({}, {})


def test_what_is_long_over_at_the_first_look_is_not_reported(bench: Bench) -> None:
    bench.write("batch", "orders", ago=GRACE)
    bench.kafka.records += [(KEY, EMPTY), (b"junk", b"junk"), (key("gone"), None)]
    assert [bench.said(), bench.said()] == [[], []]
    # The broker's clock is behind by more than the grace time; the record is new all the same.
    bench.write("batch", "orders", ago=2 * GRACE)
    assert [bench.said(), bench.said()] == [[], [("START", "producer.batch")]]


def test_producers_of_connectors_and_skipped_ones_are_left_out(bench: Bench) -> None:
    bench.connectors = [
        TrackedConnector(cluster="lab", name="orders-source", type="source"),
        TrackedConnector(cluster="lab", name="sink", type="sink"),
    ]
    for name in (
        "connect-cluster-lab", "lab-orders-source-0", "lab-sink-0", "headwater-1", "etl-7",
        "worker-txn-3f0c9a52-8f4e-4b1e-9c59-0a6f2f3b7d11-0",
    ):  # fmt: skip
        bench.write(name, "orders")
    assert bench.said() == []
    assert bench.said() == [("START", "producer.etl-*"), ("START", "producer.lab-sink-*")]
    bench.skip = ("etl-*",)
    bench.watcher = bench.make()
    (end,) = bench.events()
    assert (end["eventType"], end["job"]["name"]) == ("COMPLETE", "producer.etl-*")
    assert end["job"]["facets"]["headwater_deleted"]["at"] == end["eventTime"]
    bench.connectors.append(TrackedConnector(cluster="lab", name="sink", type="source"))
    assert bench.said() == [("COMPLETE", "producer.lab-sink-*")]


def test_nothing_is_emitted_while_the_topic_may_not_be_read(bench: Bench) -> None:
    bench.write("billing", "orders")
    bench.events()
    bench.events()
    bench.kafka.refused = "TOPIC_AUTHORIZATION_FAILED"
    assert [bench.said(GRACE), bench.said(GRACE)] == [[], []]
    assert "TOPIC_AUTHORIZATION_FAILED" in bench.kafka.producers_problem
    bench.kafka.refused = ""
    bench.write("billing", "orders")
    assert bench.said() == [("RUNNING", "producer.billing")]
    assert bench.kafka.producers_problem == ""
    bench.kafka.refused = "UNKNOWN_TOPIC_OR_PART"  # there was never a transaction
    assert bench.said() == []
    assert bench.kafka.producers_problem == ""


def test_partitions_that_do_not_answer_end_no_producer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MAX_SECONDS", 0.05)
    bench.write("billing", "orders")
    bench.events()
    bench.events()
    bench.kafka.silent = True
    assert [bench.said(GRACE), bench.said(GRACE)] == [[], []]
    assert "did not return all of __transaction_state" in bench.kafka.producers_problem
    bench.kafka.silent = False
    bench.write("billing", "orders")
    assert bench.said() == [("RUNNING", "producer.billing")]
    assert bench.kafka.producers_problem == ""


def test_what_is_read_and_watched_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MAX_WATCHED + 5):
        bench.write(f"p{number:04}x", "orders")
    bench.events()
    assert len(bench.events()) == MAX_WATCHED
    assert f"{MAX_WATCHED + 5} transactional producers" in bench.kafka.producers_problem
    assert "skip_producers" in bench.kafka.producers_problem
    monkeypatch.setattr(transactions, "MAX_RECORDS", 10)
    monkeypatch.setattr(transactions, "BATCH", 10)
    bench.skip = ("p*",)
    bench.watcher = bench.make()
    bench.events()
    assert "more transactions than are read" in bench.kafka.producers_problem
    assert bench.watcher._log._next == {}
    monkeypatch.undo()
    bench.events()
    assert not bench.watcher._log.new  # what was passed over then may be old
    bench.events()
    assert bench.watcher._log.new
