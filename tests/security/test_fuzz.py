"""Many wrong events and requests: each is answered, none with a 5xx, and all that is kept can be read.

What a run made is made again by its seed; a body that broke something is kept in
`tests/fixtures/fuzz/bodies.ndjson` and is sent in every run.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from headwater.server.api.openapi import document
from tests.security.attacks import eventually
from tests.security.fuzzing import Requests, events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import httpx

    from tests.integration.server.conftest import Client

BATCH = 100
AT_ONCE = 16
"""Requests under way together: they share commits as those of many clients do."""

TRIES = 5
"""How often a request is sent again that got a 503: other tests may keep a store busy for seconds."""
Call = tuple[str, str, "bytes | None", dict[str, str]]
"""Method, address, body and headers."""


def answers(client: Client, calls: Iterable[Call]) -> Iterator[tuple[Call, httpx.Response]]:
    """Every answer. A 503, as if the store did not answer, is one, and so are those to its repetitions."""
    waiting = iter(calls)
    while some := list(itertools.islice(waiting, AT_ONCE)):
        for call, first in zip(some, client.call_together(some), strict=True):
            told = [first]
            while (
                told[-1].status_code == 503 and len(told) <= TRIES
            ):  # one for good is its own fault
                print(*call, told[-1].text[:300], "beside", [each[:2] for each in some])
                eventually(lambda: client.call("GET", "/api/v2/health").status_code == 200, 60)
                told += client.call_together([call])
            assert told[-1].status_code < 500, (*call, told[-1].text[:300])
            yield from ((call, answer) for answer in told)


def event_calls(seed: int, count: int) -> Iterator[Call]:
    """Events in batches, every tenth by itself."""
    lines: list[bytes] = []
    for number, body in enumerate(events(random.Random(seed), count)):
        if number % 10 == 0 or b"\n" in body or b"\r" in body or not body.strip():
            yield "POST", "/api/v1/lineage", body, {}
        else:
            lines.append(body)
        if len(lines) == BATCH:
            yield "POST", "/api/v2/events", b"\n".join(lines), {}
            lines = []
    if lines:
        yield "POST", "/api/v2/events", b"\n".join(lines), {}


def send_events(client: Client, seed: int, count: int) -> Counter[int]:
    """Send events; answers how many got which status."""
    found: Counter[int] = Counter()
    for (_, path, body, _), answer in answers(client, event_calls(seed, count)):
        if path == "/api/v1/lineage" or answer.status_code == 503:
            found[answer.status_code] += 1
            continue
        assert answer.status_code in (201, 207, 422), (answer.text[:300], body)
        for result in answer.json()["results"]:
            found[result["status"]] += 1
            assert result["status"] < 500, (body or b"").split(b"\n")[result["line"] - 1]
    return found


def request_calls(client: Client, seed: int, count: int) -> Iterator[Call]:
    """Requests by the server's own description."""
    chance = random.Random(seed)
    for number in range(count):
        if number % 2_000 == 0:  # some of the names went, others came
            requests = Requests(chance, document(client.app), names(client))
        yield requests.one()


def send_requests(client: Client, seed: int, count: int) -> Counter[int]:
    """Ask; answers how many got which status."""
    calls = request_calls(client, seed, count)
    return Counter(answer.status_code for _, answer in answers(client, calls))


def names(client: Client) -> list[str]:
    with client.store.database.reading() as connection:
        tables = ("namespace", "job", "dataset", "tag", "source")
        found = [n for t in tables for (n,) in connection.all(f"SELECT name FROM {t} LIMIT 200")]
    jobs = [
        j["latestRun"]["id"] for j in client.get("/api/v1/jobs", limit=20)["jobs"] if j["latestRun"]
    ]
    return found + jobs


def fuzz(client: Client, kind: str, seed: int, count: int) -> None:
    if kind == "events":
        told = send_events(client, seed, count)
    else:
        send_events(client, seed, min(count, 2_000))  # what the requests are about
        told = send_requests(client, seed, count)
    # A test that is run for its figures shows them: pytest -s.
    print(json.dumps({kind: dict(sorted(told.items()))}))
    assert told[503] <= count // 1_000, told  # of a store that others keep busy
    health = client.get("/api/v2/health")
    assert health["status"] == "ok"
    assert health.get("problems") is None
    assert (
        told[201 if kind == "events" else 200] > count // 10
    )  # else nothing but refusals was tried


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_few_hundred_wrong_events_and_requests_do_no_harm(client: Client) -> None:
    fuzz(client, "events", 1, 400)
    fuzz(client, "requests", 1, 400)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["events", "requests"])
def test_five_thousand_wrong_events_or_requests_do_no_harm(client: Client, kind: str) -> None:
    fuzz(client, kind, 3, 5_000)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", ["events", "requests"])
def test_twenty_thousand_wrong_events_or_requests_do_no_harm(client: Client, kind: str) -> None:
    fuzz(client, kind, 2, 20_000)
