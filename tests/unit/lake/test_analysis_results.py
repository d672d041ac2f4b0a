"""A server with a lake, and the command line, show what the last analysis found."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog
from typer.testing import CliRunner

from headwater.cli.lake import app as commands
from headwater.lake.analysis_results import LakeAnalysis
from headwater.lake.tables import ANALYSED_COLUMNS, ANALYSED_COMPONENTS, ANALYSED_DATASETS
from headwater.lineage.url_paths import path_of
from headwater.server.app import App, ServerSettings
from headwater.server.http.auth import create_token
from headwater.server.store import open_store

from .conftest import TYPES, URL, make_lake, two_jobs, use
from .test_history import asked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lake.tables import LakeTable
    from headwater.server.analysis import AnalysedEstate

AT = datetime(2026, 2, 1, tzinfo=timezone.utc)
SINCE = datetime(2026, 1, 2, tzinfo=timezone.utc)
RANKED = "/api/v2/analysis"
OF_T = path_of("api", "v2", "datasets", "s3://lake", "t", "analysis")


def fill(table: LakeTable, *rows: tuple[Any, ...]) -> None:
    schema = pa.schema([(column.name, TYPES[column.type]) for column in table.columns])
    named = [dict(zip(table.names, (*row, AT, SINCE), strict=True)) for row in rows]
    catalog = load_catalog("unit")
    catalog.load_table(f"lineage.{table.name}").append(pa.Table.from_pylist(named, schema=schema))


def analyse() -> None:
    """Write down what an analysis of the lake found."""
    fill(
        ANALYSED_DATASETS,
        ("s3://lake", "u", 1, 0, 0, 0, 0, True, 1, 0),
        ("s3://lake", "t", 1, 1, 1, 2, 1, False, 2, 1),
        ("s3://lake", "purged", 2, 99, 9, 9, 9, False, 1, 1),
    )
    fill(
        ANALYSED_COLUMNS,
        ("s3://lake", "t", "b", 0, 0, 0, None),
        ("s3://lake", "t", "a", 1, 1, 1, False),
        ("s3://other", "t", "c", 5, 5, 5, False),
        ("s3://lake", "u", "x", 0, 0, 0, True),
    )
    fill(ANALYSED_COMPONENTS, (2, 1, 99, 1), (1, 2, 1, 3))


@pytest.fixture(scope="module")
def analysed_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lake with an analysis, which no test changes."""
    folder = tmp_path_factory.mktemp("analysed")
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        make_lake()
        analyse()
    return folder


