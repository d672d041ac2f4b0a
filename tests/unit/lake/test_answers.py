"""From the lake come the same answers as from the server, for every moment that both have."""

from __future__ import annotations

import itertools
import tempfile
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lake.answers import Scratch, Wanted, select
from headwater.lake.projection import LogRecord, Projector
from headwater.lake.selection import LakeAlias, Use, declared_aliases
from headwater.lake.tables import ALIASES, COLUMN_EDGES, EDGES, RUNS
from headwater.lake.tables import DATASETS as DATASETS_TABLE
from headwater.lineage.moments import iso, micros
from headwater.lineage.url_paths import path_of
from tests.properties import examples

from .estates import BASE, DATASETS, FIELDS, JOBS, commanded_estate, facet
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


def asked(store: Store, path: str, query: dict[str, str]) -> Any:
    from headwater.server.app import App, ServerSettings

    scratch = Scratch.__new__(Scratch)
    scratch.app = App(store, ServerSettings(page=False))
    return answered(scratch, path, query)


def answered(scratch: Scratch, path: str, query: dict[str, str]) -> Any:
    response = scratch.get(path, query)
    return response.status_code, response.json()


LATER = (BASE + 40 * 365 * 86_400) * 1_000_000
"""Behind the commands, which a server dates by its clock."""
moments = st.one_of(
    st.integers(0, 41).map(lambda minute: (BASE + minute * 60 + 30) * 1_000_000), st.just(LATER)
)


@examples(120)
@given(commanded_estate(), st.sampled_from(DATASETS), st.one_of(st.none(), moments), st.booleans(), st.sampled_from(["", *FIELDS]))  # fmt: skip
def test_a_trace_is_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, at: int | None, down: bool, field: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        lake = MemoryLake(projector, nodes)
        typed = f"{name}.{field}" if field else name
        chosen = select(
            lake,
            Wanted(typed, "down" if down else "up", moments=(None if at is None else (at, at),)),
        )
        kind = f"datasetField:s3://lake:{name}:{field}" if field else f"dataset:s3://lake:{name}"
        query = {"node": kind, "direction": "down" if down else "up", "depth": "20"}
        if at is not None:
            query["at"] = iso(at)
        with Scratch(lake.records(chosen)) as scratch:
            code, found = answered(scratch, "/api/v2/trace", query)
        expected = asked(store, "/api/v2/trace", query)
        if code == expected[0] == 404:
            return  # what lies near a name that is not there differs
        assert (code, found) == expected


@examples(120)
@given(commanded_estate(), moments, moments)
def test_a_difference_is_the_servers(
    projector: Projector, arrivals: list[Arrived], one: int, other: int
) -> None:
    start, end = sorted((one, other + 1))
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        lake = MemoryLake(projector, nodes)
        query = {"from": iso(start), "to": iso(end), "limit": "5000"}
        chosen = select(lake, Wanted(period=(start, end)))
        with Scratch(lake.records(chosen)) as scratch:
            found = answered(scratch, "/api/v2/graph/diff", query)
        assert found == asked(store, "/api/v2/graph/diff", query)


@examples(80)
@given(commanded_estate(), st.sampled_from(DATASETS), moments, moments, st.integers(0, 3))
def test_a_difference_around_a_dataset_is_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, one: int, other: int, depth: int
) -> None:
    start, end = sorted((one, other + 1))
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        lake = MemoryLake(projector, nodes)
        query = {"from": iso(start), "to": iso(end), "limit": "5000", "depth": str(depth)}
        query["node"] = f"dataset:s3://lake:{name}"
        chosen = select(lake, Wanted(name, moments=((start, start), (end, end)), depth=depth))
        with Scratch(lake.records(chosen)) as scratch:
            found = answered(scratch, "/api/v2/graph/diff", query)
        expected = asked(store, "/api/v2/graph/diff", query)
        if found[0] == expected[0] == 404:
            return
        assert found == expected


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
@given(
    commanded_estate(), st.sampled_from(DATASETS), moments, moments, st.sampled_from(["", *FIELDS])
)
def test_an_audit_is_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, one: int, other: int, field: str
) -> None:
    start, end = sorted((one, other + 1))
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        lake = MemoryLake(projector, nodes)
        query = {"from": iso(start), "to": iso(end), "depth": "20"} | (
            {"column": field} if field else {}
        )
        chosen = select(lake, Wanted(name, "both", moments=((start, end),), depth=20))
        path = path_of("api", "v2", "datasets", "s3://lake", name, "audit")
        with Scratch(lake.records(chosen)) as scratch:
            found = answered(scratch, path, query)
        expected = asked(store, path, query)
        if found[0] == expected[0] == 404:
            return
        assert found == expected


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
@given(commanded_estate(), st.sampled_from([*(f"job:jobs:{job}" for job in JOBS), ""]), moments)
def test_a_map_is_the_servers(
    projector: Projector, arrivals: list[Arrived], node: str, at: int
) -> None:
    """Around a job, and of the whole estate."""
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        lake = MemoryLake(projector, nodes)
        query = {"at": iso(at), "depth": "2"} | ({"node": node} if node else {})
        chosen = select(lake, Wanted(moments=((at, at),), depth=2, node=node, programs=True))
        with Scratch(lake.records(chosen)) as scratch:
            found = answered(scratch, "/api/v2/map", query)
        expected = asked(store, "/api/v2/map", query)
        if found[0] == expected[0] == 404:
            return
        assert found == expected


@examples(80)
@given(commanded_estate(), st.sampled_from(DATASETS), moments, st.sampled_from(["", *FIELDS]), st.integers(1, 3))  # fmt: skip
def test_columns_are_the_servers(
    projector: Projector, arrivals: list[Arrived], name: str, at: int, field: str, depth: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, nodes = served(arrivals, folder)
        lake = MemoryLake(projector, nodes)
        kind = f"datasetField:s3://lake:{name}:{field}" if field else f"dataset:s3://lake:{name}"
        query = {"node": kind, "at": iso(at), "depth": str(depth)}
        chosen = select(lake, Wanted(node=kind, direction="both", moments=((at, at),), depth=depth))
        with Scratch(lake.records(chosen)) as scratch:
            found = answered(scratch, "/api/v2/columns", query)
        expected = asked(store, "/api/v2/columns", query)
        if found[0] == expected[0] == 404:
            return
        assert found == expected
