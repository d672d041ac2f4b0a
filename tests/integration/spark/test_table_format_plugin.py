"""A table format from an installed package is named and reported, with no line for it in Headwater."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyspark
import pytest

from .drivers import Drivers, Told, check_lives, check_valid

PLUGIN = Path(__file__).parents[2] / "fixtures" / "plugins" / "ledger"

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        pyspark.__version__ < "4", reason="data sources in Python are there from Spark 4.0 on"
    ),
]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Drivers:
    drivers = Drivers(tmp_path_factory.mktemp("ledger"))
    path = [str(PLUGIN), drivers.environment["PYTHONPATH"]]
    drivers.environment["PYTHONPATH"] = os.pathsep.join(path)
    return drivers


@pytest.fixture(scope="module")
def told(drivers: Drivers) -> Told:
    told = drivers.run("ledger.py")
    assert told.code == 0, told.error
    return told


def last(told: Told, name: str) -> dict[str, Any]:
    """The last event that writes the table of this name."""
    written = [
        event for event in told.events for out in event["outputs"] if out["name"].endswith(name)
    ]
    assert written, sorted(told.jobs)
    return written[-1]


def test_its_table_is_named_by_its_path_and_known_as_a_table(told: Told, drivers: Drivers) -> None:
    (output,) = last(told, "/orders")["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(drivers.work / "orders"))
    facets = output["facets"]
    assert facets["datasetType"]["datasetType"] == "TABLE"
    assert facets["datasetType"]["subType"] == "ledger"
    assert facets["storage"]["storageLayer"] == "ledger"
    assert facets["storage"]["fileFormat"] == "json"


def test_the_version_that_was_read_and_its_columns(told: Told, drivers: Drivers) -> None:
    event = last(told, "/cities")
    (read,) = event["inputs"]
    assert read["name"] == str(drivers.work / "orders")
    assert read["facets"]["version"]["datasetVersion"] == "0"
    fields = event["outputs"][0]["facets"]["columnLineage"]["fields"]
    # The format's own column is a fact about a row and comes from nowhere.
    assert set(fields) == {"id", "city"}
    (source,) = fields["city"]["inputFields"]
    assert (source["name"], source["field"]) == (str(drivers.work / "orders"), "city")
    assert source["transformations"][0]["subtype"] == "TRANSFORMATION"


def test_a_stream_into_it(told: Told, drivers: Drivers) -> None:
    (output,) = last(told, "/stream")["outputs"]
    assert output["facets"]["storage"]["storageLayer"] == "ledger"
    fields = output["facets"]["columnLineage"]["fields"]
    assert [source["field"] for source in fields["city"]["inputFields"]] == ["city"]
    assert last(told, "/stream")["job"]["name"].endswith("to_ledger")


def test_every_event_is_whole(told: Told, drivers: Drivers) -> None:
    check_lives(told.events)
    check_valid(told.events)
