"""What is asked of a store of many datasets about one of them does not read them all."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx

from headwater.server.app import App, ServerSettings
from headwater.server.store import open_store
from headwater.server.store.database.sqlite import SqliteConnection
from headwater.server.store.read import timeline
from headwater.server.store.view import Bodies, View

from .making import columns, dataset, event, schema

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

Statement = tuple[str, tuple[Any, ...]]


def test_nothing_reads_every_dataset_to_take_in_or_to_show_one(tmp_path: Path) -> None:
    with closing(open_store(f"sqlite:///{tmp_path}/x.db")) as store:
        connection = store.connection
        assert isinstance(connection, SqliteConnection)
        asked: list[str] = []
        connection.raw.set_trace_callback(asked.append)
        for second, columns in enumerate((["a"], ["a", "b"], ["b"])):
            made = dataset("t", schema=schema(*columns))
            sent = event("COMPLETE", second, run=second, inputs=["s"], outputs=[made])
            assert store.append([json.dumps(sent).encode()])[0].error is None
        taken_in = len(asked)
        view = View(connection, Bodies(store.packer))
        found = view.dataset("s3://lake", "t")
        assert found is not None
        assert timeline.members(view, found.id) == [found.id]
        assert view.first_record(("dataset", found.id)) == found.created
        connection.raw.set_trace_callback(None)
        assert any("FROM dataset WHERE root" in sql for sql in asked[:taken_in])
        assert any("FROM dataset WHERE root" in sql for sql in asked[taken_in:])
        for sql in asked:
            if " WHERE " in sql and not sql.startswith("INSERT"):
                plan = [row[3] for row in connection.all(f"EXPLAIN QUERY PLAN {sql}")]
                whole = ("SCAN dataset", "SCAN d ", "SEARCH dataset!")  # the last for min()
                assert not [step for step in plan if f"{step}!".startswith(whole)], (sql, plan)


def _asked(folder: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Statement]]:
    """The statements of each question on two layers of jobs, `width` tables wide."""
    asked: list[Statement] = []
    read = SqliteConnection.all

    def recorded(self: SqliteConnection, sql: str, params: Any = ()) -> Any:
        asked.append((sql, tuple(params)))
        return read(self, sql, params)

    store = open_store(f"sqlite:///{folder}/{width}.db")
    names = [f"s{number}" for number in range(width)]
    source = dataset("root", schema=schema("a"))
    for run, name in enumerate(names):
        lineage = columns(a=("root", "a"))
        made = dataset(name, schema=schema("a"), columnLineage=lineage)
        sent = event("COMPLETE", run, run=run, job=name, inputs=[source], outputs=[made])
        assert store.append([json.dumps(sent).encode()])[0].error is None
    lineage = columns(**{f"a{name}": (name, "a") for name in names})
    lineage["fields"]["all"] = {"inputFields": [
        one for field in lineage["fields"].values() for one in field["inputFields"]
    ]}  # fmt: skip
    made = dataset("t", schema=schema("all"), columnLineage=lineage)
    sent = event("COMPLETE", width, run=width, job="last", inputs=names, outputs=[made])
    assert store.append([json.dumps(sent).encode()])[0].error is None
    found: dict[str, list[Statement]] = {}

    async def ask() -> None:
        app = App(store, ServerSettings(page=False, stale_every=3_600))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            change = {
                "node": "dataset:s3://lake:root",
                "changes": [{"kind": "drop", "column": "a"}],
            }
            for name, call in {
                "why": client.get("/api/v2/datasets/s3%3A%2F%2Flake/t/why?column=all"),
                "impact": client.post("/api/v2/impact", json=change),
            }.items():
                asked.clear()
                answer = await call
                assert answer.status_code == 200, answer.text
                found[name] = asked.copy()
        await app.close()

    with monkeypatch.context() as patch:
        patch.setattr(SqliteConnection, "all", recorded)
        asyncio.run(ask())
    return found


def test_a_question_reads_each_part_of_the_graph_once_however_wide_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow, wide = (_asked(tmp_path, width, monkeypatch) for width in (2, 12))
    for question, asked in wide.items():
        of_graph = [
            one for one in asked if any(t in one[0] for t in (" edge ", " column_map ", " fold "))
        ]
        assert of_graph
        assert len(of_graph) == len(set(of_graph)), question
        assert len(asked) == len(narrow[question]), question
