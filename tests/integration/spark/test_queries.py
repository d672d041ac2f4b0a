"""Queries by what they write, how they are named and what they count, however a program does it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from .drivers import Drivers, Told, check_lives, check_valid, names
from .test_ends_of_drivers import place

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient

pytestmark = pytest.mark.full


class Ran:
    """What the program told, and where it read and wrote."""

    def __init__(self, told: Told, where: dict[str, Any], work: Path) -> None:
        self.told, self.where, self.work = told, where, work
        self.folder = where["work"]

    def job(self, *parts: str) -> str:
        return ".".join(["queries", *parts])


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaClient, catalog: CatalogClient
) -> Ran:
    drivers = Drivers(tmp_path_factory.mktemp("queries"), catalog)
    where = json.loads(place(kafka, catalog, drivers.work / "place"))
    told = drivers.run("queries.py", json.dumps(where))
    assert told.code == 0, told.error
    check_lives(told.events)
    check_valid(told.events)
    return Ran(told, where, drivers.work)


def tables(datasets: list[dict[str, Any]]) -> set[str]:
    """Names as a catalog has them."""
    links = [
        link
        for one in datasets
        for link in one["facets"].get("symlinks", {}).get("identifiers", [])
    ]
    return {link["name"].rpartition(".")[2] for link in links}


def fields(dataset: dict[str, Any]) -> list[str]:
    return [field["name"] for field in dataset["facets"]["schema"]["fields"]]


def test_a_micro_batch_writes_through_any_session_for_its_query(ran: Ran) -> None:
    last = ran.told.last("own_session")
    outputs = {one["name"]: one for one in last["outputs"]}
    assert {f"{ran.folder}/joined", f"{ran.folder}/log"} <= set(outputs)
    assert tables(last["outputs"]) == {"totals"}
    joined = outputs[f"{ran.folder}/joined"]["facets"]["columnLineage"]["fields"]
    topic, names_ = ran.where["topic"], f"{ran.folder}/names"
    assert {(s["name"], s["field"]) for s in joined["name"]["inputFields"]} == {(names_, "name")}
    assert {(s["name"], s["field"]) for s in joined["order_id"]["inputFields"]} == {
        (topic, "order_id")
    }
    (totals,) = [one for one in last["outputs"] if "symlinks" in one["facets"]]
    columns = totals["facets"]["columnLineage"]["fields"]
    assert {s["field"] for s in columns["price"]["inputFields"]} == {"price"}, "kept by the delete"
    own = [job for job in ran.told.jobs if any(w in job for w in ("joined", "log", "totals"))]
    assert own == [ran.job("create_table", f"{ran.where['namespace']}_totals")]


def test_queries_without_a_name_are_jobs_of_their_own(ran: Ran) -> None:
    topic = f"from_{ran.where['topic'].replace('-', '_')}"
    expected = {
        ran.job("foreach_batch", "copy"): 1,
        ran.job("foreach_batch", "copy", topic): 2,
        ran.job("foreach_batch", "sink_write"): 1,
        ran.job("foreach_batch", "sink_write", topic): 1,
        ran.job("streaming", topic): 1,
        ran.job("streaming", f"{topic}_2"): 1,
    }
    runs = {job: {e["run"]["runId"] for e in ran.told.of(job)} for job in ran.told.jobs}
    found = {job: len(ids) for job, ids in runs.items() if topic in job or "foreach_batch" in job}
    assert found == expected
    assert names(ran.told.last(ran.job("streaming", topic))["outputs"]) == {f"{ran.folder}/lambda"}


def test_a_query_that_is_refused_keeps_its_name(ran: Ran) -> None:
    assert ran.told.types("refused_by_name") == ["START", "FAIL"]
    assert ran.told.types(ran.job("streaming", "place_x")) == ["START", "FAIL"]


def test_a_continuous_query_has_its_topic(ran: Ran) -> None:
    last = ran.told.last(ran.job("streaming", ran.where["out"].replace("-", "_")))
    assert names(last["outputs"]) == {ran.where["out"]}


def test_a_table_altered_under_a_query_shows_its_new_column(ran: Ran) -> None:
    wide = f"{ran.where['namespace']}_wide"
    (altered,) = ran.told.last(ran.job("alter_table", wide))["outputs"]
    assert fields(altered) == ["order_id", "price", "note"]
    told = [event["outputs"][0] for event in ran.told.of("altered")]
    assert fields(told[0]) == ["order_id", "price"]
    assert fields(told[-1]) == ["order_id", "price", "note"]


def test_a_query_that_merges_schemas_shows_the_columns_that_it_adds(ran: Ran) -> None:
    told = [event["outputs"][0] for event in ran.told.of("merged")]
    assert fields(told[0]) == ["order_id"]
    running = [event for event in ran.told.of("merged") if event["eventType"] == "RUNNING"]
    assert fields(running[-1]["outputs"][0]) == ["order_id", "price"]
    assert fields(told[-1]) == ["order_id", "price"]


def test_events_of_queries_count_what_was_read_and_written(ran: Ran) -> None:
    last = ran.told.last("altered")
    assert last["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 20
    assert last["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 20
    batches = ran.told.last("own_session")
    (read,) = [one for one in batches["inputs"] if one["name"] == ran.where["topic"]]
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 20
    written = {one["name"]: one.get("outputFacets", {}) for one in batches["outputs"]}
    assert written[f"{ran.folder}/log"]["outputStatistics"]["rowCount"] == 1
    assert written[f"{ran.folder}/joined"]["outputStatistics"]["rowCount"] == 20


def test_detach_completes_the_application_and_aborts_what_runs_on(ran: Ran) -> None:
    assert ran.told.types("detached")[-1] == "ABORT"
    assert ran.told.types("queries")[-1] == "COMPLETE"