@pytest.fixture
def analysed(analysed_lake: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lake with an analysis, to be read only."""
    use(analysed_lake, monkeypatch)
    return URL


@pytest.fixture
def server(tmp_path: Path, analysed: str) -> Iterator[App]:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    assert all(receipt.error is None for receipt in store.append(two_jobs()))
    app = App(store, ServerSettings(page=False))
    app.analysis = LakeAnalysis(analysed)
    yield app
    asyncio.run(app.close())


def test_datasets_are_ranked_and_those_that_are_gone_are_not_told(server: App) -> None:
    code, found = asked(server, RANKED, {})
    assert code == 200
    assert [one["name"] for one in found["datasets"]] == ["t", "u"]
    assert (found["analysedAt"][:10], found["since"][:10]) == ("2026-02-01", "2026-01-02")
    assert (found["total"], found["unused"], found["hidden"], found["truncated"]) == (
        3,
        1,
        0,
        False,
    )
    assert found["datasets"][0] | {"component": 0} == {
        "namespace": "s3://lake", "name": "t", "jobs": 1, "datasets": 1, "owners": 2, "readers": 1,
        "unused": False, "columns": 2, "unusedColumns": 1, "component": 0,
    }  # fmt: skip
    _, found = asked(server, RANKED, {"limit": "1"})
    assert ([one["name"] for one in found["datasets"]], found["truncated"]) == (["t"], True)
    _, found = asked(server, RANKED, {"show": "unused"})
    assert [one["name"] for one in found["datasets"]] == ["u"]
    _, found = asked(server, RANKED, {"by": "unused-columns"})
    assert [one["name"] for one in found["datasets"]] == ["t"]


def test_components_are_named_by_a_dataset_that_the_server_still_has(server: App) -> None:
    assert asked(server, RANKED, {})[1]["components"] == {
        "total": 2,
        "largest": [
            {"component": 1, "datasets": 2, "jobs": 1, "columns": 3,
             "around": {"namespace": "s3://lake", "name": "t"}},
            {"component": 2, "datasets": 1, "jobs": 99, "columns": 1, "around": None},
        ],
    }  # fmt: skip


def test_health_says_whether_there_is_an_analysis_to_ask_for(server: App) -> None:
    assert asked(server, "/api/v2/health", {})[1]["analysis"] is True
    server.analysis = None
    assert asked(server, "/api/v2/health", {})[1]["analysis"] is False


def test_a_dataset_has_its_figures_and_its_columns(server: App) -> None:
    code, found = asked(server, OF_T, {})
    assert (code, found["figures"]["jobs"]) == (200, 1)
    assert found["columns"] == [
        {"name": "a", "columns": 1, "datasets": 1, "jobs": 1, "unused": False},
        {"name": "b", "columns": 0, "datasets": 0, "jobs": 0, "unused": None},
    ]
    assert asked(server, OF_T.replace("/t/", "/purged/"), {})[0] == 404


def test_the_columns_of_two_datasets_that_are_one_here_are_not_mixed(server: App) -> None:
    server.store.perform(
        {"command": "alias", "namespace": "s3://lake", "name": "t", "alias": ["s3://lake", "u"]}
    )
    found = asked(server, OF_T, {})[1]
    assert (found["figures"]["columns"], [one["name"] for one in found["columns"]]) == (
        2, ["a", "b"],
    )  # fmt: skip


@pytest.mark.parametrize("path", [RANKED, OF_T])
@pytest.mark.parametrize("limited", [False, True])
def test_a_lake_that_takes_its_time_holds_no_moment_of_the_store(
    server: App, path: str, limited: bool
) -> None:
    spaces = ["s3://lake"] if limited else []
    token = create_token(server.store, "team", "read", spaces) if limited else ""
    held: list[tuple[int, ...]] = []

    class SlowAnalysis(LakeAnalysis):
        """The lake, while the server takes something in and SQLite clears its write-ahead log."""

        def estate(self) -> AnalysedEstate | None:
            server.store.perform({"command": "tag", "name": f"t{len(held)}", "description": ""})
            held.append(server.store.connection.all("PRAGMA wal_checkpoint(PASSIVE)")[0])
            return super().estate()

    assert isinstance(server.analysis, LakeAnalysis)
    server.analysis = SlowAnalysis(server.analysis._url)
    assert asked(server, path, {}, token)[0] == 200
    ((_, written, cleared),) = held
    assert written == cleared > 0


def test_a_limited_token_sees_only_its_namespaces(server: App) -> None:
    everything = create_token(server.store, "all", "read")
    limited = create_token(server.store, "team", "read", ["other"])
    assert asked(server, RANKED, {})[0] == 401
    assert len(asked(server, RANKED, {}, everything)[1]["datasets"]) == 2
    code, found = asked(server, RANKED, {}, limited)
    assert (code, found["datasets"], found["total"], found["hidden"]) == (200, [], 0, 3)
    assert found["components"] == {"total": 0, "largest": []}
    assert asked(server, OF_T, {}, limited)[0] == 404


def test_without_an_analysis_there_is_nothing_to_show(server: App, own_lake: str) -> None:
    analyse()
    server.analysis = LakeAnalysis(own_lake)
    assert asked(server, RANKED, {})[1]["datasets"]
    server.analysis = None
    nothing = asked(server, RANKED, {})[1]
    assert (nothing["analysedAt"], nothing["datasets"]) == (None, [])
    assert asked(server, OF_T, {})[1]["figures"] is None
    for table in (ANALYSED_DATASETS, ANALYSED_COLUMNS, ANALYSED_COMPONENTS):
        load_catalog("unit").load_table(f"lineage.{table.name}").delete()
    server.analysis = LakeAnalysis(own_lake)
    assert asked(server, RANKED, {})[1] == nothing


def test_a_lake_that_is_away_is_said_and_touches_no_other_question(server: App) -> None:
    server.analysis = LakeAnalysis("iceberg://unit/nowhere")
    assert asked(server, RANKED, {})[0] == 503
    assert asked(server, "/api/v2/overview", {})[0] == 200


def test_the_command_prints_the_ranked_list(analysed: str) -> None:
    run = CliRunner().invoke(commands, ["analysis", "--lake", analysed, "--json"])
    found = json.loads(run.stdout)
    assert [one["name"] for one in found["datasets"]] == ["purged", "t", "u"]
    assert (found["total"], found["datasets"][1]["owners"]) == (3, 2)
    run = CliRunner().invoke(commands, ["analysis", "--lake", analysed, "--unused"])
    assert "unused" in run.stdout
    assert "purged" not in run.stdout
