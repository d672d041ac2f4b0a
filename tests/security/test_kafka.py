"""Hostile records in the topic that a server reads: each is set aside and counted, none stops it."""

from __future__ import annotations

import json
import logging
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from headwater.server.ingest import kafka as module
from headwater.server.store import Store, open_store
from tests.integration.server.conftest import Client
from tests.integration.server.making import dataset, event, facet, schema
from tests.integration.server.test_faults import Away
from tests.security.kafka_records import GZIP, ZSTD, Record, produce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEAD = "kafka: dead letter"


def until(check: Callable[[], bool], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def good(number: int) -> dict[str, Any]:
    return event("START", number, run=number, outputs=["b"])


def body(number: int) -> bytes:
    return json.dumps(good(number)).encode()


def held(client: Client) -> list[int]:
    """The good events of the log, by number, in its order."""
    records = client.get("/api/v2/events", limit=1000)["records"]
    return [int(record["event"]["run"]["runId"][-12:]) for record in records]


@pytest.fixture
def reader(kafka: Any, store_url: str) -> Iterator[Callable[..., Client]]:
    """Servers that read a topic, one after the other on one store."""
    started: list[Client] = []

    def start(topic: str, **more: Any) -> Client:
        if started:
            started.pop().close()
        client = Client(open_store(store_url))
        started.append(client)
        settings = module.KafkaSettings(bootstrap=kafka.bootstrap, topic=topic, group=topic, **more)
        client.app.background.append(module.consume(settings))
        client.get("/api/v2/health")  # starts what runs in the background
        return client

    yield start
    for client in started:
        client.close()


ON_SQLITE = pytest.mark.parametrize(
    "store_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)], indirect=True
)


def named(name: str) -> bytes:
    return json.dumps(good(0)).replace('"load"', json.dumps(name)).encode()


HOSTILE: dict[str, bytes | None] = {
    "tombstone": None,
    "empty": b"",
    "garbage": os.urandom(3_000),
    "zeros": bytes(3_000),
    "magic byte of a schema": b"\0\0\0\0\x05\x02a",
    "no UTF-8": b'{"eventTime": "\xff\xfe"}',
    "lone surrogate": named("X").replace(b'"X"', b'"\\ud800"'),
    "NUL in a name": named("a\0b"),
    "a number": b"9" * 5_000,
    "an array": json.dumps([good(0)]).encode(),
    "two events": body(0) + b"\n" + body(1),
    "wrong schema": b'{"schema": {"type": "struct"}, "payload": {"x": 1}}',
    "no job": json.dumps({**good(0), "job": None}).encode(),
    "key twice": body(0).replace(b'"job":', b'"job": {}, "job":'),
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep in a facet": body(0)[:-1] + b', "x": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "long name": named("x" * 1_025),
    "a line of its own in the log": body(0).replace(b'"job":', b'"job\\nWARNING all is well":'),
    "many values": body(0)[:-1] + b', "x": [' + b"0," * 300_000 + b"0]}",
    "far future": body(0).replace(b"2026-01-01", b"2999-01-01"),
    "gzip as the value": b"\x1f\x8b" + os.urandom(100),
}


@ON_SQLITE
def test_what_is_no_event_is_set_aside_and_what_lies_between_is_kept(
    kafka: Any, reader: Any, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kafka.topic("hostile")
    records = []
    for number, value in enumerate(HOSTILE.values()):
        records += [Record(body(number)), Record(value)]
    secret = event("START", 99, run=99, outputs=[dataset("s", schema=schema("id"))], job_facets={
        "sql": facet(query="CREATE USER u PASSWORD 'hunter2-of-kafka'")})  # fmt: skip
    produce(kafka.bootstrap, topic, [*records, Record(json.dumps(secret).encode())])
    with caplog.at_level(logging.WARNING):
        client = reader(topic)
        until(lambda: client.get("/api/v2/health")["events"] > len(HOSTILE), "the last event")
    assert held(client) == [*range(len(HOSTILE)), 99]
    letters = kafka.consume(f"{topic}.dead", len(HOSTILE))
    assert [letter.value() or b"" for letter in letters] == [v or b"" for v in HOSTILE.values()]
    assert client.app.refusals[DEAD] == len(HOSTILE)
    counted = f'headwater_refused_total{{reason="{DEAD}"}} {len(HOSTILE)}'
    assert counted in client.call("GET", "/api/v2/metrics").text
    assert "warnings" not in client.get("/api/v2/health")
    assert not any("\n" in record.getMessage() for record in caplog.records)
    assert "hunter2" not in client.call("GET", "/api/v2/events?limit=1000").text


def around(kafka: Any, topic: str, *records: Record, codec: int = 0) -> None:
    """Records between two good ones."""
    produce(kafka.bootstrap, topic, [Record(body(0))])
    produce(kafka.bootstrap, topic, list(records), codec)
    produce(kafka.bootstrap, topic, [Record(body(1))])


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_headers_that_are_no_text_end_nothing(kafka: Any, reader: Any) -> None:
    topic = kafka.topic("headers")
    odd = ((b"\xff\xfe", b"x"), (b"", b""), (b"headwater.error", b"\xff"), (b"a" * 5_000, b"\0"))
    around(kafka, topic, *(Record(b"{", (header,)) for header in odd), Record(b"{", odd * 20))
    client = reader(topic)
    until(lambda: held(client) == [0, 1], "the event behind them")
    assert client.app.refusals[DEAD] == len(odd) + 1


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.full
def test_a_message_too_large_for_the_dead_letters_is_cut(kafka: Any, reader: Any) -> None:
    topic = kafka.topic("large")
    random = os.urandom(1_048_480)  # fits by itself, and not with what a letter adds
    around(kafka, topic, Record(random))
    produce(kafka.bootstrap, topic, [Record(b"{", ((b"h", random),))])
    produce(kafka.bootstrap, topic, [Record(b" " * 12_000_000)], ZSTD)
    produce(kafka.bootstrap, topic, [Record(body(2))])
    client = reader(topic)
    until(lambda: held(client) == [0, 1, 2], "the events behind them")
    letters = kafka.consume(f"{topic}.dead", 3)
    letters.sort(key=lambda one: int(dict(one.headers())["headwater.offset"]))
    assert letters[0].value() == random[: module.LETTER_BYTES]
    assert dict(letters[0].headers())["headwater.cut"] == b"65536 of 1048480 bytes"
    assert dict(letters[0].headers())["headwater.offset"] == b"1"
    assert letters[1].value() == b"{"
    assert len(letters[2].value()) == 12_000_000  # packed, it fits


@pytest.mark.full
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_batch_that_cannot_be_unpacked_is_passed(kafka: Any, reader: Any) -> None:
    topic = kafka.topic("bomb")
    bomb = [Record(bytes(1_000_000))] * 110  # more than the client's 100 MB
    around(kafka, topic, *bomb, codec=ZSTD)
    produce(kafka.bootstrap, topic, bomb, ZSTD)
    produce(kafka.bootstrap, topic, [Record(body(n)) for n in (2, 3)], GZIP)
    client = reader(topic)
    until(lambda: held(client) == [0, 1, 2, 3], "the events behind them")
    reasons = [dict(one.headers())["headwater.error"] for one in kafka.consume(f"{topic}.dead", 2)]
    assert [reason[:18] for reason in reasons] == [b"offsets 1 to 110: ", b"offsets 112 to 221"]
    assert client.app.refusals[DEAD] == 2


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.full
def test_large_messages_are_taken_a_few_at_a_time(
    kafka: Any, reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic("many")
    text = [
        event("START", n, run=n, run_facets={"x": facet(text="y" * 300_000)}) for n in range(30)
    ]
    produce(kafka.bootstrap, topic, [Record(json.dumps(one).encode()) for one in text], GZIP)
    sizes: list[int] = []
    whole = Store.append

    def append(store: Store, bodies: Any, also: Any = None) -> Any:
        sizes.append(sum(map(len, bodies)))
        return whole(store, bodies, also)

    monkeypatch.setattr(Store, "append", append)
    client = reader(topic)
    until(lambda: len(held(client)) == 30, "all of them")
    assert max(sizes) < module.BATCH_BYTES + 400_000  # other requests wait for one commit


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.full
def test_dead_letters_that_cannot_be_written_hold_and_are_named_by_health(
    kafka: Any, reader: Any
) -> None:
    from confluent_kafka import admin as module_of_admin
    from confluent_kafka.cimpl import NewTopic

    admin: Any = module_of_admin  # its stubs leave these out
    topic = kafka.topic("held")
    dead = f"{topic}.dead"
    made = NewTopic(dead, 1, 1, config={"max.message.bytes": "10"})
    kafka.admin.create_topics([made])[dead].result(30)
    around(kafka, topic, Record(b"{"))
    client = reader(topic)
    until(lambda: "warnings" in client.get("/api/v2/health"), "a warning")
    assert "takes no dead letters" in client.get("/api/v2/health")["warnings"][0]
    wider = admin.ConfigEntry(
        "max.message.bytes", "1000000", incremental_operation=admin.AlterConfigOpType.SET
    )
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, dead, incremental_configs=[wider])
    kafka.admin.incremental_alter_configs([resource])[resource].result(30)
    until(lambda: held(client) == [0, 1], "the event behind it")
    assert [letter.value() for letter in kafka.consume(dead, 1)] == [b"{"]
    until(lambda: "warnings" not in client.get("/api/v2/health"), "no warning")


@pytest.mark.full
@ON_SQLITE
def test_offsets_that_kafka_lost_or_was_told_wrong_change_nothing(
    kafka: Any, reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = kafka.topic("offsets")
    produce(kafka.bootstrap, topic, [Record(body(n)) for n in range(20)])
    foreign = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    foreign.commit(offsets=[TopicPartition(topic, 0, 15)], asynchronous=False)
    # As after a kill between the commit and what Kafka is told: it is never told.
    monkeypatch.setattr(module.KafkaSource, "_positions", lambda *_: [])
    client = reader(topic)
    until(lambda: held(client) == [*range(20)], "all of them")
    produce(kafka.bootstrap, topic, [Record(body(n)) for n in range(20, 30)])
    client = reader(topic)
    until(lambda: len(held(client)) >= 30, "those after the restart")
    assert held(client) == [*range(30)]
    foreign.close()


@pytest.mark.full
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_a_database_that_is_away_costs_nothing(kafka: Any, reader: Any, store_url: str) -> None:
    topic = kafka.topic("away")
    client = reader(topic)
    sent = 0
    for _ in range(4):
        with Away(store_url):
            for _ in range(5):
                produce(kafka.bootstrap, topic, [Record(body(sent)), Record(b"{")])
                sent += 1
        until(lambda: client.call("GET", "/api/v2/health").status_code == 200, "the database")
        until(lambda: len(held(client)) >= sent, "what came meanwhile")  # noqa: B023
    assert held(client) == [*range(sent)]
    assert client.app.refusals[DEAD] >= sent
