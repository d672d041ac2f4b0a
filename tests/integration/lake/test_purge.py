"""What a server purged is in no file of the lake."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import fastavro
import lake_analyse
import lake_derive
import lake_purge
import msgspec
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from headwater.lake import tables
from headwater.lake.projection import LogRecord
from headwater.server.store.keep.purge import PurgeTarget, purge
from tests.integration.server.making import columns, dataset, event, schema
from tests.unit.lake.test_restore import log_of

from .local import TOPIC
from .test_upkeep import AT, maintain, stored_edges

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lake.tables import LakeTable
    from headwater.server.store import Store

    from .local import LocalLake

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
NAME = "zebrafinch"


def bodies() -> list[bytes]:
    """Two jobs; the first one writes what is purged later, and once, in an event of its own, `b`."""
    secret = dataset(NAME, schema=schema("id"), columnLineage=columns(id=("a", "id")))
    made = [
        event("COMPLETE", 0, run=1, job="load", inputs=["a"], outputs=[secret]),
        event("COMPLETE", 10, run=2, job="load", inputs=["a"], outputs=["b"]),
        event("COMPLETE", 20, run=3, job=f"only-{NAME}", inputs=[NAME], outputs=["c"]),
        event("COMPLETE", 30, run=4, job="report", inputs=["b"], outputs=["d"]),
    ]
    return [msgspec.json.encode(one) for one in made]


def text(path: Path) -> str:
    """All that a file of a table says, packed or not."""
    raw = path.read_bytes()
    said = raw.decode(errors="replace")
    if path.suffix == ".parquet":
        said += repr(pq.read_table(path).to_pylist())
        said += repr(pq.read_metadata(path))
    elif path.suffix == ".avro":
        reader: Any = fastavro.reader(io.BytesIO(raw))
        said += repr(list(reader)) + repr(reader.metadata)
    return said


def naming(local: LocalLake) -> list[str]:
    files = [path for path in local.folder.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if NAME in text(path) or NAME in path.name]


def unknown_since(edges: list[Any]) -> list[Any]:
    """Edges without their beginnings: the event that told of one may have named what is gone."""
    return [(job, name, side, until) for job, name, side, _, until in edges]


def test_what_is_purged_is_in_no_file(local: LocalLake, store: Store) -> None:
    for body in bodies():
        store.append([body])
    tag = {"command": "tagged", "kind": "dataset", "namespace": "s3://lake", "name": NAME,
           "tag": "PII", "on": True}  # fmt: skip
    store.perform(tag)
    log = log_of(store)
    broken = msgspec.json.encode({"eventTime": 7, "job": {"namespace": "s3://lake", "name": NAME}})
    local.take([*log, LogRecord(0, log[0].at, broken)])
    local.settle()
    assert any(row["dataset_name"] == NAME for row in local.rows(tables.EDGES))
    assert [row["type"] for row in local.rows(tables.EVENTS) if row["kind"] == "command"] == [
        "tagged"
    ]
    assert len(local.rows(tables.REFUSED)) == 1
    lake_analyse.analyse(local.lake, 30 * 86_400)
    assert any(row["dataset_name"] == NAME for row in local.rows(tables.ANALYSED_DATASETS))
    held = naming(local)
    assert {name.rpartition(".")[2] for name in held} >= {"parquet", "avro"}

    for target in (PurgeTarget("dataset", "s3://lake", NAME), PurgeTarget("job", "jobs", f"only-{NAME}")):  # fmt: skip
        purge(store, target)
    commands = [one for one in log_of(store) if one.kind]
    local.take(commands)
    local.settle()
    assert naming(local) == []
    events = local.rows(tables.EVENTS)
    assert sorted(row["type"] for row in events) == ["COMPLETE"] * 2 + ["purge"] * 2
    assert local.rows(tables.REFUSED) == []
    assert unknown_since(local.edges()) == unknown_since(stored_edges(store))

    # What stood before the purge in the log and comes behind it goes as well; what is new stays.
    first = LogRecord(0, log[0].at, bodies()[0])
    after = event("COMPLETE", 50, run=5, job="load", inputs=["a"], outputs=["b", "e"])
    local.take([first, LogRecord(0, commands[-1].at + 1, msgspec.json.encode(after))])
    local.settle()
    assert naming(local) == []
    store.append([msgspec.json.encode(after)])
    assert unknown_since(local.edges()) == unknown_since(stored_edges(store))
    again = msgspec.json.decode(bodies()[0])
    again["eventTime"] = "2026-01-02T00:00:00Z"
    local.take([LogRecord(0, commands[-1].at + 2, msgspec.json.encode(again))])
    local.settle()
    assert any(row["dataset_name"] == NAME for row in local.rows(tables.EDGES))


def test_maintenance_carries_out_a_purge_too(local: LocalLake, store: Store) -> None:
    for body in bodies():
        store.append([body])
    local.take(log_of(store))
    purge(store, PurgeTarget("namespace", "s3://lake"))
    local.take(one for one in log_of(store) if one.kind)
    assert naming(local)
    assert maintain(local)["events"].removed == len(bodies())
    assert naming(local) == []


def test_a_purge_goes_on_after_an_end_in_its_midst(
    local: LocalLake, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in bodies():
        store.append([body])
    local.take(log_of(store))
    local.settle()
    for target in (PurgeTarget("dataset", "s3://lake", NAME), PurgeTarget("job", "jobs", f"only-{NAME}")):  # fmt: skip
        purge(store, target)
    local.take(one for one in log_of(store) if one.kind)

    def fails(*_: Any) -> None:
        raise OSError("the program was killed")

    with monkeypatch.context() as patched:
        patched.setattr(lake_derive, "compute", fails)
        with pytest.raises(OSError, match="killed"):
            local.settle()
    assert naming(local)
    local.again().settle()
    assert naming(local) == []
    assert unknown_since(local.edges()) == unknown_since(stored_edges(store))


def test_what_is_appended_while_files_go_is_not_taken_in_again(
    local: LocalLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [LogRecord(0, AT + n, body) for n, body in enumerate(bodies())]
    local.take(made[:2])
    beside, renew = local.again(), local.lake.renew_manifests

    def append_first(table: LakeTable) -> None:
        beside.take(made[2:])
        renew(table)

    monkeypatch.setattr(local.lake, "renew_manifests", append_first)
    lake_purge.forget(local.lake, tables.EVENTS)
    assert local.again().lake.offsets(tables.EVENTS) == {TOPIC: {"0": len(made)}}
