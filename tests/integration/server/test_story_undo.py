"""What the story of two names leaves behind on a server: nothing of its own, and all of others'."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from headwater.lab.demo.lineage_client import LineageClient
from headwater.lab.stories.misaligned import DEAD_LETTERS, ELSEWHERE, Misaligned

from .making import dataset, event, schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.lab.services.base import LabContext
    from headwater.lab.stories.story_run import StoryRun

    from .conftest import Process

PORT = 9092
COLUMNS = ("order_id", "price", "supplier")


class Catalog:
    """The tables that the story made; it has no lineage."""

    def __init__(self, *tables: str) -> None:
        self.tables = list(tables)

    def list_tables(self, _namespace: str) -> list[tuple[str, str]]:
        return [("default", name) for name in self.tables]

    def drop_table(self, name: str) -> None:
        self.tables.remove(name.removeprefix("default."))


def _events(
    number: int, table: str, writer: str, reader: str, *more: dict[str, Any]
) -> list[dict[str, Any]]:
    theirs = dataset(f"default.{table}", ELSEWHERE, schema=schema(*COLUMNS))
    ours = dataset(f"default/{table}", "s3://warehouse", schema=schema(*COLUMNS))
    return [
        event("COMPLETE", 0, run=number, job=writer, inputs=["raw"], outputs=[theirs, *more]),
        event("COMPLETE", 9, run=number + 1, job=reader, inputs=[ours], outputs=["sums"]),
    ]  # fmt: skip


def test_undo_takes_apart_and_hides_what_the_story_made_and_nothing_else(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    server = launch(str(tmp_path / "lineage.db"))
    lab = SimpleNamespace(
        url=lambda _service: server.url,
        port=lambda _service: PORT,
        home=SimpleNamespace(
            settings=SimpleNamespace(namespace="jobs", archive="raw", hive=False, secure=False)
        ),
    )
    lineage = LineageClient(cast("LabContext", lab))
    topic = dataset(DEAD_LETTERS, f"kafka://127.0.0.1:{PORT}")
    for one in (
        *_events(1, "story_orders_1", "story_ingestion_1", "story_summary_1", topic),
        *_events(3, "customers", "load", "report"),
    ):
        lineage.http.post("/api/v1/lineage", json=one).raise_for_status()
    mine = (f"{ELSEWHERE} default.story_orders_1", "warehouse default/story_orders_1")
    others = (f"{ELSEWHERE} default.customers", "warehouse default/customers")
    lineage.join(*mine)
    lineage.join(*others)
    assert lineage.dataset(f"kafka {DEAD_LETTERS}")

    catalog = Catalog("story_orders_1", "customers")
    counter = SimpleNamespace(catalog=catalog)
    story_run = cast("StoryRun", SimpleNamespace(lineage=lineage, counter=counter))
    for _ in range(2):  # it may be called any number of times
        Misaligned().undo(story_run)
        assert catalog.tables == ["customers"]
        assert not lineage.dataset(f"kafka {DEAD_LETTERS}")
        assert not any(lineage.dataset(one) for one in mine)
        assert set(lineage.jobs()) == {"load", "report"}
        recorded = lineage.get("/api/v2/doctor")["recorded"]
        assert [one["alias"]["name"] for one in recorded] == ["default.customers"]
        assert "story_" not in str(lineage.get("/api/v2/aliases"))
