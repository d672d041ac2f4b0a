"""Spark's analysis of a lake agrees with the walks of a server that has the same log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import lake_analyse
import msgspec
import pytest

from headwater.insight import downstream
from headwater.lake import tables
from headwater.server.store.view import Bodies, View
from tests.integration.server.making import columns, dataset, event, facet, schema
from tests.unit.lake.test_restore import log_of

from .test_upkeep import maintain

if TYPE_CHECKING:
    from headwater.server.store import Store

    from .local import LocalLake

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
LAKE = "s3://lake"


def owned(*names: str) -> dict[str, Any]:
    return facet(owners=[{"name": name} for name in names])


def bodies() -> list[bytes]:
    """A ring, a job of two halves, an edge that ended, a symlink, and tables that nobody reads."""
    symlinks = facet(identifiers=[{"namespace": "hive://m", "name": "shop.b", "type": "TABLE"}])
    raw = dataset("a", schema=schema("id", "price", "note"))
    b = dataset(
        "b", symlinks=symlinks, schema=schema("id", "price", "old"), ownership=owned("team-b"),
        columnLineage=columns(id=("a", "id"), price=("a", "price")),
    )  # fmt: skip
    by_hive = dataset("shop.b", "hive://m")
    c = dataset("c", schema=schema("id"), columnLineage=columns(id=("b", "id")))
    left = dataset("left", schema=schema("x"), columnLineage=columns(x=("c", "id")))
    right = dataset("right", schema=schema("y"), columnLineage=columns(y=("other", "y")))
    ring = dataset("c", columnLineage=columns(id=("c", "id")))
    made = [
        event("COMPLETE", 0, run=1, job="load", inputs=[raw], outputs=[b]),
        event("COMPLETE", 10, run=2, job="shape", inputs=[by_hive], outputs=[c],
              job_facets={"ownership": owned("team-c", "ops")}),
        event("COMPLETE", 20, run=3, job="halves", inputs=["c", "other"], outputs=[left, right]),
        event("COMPLETE", 30, run=4, job="ring", inputs=["c"], outputs=[ring]),
        event("COMPLETE", 40, run=5, job="turns", inputs=["left"], outputs=["before"]),
        event("COMPLETE", 50, run=6, job="turns", inputs=["right"], outputs=["after"]),
        event("COMPLETE", 60, run=7, job="gone", inputs=["left"], outputs=["lost"]),
        event("COMPLETE", 70, run=8, job="alone", outputs=["nobody"]),
    ]  # fmt: skip
    return [msgspec.json.encode(one) for one in made]


def rows(local: LocalLake, table: tables.LakeTable) -> dict[Any, dict[str, Any]]:
    found = local.rows(table)
    if table is tables.ANALYSED_COLUMNS:
        return {(row["dataset_name"], row["field"]): row for row in found}
    return {row["dataset_name"]: row for row in found}


def test_the_analysis_is_what_the_servers_walks_find(local: LocalLake, store: Store) -> None:
    for body in bodies():
        assert store.append([body])[0].error is None
    hide = {"command": "hide", "kind": "job", "namespace": "jobs", "name": "gone"}
    store.perform(hide)
    alias = {"command": "alias", "namespace": LAKE, "name": "after", "alias": [LAKE, "nobody"]}
    store.perform(alias)
    local.take(log_of(store))
    local.settle()
    ages = time.time() - 1_767_225_600
    done = lake_analyse.analyse(local.lake, ages + 86_400)
    found = rows(local, tables.ANALYSED_DATASETS)
    assert done["analysis_datasets"] == len(found)

    view = View(store.connection, Bodies(store.packer))
    stored = view.datasets(row[0] for row in view.all("SELECT id FROM dataset"))
    compared = 0
    for one in stored.values():
        if one.root != one.id:
            assert one.name not in found
            continue
        behind, _ = downstream(view.graph(), [("dataset", one.id)], limit=1_000)
        kinds = [kind for kind, _ in behind]
        row = found[one.name]
        assert (row["jobs"], row["datasets"]) == (kinds.count("job"), kinds.count("dataset")), one.name  # fmt: skip
        compared += 1
    assert compared == len(found)

    assert found["a"]["jobs"] == 4, "load, shape, halves and ring; turns reads something else now"
    assert found["a"]["owners"] == 3
    assert found["lost"]["jobs"] == found["lost"]["datasets"] == 0
    assert sorted(name for name, row in found.items() if row["unused"]) == ["after", "before"]
    fields = rows(local, tables.ANALYSED_COLUMNS)
    assert {key: row["columns"] for key, row in fields.items() if row["columns"]} == {
        ("a", "id"): 3, ("a", "price"): 1, ("b", "id"): 2, ("c", "id"): 1, ("other", "y"): 1,
    }  # fmt: skip
    assert fields["a", "id"]["datasets"] == 3
    assert fields["a", "id"]["jobs"] == 4
    unused = {key: row["unused"] for key, row in fields.items() if row["unused"] is not False}
    assert unused == {
        ("a", "note"): True, ("b", "price"): True, ("b", "old"): True,
        ("left", "x"): None, ("right", "y"): None,
    }  # fmt: skip
    parts = sorted(local.rows(tables.ANALYSED_COMPONENTS), key=lambda row: int(row["component"]))
    assert (parts[0]["datasets"], parts[0]["jobs"]) == (7, 6)
    assert sum(row["datasets"] for row in parts) == len(found)

    # As a whole and in one commit each, with what it includes; upkeep leaves it as it is.
    before = local.rows(tables.ANALYSED_DATASETS)
    again = lake_analyse.analyse(local.again().lake, ages + 86_400)
    assert again == done
    assert local.lake.snapshots(tables.ANALYSED_DATASETS) == 2
    derived = local.lake.position(tables.DATASETS, "headwater.derived")
    assert local.again().lake.offsets(tables.ANALYSED_DATASETS) == derived
    maintain(local)
    after = {row["dataset_name"]: {**row, "analysed": 0, "since": 0} for row in local.rows(tables.ANALYSED_DATASETS)}  # fmt: skip
    assert after == {row["dataset_name"]: {**row, "analysed": 0, "since": 0} for row in before}


def test_what_an_explicit_facet_states_is_followed_as_on_the_server(
    local: LocalLake, store: Store
) -> None:
    made_of = [{"namespace": LAKE, "name": "x"}]
    exact = dataset("exact", lineage=facet(inputs=made_of))
    none = dataset("none", lineage=facet(inputs=[]))
    columns_only = dataset("columns", columnLineage=columns(id=("y", "id")))
    sides: dict[str, Any] = {"inputs": ["x", "y", "z"], "outputs": [exact, none, columns_only]}
    body = msgspec.json.encode(event("COMPLETE", 0, run=1, job="split", **sides))
    assert store.append([body])[0].error is None
    local.take(log_of(store))
    local.settle()
    lake_analyse.analyse(local.lake, time.time() - 1_767_225_600 + 86_400)
    found = rows(local, tables.ANALYSED_DATASETS)
    view = View(store.connection, Bodies(store.packer))
    for name, count in (("x", 1), ("y", 1), ("z", 1), ("exact", 0)):
        one = view.dataset(LAKE, name)
        assert one is not None
        behind, _ = downstream(view.graph(), [("dataset", one.id)], limit=1_000)
        assert found[name]["datasets"] == sum(kind == "dataset" for kind, _ in behind) == count


def test_an_edge_that_ended_before_the_period_is_no_use(local: LocalLake, store: Store) -> None:
    read = event("COMPLETE", 100, run=9, job="turns", inputs=["t"], outputs=["u"])
    other = event("COMPLETE", 200, run=10, job="turns", inputs=["v"], outputs=["u"])
    wrote = event("COMPLETE", 50, run=11, job="load", outputs=["t"])
    for one in (wrote, read, other):
        store.append([msgspec.json.encode(one)])
    local.take(log_of(store))
    local.settle()
    ages = time.time() - 1_767_225_600
    lake_analyse.analyse(local.lake, ages - 150)
    assert not rows(local, tables.ANALYSED_DATASETS)["t"]["unused"]
    lake_analyse.analyse(local.lake, ages - 250)
    assert rows(local, tables.ANALYSED_DATASETS)["t"]["unused"]
