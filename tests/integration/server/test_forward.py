"""The log goes to a Kafka topic: whole, in order, and no event waits for it."""

from __future__ import annotations

import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest

from headwater.errors import UsageError
from headwater.server.forward import read_target
from headwater.server.store.keep.retention import retain

from .making import event
from .test_kafka import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.store import Store

    from .conftest import Process


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("kafka:9092", ("kafka:9092", "openlineage.events")),
        ("a:1,b:2/lineage.log", ("a:1,b:2", "lineage.log")),
        ("SASL_SSL://kafka:9092", ("SASL_SSL://kafka:9092", "openlineage.events")),
        ("SASL_SSL://kafka/t", ("SASL_SSL://kafka", "t")),
    ],
)
def test_an_address_may_name_a_topic(text: str, found: tuple[str, str]) -> None:
    assert read_target(text) == found


@pytest.mark.parametrize("text", ["", "/t", "kafka:9092/", "kafka:9092/a b"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_target(text)


def record(server: Process, number: int) -> dict[str, Any]:
    return event("START", number % 3600, run=number, job=f"job{number % 7}", outputs=["b"])


def post(server: Process, numbers: range) -> None:
    for number in numbers:
        answer = httpx.post(f"{server.url}/api/v1/lineage", json=record(server, number))
        assert answer.status_code == 201, answer.text


def logged(server: Process) -> dict[int, dict[str, Any]]:
    """Every record of the log that the server shows."""
    found: dict[int, dict[str, Any]] = {}
    after = 0
    while True:
        page = httpx.get(f"{server.url}/api/v2/events", params={"after": after, "limit": 1000})
        answer = page.json()
        found |= {r["seq"]: r.get("event") or r["command"] for r in answer["records"]}
        if not answer["more"]:
            return found
        after = answer["next"]


def forwarded(server: Process) -> int:
    text = httpx.get(f"{server.url}/api/v2/metrics").text
    lines = [line for line in text.splitlines() if line.startswith("headwater_forwarded_records ")]
    return int(lines[0].split()[1]) if lines else -1


def told(message: Any, name: str) -> str:
    return str(dict(message.headers())[f"headwater.{name}"].decode())


def seq(message: Any) -> int:
    return int(told(message, "seq"))


def test_events_and_commands_arrive_in_order(kafka: Any, launch: Callable[..., Process]) -> None:
    topic = kafka.topic("log")
    server = launch(None, "--no-page", "--forward-kafka", f"{kafka.bootstrap}/{topic}")
    post(server, range(20))
    tagged = f"{server.url}/api/v1/namespaces/s3%3A%2F%2Flake/datasets/b/tags/PII"
    assert httpx.post(tagged).status_code == 201
    assert httpx.delete(f"{server.url}/api/v1/namespaces/jobs/jobs/job3").status_code == 200
    post(server, range(20, 40))
    expected = logged(server)
    messages = kafka.consume(topic, len(expected))
    assert [seq(m) for m in messages] == sorted(expected)
    assert [msgspec.json.decode(m.value()) for m in messages] == list(expected.values())
    assert {told(m, "kind") for m in messages} == {"event", "command"}
    jobs = [
        dict(m.headers()).get("headwater.job") for m in messages if told(m, "kind") == "command"
    ]
    assert jobs == [None, b'["jobs","job3"]']
    assert [m.key() for m in messages][:2] == [b"run:jobs/job0", b"run:jobs/job1"]
    assert len({told(m, "log") for m in messages}) == 1
    until(lambda: forwarded(server) == len(expected))


def test_kill_minus_nine_loses_nothing_and_keeps_the_order(
    kafka: Any, launch: Callable[..., Process], store_url: str
) -> None:
    topic, count = kafka.topic("log", partitions=3), 600
    server = launch(store_url, "--no-page", "--forward-kafka", f"{kafka.bootstrap}/{topic}")

    def feed() -> None:
        for number in range(count):
            while True:  # as a producer does, until a server has it
                try:
                    post(server, range(number, number + 1))
                    break
                except httpx.HTTPError:
                    time.sleep(0.05)

    feeder = threading.Thread(target=feed)
    feeder.start()
    for part in (1, 2):
        until(lambda part=part: forwarded(server) >= part * count // 4)  # type: ignore[misc]
        server.kill()
        server.start()
    feeder.join()
    until(lambda: forwarded(server) == count)
    expected = logged(server)
    assert len(expected) == count
    found: dict[int, dict[str, Any]] = {}
    last: dict[int, int] = {}
    for message in kafka.consume(topic, count):
        number = seq(message)
        if number in found:
            continue  # sent again after a kill
        assert number > last.get(message.partition(), 0)
        last[message.partition()] = number
        found[number] = msgspec.json.decode(message.value())
    assert len(last) > 1, "one partition would have order by itself"
    # What was sent twice comes before the last ones in the count that was asked for.
    messages = kafka.consume(topic, total(kafka, topic))
    assert {seq(m): msgspec.json.decode(m.value()) for m in messages} == expected


def total(kafka: Any, topic: str) -> int:
    """How many records a topic holds."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": topic})
    try:
        numbers = consumer.list_topics(topic, 30).topics[topic].partitions
        marks = [consumer.get_watermark_offsets(TopicPartition(topic, n), 30) for n in numbers]
        return sum(high - low for low, high in marks)
    finally:
        consumer.close()


@pytest.mark.full
def test_a_record_that_the_topic_refuses_holds_up_what_is_behind_it(
    kafka: Any, launch: Callable[..., Process]
) -> None:
    admin: Any = import_module("confluent_kafka.admin")
    topic = kafka.topic("log")

    def limit(size: int) -> None:
        entry = admin.ConfigEntry(
            "max.message.bytes", str(size), incremental_operation=admin.AlterConfigOpType.SET
        )
        resource = admin.ConfigResource("TOPIC", topic, incremental_configs=[entry])
        for future in kafka.admin.incremental_alter_configs([resource]).values():
            future.result(30)

    limit(20_000)
    server = launch(None, "--no-page", "--forward-kafka", f"{kafka.bootstrap}/{topic}")
    post(server, range(2))
    large = record(server, 2)
    # Text that no compression makes small.
    large["run"]["facets"]["note"] = {
        "_producer": "p", "_schemaURL": "s", "text": "".join(f"{n * 2654435761 % 2**32:x}" for n in range(20_000)),
    }  # fmt: skip
    assert httpx.post(f"{server.url}/api/v1/lineage", json=large).status_code == 201
    post(server, range(3, 5))

    def warned() -> bool:
        warnings = httpx.get(f"{server.url}/api/v2/health").json().get("warnings", [])
        return any("record 3 is larger" in one and "max.message.bytes" in one for one in warnings)

    until(warned)
    assert forwarded(server) == 2
    limit(2_000_000)
    until(lambda: forwarded(server) == 5)
    assert not warned()


def test_no_event_waits_for_a_broker_that_is_away(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page", "--forward-kafka", "127.0.0.1:1/log")
    began = time.monotonic()
    post(server, range(50))
    assert time.monotonic() - began < 30
    health = httpx.get(f"{server.url}/api/v2/health").json()
    assert (health["status"], health["events"]) == ("ok", 50)
    until(lambda: bool(httpx.get(f"{server.url}/api/v2/health").json().get("warnings")))
    assert forwarded(server) == 0
    assert server.stop() in (0, -15)


@pytest.mark.full
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_of_two_servers_the_one_that_forwards_says_how_far_it_got(
    launch: Callable[..., Process], store_url: str
) -> None:
    options = ["--no-page", "--forward-kafka", "127.0.0.1:1/log"]
    servers = [launch(store_url, *options) for _ in range(2)]
    until(lambda: sorted(map(forwarded, servers)) == [-1, 0])
    other, leading = sorted(servers, key=forwarded)
    leading.stop()
    until(lambda: forwarded(other) == 0)


def test_retention_keeps_what_was_not_forwarded(store: Store) -> None:
    store.append([msgspec.json.encode(event("START", n, run=n, outputs=["b"])) for n in range(4)])
    assert retain(store, 2**60, 0).events == 0
    assert retain(store, 2**60, 3).events == 3
    assert [row[0] for row in store.connection.all("SELECT seq FROM log ORDER BY seq")] == [4, 5]


def test_a_topic_is_not_read_and_written_by_one_server(launch: Callable[..., Process]) -> None:
    options = ["--kafka-bootstrap", "127.0.0.1:1", "--forward-kafka", "127.0.0.1:1"]
    with pytest.raises(AssertionError, match="would be read and written"):
        launch(None, "--no-page", *options)
