"""Events from a real Kafka topic: none lost, none twice, whatever happens to the server."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from .making import event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Process


def options(kafka: Any, topic: str, *more: str) -> list[str]:
    named = ["--kafka-bootstrap", kafka.bootstrap, "--topic", topic, "--kafka-group", topic]
    return [*named, "--no-page", *more]


def until(check: Callable[[], bool], seconds: float = 45) -> None:
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def held(server: Process) -> list[str]:
    """The events of the log, by run."""
    found, after = [], 0
    while True:
        page = httpx.get(f"{server.url}/api/v2/events", params={"after": after, "limit": 1000})
        answer = page.json()
        found += [r["event"]["run"]["runId"] for r in answer["records"]]
        if not answer["more"]:
            return found
        after = answer["next"]


def made(numbers: range) -> list[str]:
    return [json.dumps(event("START", n % 3600, run=n, outputs=["b"])) for n in numbers]


def test_what_is_no_event_goes_to_the_dead_letters(
    kafka: Any, launch: Callable[..., Process]
) -> None:
    topic = kafka.topic("events")
    bad = ["{", json.dumps({"eventTime": "x"}), "[]"]
    kafka.produce(topic, [made(range(1))[0], *bad, made(range(1, 2))[0]])
    server = launch(None, *options(kafka, topic))
    until(lambda: len(held(server)) == 2)
    letters = kafka.consume(f"{topic}.dead", 3)
    assert [letter.value().decode() for letter in letters] == bad
    told = [dict(letter.headers()) for letter in letters]
    assert [t["headwater.offset"] for t in told] == [b"1", b"2", b"3"]
    assert b"eventTime" in told[1]["headwater.error"]
    kafka.produce(topic, [json.dumps({}), *made(range(2, 3))])
    until(lambda: len(held(server)) == 3)


def test_kill_minus_nine_neither_loses_nor_doubles(
    kafka: Any, launch: Callable[..., Process], store_url: str
) -> None:
    topic = kafka.topic("events", partitions=3)
    count = 2_000
    server = launch(store_url, *options(kafka, topic))
    feeder = threading.Thread(target=lambda: feed(kafka, topic, count))
    feeder.start()
    for part in (1, 3):
        wanted = part * count // 8
        until(lambda wanted=wanted: len(held(server)) >= wanted)  # type: ignore[misc]
        server.kill()
        server.start()
    feeder.join()
    until(lambda: len(held(server)) >= count)
    found = held(server)
    assert len(found) == len(set(found)) == count


def feed(kafka: Any, topic: str, count: int) -> None:
    for start in range(0, count, 250):
        kafka.produce(topic, made(range(start, start + 250)))


def test_a_store_that_was_away_gets_everything(
    kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.server.ingest import kafka as module
    from headwater.server.store import Store, StoreUnavailableError, open_store

    from .conftest import Client

    topic = kafka.topic("events")
    kafka.produce(topic, made(range(30)))
    monkeypatch.setattr(module, "PAUSE", 0.05)
    client = Client(open_store(f"sqlite:///{tmp_path}/a.db"))
    whole = Store.append
    failed: list[int] = []

    def append(store: Store, bodies: Any, also: Any = None) -> Any:
        if len(failed) < 3:
            failed.append(len(bodies))
            raise StoreUnavailableError("the database is away")
        return whole(store, bodies, also)

    monkeypatch.setattr(Store, "append", append)
    settings = module.KafkaSettings(bootstrap=kafka.bootstrap, topic=topic, group=topic)
    client.app.background.append(module.consume(settings))
    client.call("POST", "/api/v2/events", content="{}")
    until(lambda: client.call("GET", "/api/v2/health").json()["events"] == 30)
    assert len(failed) == 3
    client.close()


@pytest.mark.full
def test_servers_on_one_store_share_the_partitions(
    kafka: Any, launch: Callable[..., Process], postgres: Any
) -> None:
    topic, store = kafka.topic("events", partitions=4), postgres.database()
    servers = [launch(store, *options(kafka, topic)) for _ in range(2)]
    feed(kafka, topic, 1_000)
    until(lambda: len(held(servers[0])) == 1_000)
    servers[0].kill()
    kafka.produce(topic, made(range(1_000, 1_500)))
    until(lambda: len(held(servers[1])) >= 1_500)
    found = held(servers[1])
    assert len(found) == len(set(found)) == 1_500


@pytest.mark.full
def test_a_topic_that_comes_later_is_read(
    kafka: Any, launch: Callable[..., Process], tmp_path: Path
) -> None:
    from confluent_kafka.cimpl import NewTopic

    topic = kafka.topic("events") + "_later"
    extra = tmp_path / "client.properties"
    extra.write_text("# quick, for the test\ntopic.metadata.refresh.interval.ms = 200\n")
    server = launch(None, *options(kafka, topic, "--kafka-config", str(extra)))
    kafka.admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    kafka.produce(topic, made(range(1)))
    until(lambda: len(held(server)) == 1)


def test_offsets_and_events_stand_or_fall_together(tmp_path: Path) -> None:
    from headwater.server.ingest.kafka import KafkaBatch, MovedError, UndeliveredError
    from headwater.server.store import open_store

    class Message:
        def __init__(self, offset: int, value: bytes | None) -> None:
            self._offset, self._value = offset, value

        def offset(self) -> int:
            return self._offset

        def value(self) -> bytes | None:
            return self._value

        def topic(self) -> str:
            return "t"

        def partition(self) -> int:
            return 0

    store = open_store(f"sqlite:///{tmp_path}/a.db")
    place = ("t", 0)

    def batch(
        *messages: Message, stored: int | None, dead: frozenset[int] = frozenset()
    ) -> KafkaBatch:
        return KafkaBatch(list(messages), dead, {place: stored}, str, 10_000)

    def count() -> int:
        ((found,),) = store.connection.all("SELECT count(*) FROM log")
        return int(found)

    good = [Message(n, text.encode()) for n, text in enumerate(made(range(3)))]
    torn, empty, huge = Message(3, b"{"), Message(4, None), Message(5, b" " * 10_001)
    with pytest.raises(UndeliveredError) as caught:
        batch(*good, torn, stored=None).take(store)
    assert [r.message for r in caught.value.refused] == [torn]
    assert count() == 0
    assert batch(*good, torn, stored=None, dead=frozenset([id(torn)])).take(store) == {place: 4}
    assert count() == 3
    with pytest.raises(UndeliveredError) as caught:
        batch(empty, huge, stored=4).take(store)
    assert [r.reason for r in caught.value.refused] == [
        "the message has no value", "larger than 10000 bytes",
    ]  # fmt: skip
    with pytest.raises(MovedError):
        batch(Message(0, made(range(9, 10))[0].encode()), stored=None).take(store)
    assert count() == 3
    store.close()
