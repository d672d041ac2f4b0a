"""Many wrong events and requests: each is answered, none with a 5xx, and all that is kept can be read.

What a run made is made again by its seed; a body that broke something is kept in
`tests/fixtures/fuzz/bodies.ndjson` and is sent in every run.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from headwater.server.api.openapi import document
from tests.security.fuzzing import Requests, events

if TYPE_CHECKING:
    from tests.integration.server.conftest import Client

BATCH = 100


def send_events(client: Client, seed: int, count: int) -> Counter[int]:
    """Send events in batches, every tenth by itself; answers how many got which status."""
    found: Counter[int] = Counter()
    lines: list[bytes] = []

    def flush() -> None:
        if not lines:
            return
        answer = client.call("POST", "/api/v2/events", content=b"\n".join(lines))
        assert answer.status_code in (201, 207, 422), (answer.text[:300], lines[:3])
        for result in answer.json()["results"]:
            found[result["status"]] += 1
            assert result["status"] < 500, lines[result["line"] - 1]
        lines.clear()

    for number, body in enumerate(events(random.Random(seed), count)):
        if number % 10 == 0 or b"\n" in body or b"\r" in body or not body.strip():
            answer = client.call("POST", "/api/v1/lineage", content=body)
            found[answer.status_code] += 1
            assert answer.status_code < 500, (answer.text, body[:3_000])
            continue
        lines.append(body)
        if len(lines) >= BATCH:
            flush()
    flush()
    return found


def send_requests(client: Client, seed: int, count: int) -> Counter[int]:
    """Ask by the server's own description; answers how many got which status."""
    found: Counter[int] = Counter()
    chance = random.Random(seed)
    for number in range(count):
        if number % 2_000 == 0:  # some of the names went, others came
            requests = Requests(chance, document(client.app), names(client))
        method, path, body, headers = requests.one()
        answer = client.call(method, path, content=body, headers=headers)
        found[answer.status_code] += 1
        assert answer.status_code < 500, (method, path, body, headers, answer.text[:300])
    return found


def names(client: Client) -> list[str]:
    with client.store.database.reading() as connection:
        tables = ("namespace", "job", "dataset", "tag", "source")
        found = [n for t in tables for (n,) in connection.all(f"SELECT name FROM {t} LIMIT 200")]
    jobs = [
        j["latestRun"]["id"] for j in client.get("/api/v1/jobs", limit=20)["jobs"] if j["latestRun"]
    ]
    return found + jobs


def fuzz(client: Client, seed: int, each: int) -> None:
    told = {
        "events": send_events(client, seed, each),
        "requests": send_requests(client, seed, each),
    }
    assert client.get("/api/v2/health")["status"] == "ok"
    assert client.get("/api/v2/health").get("problems") is None
    assert told["events"][201] > each // 10  # else nothing but refusals was tried
    assert told["requests"][200] > each // 10
    # A test that is run for its figures shows them: pytest -s.
    print(json.dumps({kind: dict(sorted(counts.items())) for kind, counts in told.items()}))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_few_hundred_wrong_events_and_requests_do_no_harm(client: Client) -> None:
    fuzz(client, 1, 400)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_twenty_thousand_wrong_events_and_requests_do_no_harm(client: Client) -> None:
    fuzz(client, 2, 20_000)
