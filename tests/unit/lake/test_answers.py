"""From the lake come the same answers as from the server, for every moment that both have."""

from __future__ import annotations

import itertools
import tempfile
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lake.answers import Wanted, select
from headwater.lake.projection import LogRecord, Projector
from headwater.lake.selection import LakeAlias, Use, declared_aliases
from headwater.lake.tables import ALIASES, COLUMN_EDGES, EDGES, RUNS
from headwater.lake.tables import DATASETS as DATASETS_TABLE
from headwater.lineage.moments import micros
from tests.properties import examples

from . import questions
from .estates import BASE, commanded_estate, facet
from .questions import agree
from .test_projection import made, projected, served

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from headwater.server.store import Store

    from .estates import Arrived

Name = tuple[str, str]


@pytest.fixture(scope="module")
def projector() -> Iterator[Projector]:
    found = Projector()
    yield found
    found.close()


class MemoryLake:
    """A lake of a few rows, as the program would have written them."""

    def __init__(self, projector: Projector, nodes: dict[str, list[LogRecord]]) -> None:
        self._nodes = nodes
        self._rows = projected(projector, nodes)

    def names(self) -> Iterable[Name]:
        return [name for _, name in self._named()]

    def uses_of(self, datasets: Collection[Name]) -> Iterable[Use]:
        return [use for use in self._uses() if use.dataset in datasets]

    def uses_by(self, nodes: Collection[str]) -> Iterable[Use]:
        return [use for use in self._uses() if use.node in nodes]

    def naming(self, datasets: Collection[Name]) -> Iterable[str]:
        return [node for node, name in self._named() if name in datasets]

    def _uses(self) -> Iterable[Use]:
        for row in self._rows[EDGES.name]:
            name = (row["dataset_namespace"], row["dataset_name"])
            yield Use(row["node"], name, row["direction"] == "output", row["valid_from"], row["valid_to"])  # fmt: skip
        for row in self._rows[COLUMN_EDGES.name]:
            for side, writes in (("source", False), ("dataset", True)):
                name = (row[f"{side}_namespace"], row[f"{side}_name"])
                yield Use(row["node"], name, writes, row["valid_from"], row["valid_to"])

    def _named(self) -> Iterable[tuple[str, Name]]:
        for row in self._rows[DATASETS_TABLE.name]:
            yield row["node"], (row["dataset_namespace"], row["dataset_name"])

    def aliases(self) -> Iterable[LakeAlias]:
        for row in self._rows[ALIASES.name]:
            names = (row["namespace"], row["name"]), (row["other_namespace"], row["other_name"])
            yield LakeAlias(row["kind"], *names)
        yield from declared_aliases(record.body for record in self._nodes.get("", ()))

    def parents(self) -> Iterable[tuple[str, str]]:
        runs = self._rows[RUNS.name]
        for child, parent in itertools.product(runs, runs):
            if child["parent"] == parent["run"]:
                yield child["node"], parent["node"]

    def reporting(self, since: int, until: int) -> set[str]:
        return {
            node
            for node, records in self._nodes.items()
            if node and any(since < _time(record) <= until for record in records)
        }

    def records(self, nodes: Collection[str], most: int | None = None) -> Iterable[LogRecord]:
        found = [record for node in ("", *nodes) for record in self._nodes.get(node, ())]
        return sorted(found, key=lambda record: record.at)


def _time(record: LogRecord) -> int:
    read = msgspec.json.decode(record.body)
    return (
        read.get("time", record.at)
        if record.kind
        else micros(datetime.fromisoformat(read["eventTime"]))
    )


@contextmanager
def both(projector: Projector, arrivals: list[Arrived]) -> Iterator[tuple[MemoryLake, Store]]:
    """A lake and a server's store of the same log."""
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        yield MemoryLake(projector, nodes), store


@examples(120)
@given(commanded_estate(), questions.datasets, st.one_of(st.none(), questions.moments), st.booleans(), questions.fields)  # fmt: skip
def test_a_trace_is_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, at: int | None, down: bool, field: str
) -> None:
    with both(projector, arrivals) as (lake, store):
        agree(lake, store, questions.trace(name, at, field, down=down))


