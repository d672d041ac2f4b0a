"""What the demo's verdict says of schemas on a real server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from headwater.lab.demo.verdict import SCHEMAS, Judge

from .making import dataset, event, schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.lab.services.base import LabContext

    from .conftest import Process

PORT = 9092
KAFKA = f"kafka://127.0.0.1:{PORT}"


def test_a_second_schema_of_any_dataset_fails_the_verdict(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    server = launch(str(tmp_path / "lineage.db"))
    settings = SimpleNamespace(namespace="jobs", archive="raw", hive=False, secure=False)
    lab = SimpleNamespace(
        url=lambda _service: server.url,
        port=lambda _service: PORT,
        home=SimpleNamespace(settings=settings),
    )
    judge = Judge(cast("LabContext", lab))

    def write(second: int, **columns: str) -> None:
        outputs = [
            dataset(name, KAFKA, schema=schema(*names.split())) for name, names in columns.items()
        ]
        sent = event(
            "COMPLETE", second, run=second, inputs=["schemaless"], outputs=[*outputs, "empty"]
        )
        judge.lineage.http.post("/api/v1/lineage", json=sent).raise_for_status()

    def seen() -> dict[str, tuple[bool, str]]:
        schemas = judge.schemas()
        assert [one.what for one in schemas[: len(SCHEMAS)]] == [
            f"one schema of {one}" for one in SCHEMAS
        ]
        return {
            one.what.removeprefix("one schema of "): (one.seen, one.state)
            for one in schemas
            if one.state != "0 versions"
        }

    dead = f"{KAFKA} orders-dead-letter"
    write(1, **{"orders": "id price", "orders-dead-letter": "id reason"})
    assert seen() == {"kafka orders": (True, "1 version"), dead: (True, "1 version")}
    write(2, **{"orders": "id price", "orders-dead-letter": "id why"})
    assert seen() == {"kafka orders": (True, "1 version"), dead: (False, "2 versions")}
    write(3, **{"orders": "id", "orders-dead-letter": "id why"})
    assert seen() == {"kafka orders": (False, "2 versions"), dead: (False, "2 versions")}
