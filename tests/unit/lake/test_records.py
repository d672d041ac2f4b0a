"""A record of the topic becomes the row that the server would have made of it, or is refused."""

from __future__ import annotations

import hashlib
import tempfile
from typing import Any

import msgspec
import pytest
from hypothesis import given

from headwater.lake.records import Arrival, RecordReader
from headwater.lake.tables import EVENTS, REFUSED
from headwater.lineage.moments import iso
from headwater.server.store import open_store
from tests.properties import examples

from .estates import BASE, estate, facet, moment

NOW = (BASE + 100_000) * 1_000_000


def arrival(value: bytes | None, **told: str) -> Arrival:
    headers = {f"headwater.{name}": text.encode() for name, text in told.items()}
    return Arrival("t", 1, 2, NOW, value, headers)


def event(**more: Any) -> dict[str, Any]:
    return {
        "eventType": "START",
        "eventTime": moment(5),
        "producer": "p",
        "schemaURL": "s",
        "run": {"runId": "00000000-0000-4000-8000-000000000001"},
        "job": {"namespace": "jobs", "name": "load"},
        **more,
    }


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def row(value: bytes | None, **told: str) -> dict[str, Any]:
    table, found = RecordReader().read(arrival(value, **told))
    assert table == "events", found
    assert sorted(found) == sorted(EVENTS.names)
    return found


def reason(value: bytes | None, **told: str) -> str:
    table, found = RecordReader().read(arrival(value, **told))
    assert table == "refused"
    assert sorted(found) == sorted(REFUSED.names)
    return str(found["reason"])


def test_an_event_of_a_producer() -> None:
    found = row(encoded(event()))
    assert found["node"] == "job:jobs:load"
    assert (found["kind"], found["type"]) == ("run", "START")
    assert (found["arrived"], found["time"]) == (NOW, (BASE + 5) * 1_000_000)
    assert (found["log"], found["seq"]) == (None, None)
    assert (found["topic"], found["kafka_partition"], found["kafka_offset"]) == ("t", 1, 2)


def test_a_forwarded_event_has_arrived_when_the_server_received_it() -> None:
    found = row(encoded(event()), log="ab", seq="17", at=str(NOW - 5), kind="event")
    assert (found["arrived"], found["log"], found["seq"]) == (NOW - 5, "ab", 17)


@pytest.mark.parametrize("at", ["", "-1", "x", "9" * 30, str(NOW + 10**10)])
def test_a_header_that_cannot_be_true_is_not_believed(at: str) -> None:
    assert row(encoded(event()), log="ab", seq=at, at=at)["arrived"] == NOW


@examples(100)
@given(estate())
def test_hash_and_body_are_the_servers(events: list[bytes]) -> None:
    secret = facet(password="hunter2hunter2", url="jdbc:mysql://u:hunter2hunter2@db/x")
    with_secrets = encoded(
        event(run={"runId": str(event()["run"]["runId"]), "facets": {"x": secret}})
    )
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/a.db")
        reader = RecordReader()
        rows = {}
        for body in [*events, with_secrets]:
            store.append([body])
            _, found = reader.read(arrival(body))
            rows[found["hash"]] = found["body"]
        stored = {
            bytes(digest): store.packer.unpack(dictionary, bytes(packed)).decode()
            for digest, dictionary, packed in store.connection.all(
                "SELECT hash, dictionary, body FROM log"
            )
        }
        store.close()
    assert rows == stored
    assert not any("hunter2" in body for body in rows.values())


def test_what_is_no_event_is_refused_with_the_reason() -> None:
    assert reason(None) == "the record has no value"
    assert reason(b"{").startswith("$: ")
    assert reason(encoded({"eventTime": "x"}))
    assert reason(b"\xff\xfe") != ""
    assert "larger than" in reason(b" " * (11 * 1024 * 1024))
    late = iso(NOW + 3 * 86_400 * 1_000_000)
    assert "eventTime" in reason(encoded(event(eventTime=late)))


def test_a_refused_record_shows_no_credential() -> None:
    bad = encoded({"password": "hunter2hunter2", "eventTime": "jdbc:mysql://u:hunter2hunter2@db/x"})
    _, found = RecordReader().read(arrival(bad))
    assert "hunter2" not in str(found)
    assert found["size"] == len(bad)
    assert RecordReader().read(arrival(b"password=hunter2hunter2"))[1]["body"] is None


def test_a_command_is_about_the_job_that_its_header_names() -> None:
    body = encoded({"command": "hide", "kind": "job", "namespace": "jobs", "name": "load", "at": 1})
    found = row(body, log="ab", seq="3", kind="command", at=str(NOW), job='["jobs","load"]')
    assert (found["kind"], found["type"], found["node"]) == ("command", "hide", "job:jobs:load")
    assert found["hash"] == hashlib.sha256(body).digest()
    assert row(body, log="ab", seq="3", kind="command")["node"] is None


def test_only_a_servers_log_has_commands() -> None:
    body = encoded({"command": "hide"})
    assert "command" in reason(body, kind="command")
    assert "command" in reason(encoded({"command": "format"}), log="ab", kind="command")
    assert reason(b"[]", log="ab", kind="command").startswith("$: ")
    assert reason(body, log="ab", kind="command", job="{") != ""


def test_a_moment_is_kept_to_the_microsecond() -> None:
    found = row(encoded(event(eventTime="2026-01-01T00:00:00.123456Z")))
    assert found["time"] == BASE * 1_000_000 + 123_456