@examples(120)
@given(commanded_estate(), questions.moments, questions.moments)
def test_a_difference_is_the_servers(
    projector: Projector, arrivals: list[Arrived], one: int, other: int
) -> None:
    with both(projector, arrivals) as (lake, store):
        agree(lake, store, questions.difference(one, other))


@examples(80)
@given(commanded_estate(), questions.datasets, questions.moments, questions.moments, questions.depths)  # fmt: skip
def test_a_difference_around_a_dataset_is_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, one: int, other: int, depth: int
) -> None:
    with both(projector, arrivals) as (lake, store):
        agree(lake, store, questions.difference_around(name, one, other, depth))


def test_an_answer_reads_no_more_than_it_depends_on(projector: Projector) -> None:
    nodes: dict[str, list[LogRecord]] = {}
    for number in range(10):
        body = msgspec.json.decode(made(f"j{number}", number, "a", run=number))
        body["inputs"] = [{"namespace": "s3://lake", "name": f"d{number}"}]
        body["outputs"][0]["name"] = f"d{number + 1}"
        nodes[f"job:jobs:j{number}"] = [LogRecord(0, BASE * 2_000_000, msgspec.json.encode(body))]
    lake = MemoryLake(projector, nodes)
    chosen = select(lake, Wanted("d3", "up"))
    assert {node for node in chosen if node.startswith("job:")} == {
        f"job:jobs:j{n}" for n in range(4)
    }


@examples(80)
@given(commanded_estate(), questions.datasets, questions.moments, questions.moments, questions.fields)  # fmt: skip
def test_an_audit_is_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, one: int, other: int, field: str
) -> None:
    with both(projector, arrivals) as (lake, store):
        agree(lake, store, questions.audit(name, one, other, field))


def test_what_leads_to_a_dataset_by_a_name_that_was_declared(projector: Projector) -> None:
    body = msgspec.json.decode(made("load", 0, "a"))
    body["outputs"][0]["name"] = "orders"
    read = msgspec.json.decode(made("report", 10, "a", run=2))
    read["inputs"] = [{"namespace": "s3://lake", "name": "copy"}]
    alias = {"command": "alias", "namespace": "s3://lake", "name": "orders", "alias": ["s3://lake", "copy"]}  # fmt: skip
    arrivals: list[Arrived] = [msgspec.json.encode(body), msgspec.json.encode(read), alias]
    with tempfile.TemporaryDirectory() as folder:
        _, nodes = served(arrivals, folder)
    lake = MemoryLake(projector, nodes)
    assert {"job:jobs:load", "job:jobs:report"} <= select(lake, Wanted("t", "up"))


def test_a_dataset_is_found_by_a_name_under_which_nothing_was_reported(
    projector: Projector,
) -> None:
    body = msgspec.json.decode(made("load", 0, "a"))
    other = {"namespace": "hive://metastore", "name": "shop.t", "type": "TABLE"}
    body["outputs"][0]["facets"]["symlinks"] = facet(identifiers=[other])
    record = LogRecord(0, BASE * 2_000_000, msgspec.json.encode(body))
    lake = MemoryLake(projector, {"job:jobs:load": [record]})
    for wanted in (Wanted(node="dataset:hive://metastore:shop.t"), Wanted("shop.t")):
        assert "job:jobs:load" in select(lake, wanted)


@examples(80)
@given(commanded_estate(), questions.nodes, questions.moments)
def test_a_map_is_the_servers(
    projector: Projector, arrivals: list[Arrived], node: str, at: int
) -> None:
    with both(projector, arrivals) as (lake, store):
        agree(lake, store, questions.map_around(node, at))


@examples(80)
@given(commanded_estate(), questions.datasets, questions.moments, questions.fields, st.integers(1, 3))  # fmt: skip
def test_columns_are_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, at: int, field: str, depth: int
) -> None:
    with both(projector, arrivals) as (lake, store):
        agree(lake, store, questions.columns(name, at, field, depth))
