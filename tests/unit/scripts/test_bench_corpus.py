"""The events that the benchmark of the lake makes of recorded ones."""

from __future__ import annotations

import tempfile

import msgspec
from bench._corpus import Corpus

from headwater.server.store import open_store

CORPUS = Corpus()


def test_copies_are_events_that_a_server_takes_and_the_same_each_time() -> None:
    count = 2 * 2 * len(CORPUS.bodies)
    made = list(CORPUS.events(count, copies=2))
    assert made == list(Corpus().events(count, copies=2))
    assert len({body for _, body in made}) == count
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/a.db")
        assert all(receipt.error is None for receipt in store.append([body for _, body in made]))
        ((jobs,),) = store.connection.all("SELECT count(*) FROM job")
        ((edges,),) = store.connection.all("SELECT count(*) FROM edge")
        store.close()
    recorded = {msgspec.json.decode(body)["job"]["name"] for body in CORPUS.bodies}
    assert jobs >= 2 * len(recorded)
    assert edges >= jobs


def test_a_copy_has_names_and_runs_of_its_own_and_nothing_else() -> None:
    for one in CORPUS.templates:
        _, body = one.made(7, 3)
        found = msgspec.json.decode(body)
        event = one.event
        assert found["job"]["name"] == f"{event['job']['name']}_7"
        assert found["run"]["runId"] != event["run"]["runId"]
        assert found["eventTime"].startswith("2026-01-04T")
        for side in ("inputs", "outputs"):
            for made, recorded in zip(found.get(side, ()), event.get(side, ()), strict=True):
                assert made["name"] == f"{recorded['name']}_7"
                assert made.get("facets", {}).get("schema") == recorded.get("facets", {}).get(
                    "schema"
                )
