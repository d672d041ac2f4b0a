"""The outbox on a real PostgreSQL, and events through a real Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psycopg
import pytest

from headwater.emit import Outbox, OutboxInUseError, Sender, destinations

if TYPE_CHECKING:
    from headwater.lab.clients import KafkaClient, PostgresClient


def event(number: int) -> bytes:
    job = {"name": "orders", "namespace": "shop"}
    return json.dumps({"job": job, "number": number}, sort_keys=True).encode()


def test_who_loses_the_lock_writes_no_more(postgres: PostgresClient) -> None:
    url = postgres.database("outbox")
    first, second = Outbox(url), Outbox(url)
    assert first.lead()
    assert not second.lead()
    first.register({"x": "x"})
    with first.transaction() as step:
        step.append("r", event(1))
        step.put("a", b"1")
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(
            "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'"
        )

    def write() -> None:
        with first.transaction() as step:
            step.put("a", b"2")

    with pytest.raises(OutboxInUseError):
        write()
    assert not first.leads
    assert second.lead()
    assert not first.lead()
    assert second.state() == {"a": b"1"}
    assert [one.body for one in second.pending("x")] == [event(1)]
    second.note("topic", b"word")
    assert second.notes("topic") == [b"word"]
    second.refuse("x", second.pending("x")[0], "HTTP 400")
    assert [one.reason for one in second.refused()] == ["HTTP 400"]
    assert second.waiting() == {}
    for outbox in (first, second):
        outbox.close()
        outbox.forget_connection()


def test_events_through_kafka_arrive_in_order_under_their_jobs_key(
    kafka: KafkaClient, postgres: PostgresClient
) -> None:
    topic = kafka.topic("openlineage", partitions=3)
    outbox = Outbox(postgres.database("outbox"))
    assert outbox.lead()
    config = {"bootstrap.servers": kafka.bootstrap}
    targets = destinations({"type": "kafka", "topic": topic, "config": config})
    outbox.register({target.name: target.shown for target in targets})
    sender = Sender(outbox, targets)
    with outbox.transaction() as step:
        for number in range(20):
            step.append("r", event(number))
    sender.start()
    assert sender.stop(flush=30)
    messages = kafka.consume(topic, 20)
    assert [message.value() for message in messages] == [event(n) for n in range(20)]
    assert {message.key() for message in messages} == {b"run:shop/orders"}
    outbox.close()
    outbox.forget_connection()
