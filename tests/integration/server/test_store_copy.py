"""A backup, a restored store and a moved one hold everything and answer the same."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from headwater.cli.server import register
from headwater.server.app import ServerSettings
from headwater.server.http.auth import create_token, list_tokens
from headwater.server.store import Store, StoreError, open_store
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild
from headwater.server.store.keep.transfer import copy_store

from .conftest import Client, Process
from .making import columns, dataset, event, schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

app = typer.Typer()
register(app)

KEY = "an-admin-key"
ASKED = (
    "/api/v1/namespaces", "/api/v1/namespaces/jobs/jobs", "/api/v1/namespaces/s3%3A%2F%2Flake/datasets",
    "/api/v1/tags", "/api/v1/sources", "/api/v1/search?q=t", "/api/v1/events/lineage",
    "/api/v1/lineage?nodeId=job:jobs:j1", "/api/v1/column-lineage?nodeId=dataset:s3://lake:t1",
    "/api/v2/aliases", "/api/v2/columns?node=dataset:s3://lake:t1", "/api/v2/search?q=t",
    "/api/v2/jobs/jobs/j1", "/api/v2/datasets/s3%3A%2F%2Flake/t1", "/api/v2/events",
)  # fmt: skip


def fill(store: Store) -> None:
    """Events and everything that is set by hand."""
    out = dataset("t1", schema=schema("id"), columnLineage=columns(id=("in", "id")))
    sent = [event("START", n, run=n, job=f"j{n % 3}", inputs=["in"], outputs=[out]) for n in range(60)]  # fmt: skip
    sent.append(event("COMPLETE", 99, run=1, job="j1", inputs=["in"], outputs=[out]))
    sent.append(event("START", 100, run=99, job="gone", outputs=["secret_t"]))
    assert all(r.error is None for r in store.append([json.dumps(e).encode() for e in sent]))
    store.perform({"command": "tag", "name": "pii", "description": "personal"})
    store.perform({"command": "tagged", "on": True, "kind": "dataset", "namespace": "s3://lake", "name": "t1", "tag": "pii"})  # fmt: skip
    store.perform({"command": "namespace", "name": "jobs", "owner": "ada", "description": "all"})
    store.perform({"command": "alias", "namespace": "s3://lake", "name": "t1", "alias": ["s3a://lake", "t1"]})  # fmt: skip
    store.perform({"command": "hide", "kind": "job", "namespace": "jobs", "name": "j2"})
    create_token(store, "spark", "write")
    purge(store, PurgeTarget("job", "jobs", "gone"))


def answers(store: Store) -> dict[str, Any]:
    client = Client(store, ServerSettings(tokens=[KEY]))
    try:
        found = {path: client.call("GET", path, headers={"authorization": f"Bearer {KEY}"}) for path in ASKED}  # fmt: skip
    finally:
        client.close()
    assert {path: one.text for path, one in found.items() if one.status_code != 200} == {}
    return {path: one.json() for path, one in found.items()}


@pytest.fixture
def other_url(request: pytest.FixtureRequest, store_url: str, tmp_path: Path) -> str:
    """A store of the other kind."""
    if store_url.startswith("sqlite"):
        url: str = request.getfixturevalue("postgres").database()
        return url
    return f"sqlite:///{tmp_path}/other.db"


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_a_store_goes_anywhere_and_answers_the_same(
    store_url: str, other_url: str, tmp_path: Path
) -> None:
    store = open_store(store_url)
    fill(store)
    tokens = list_tokens(store.connection)
    store.close()
    file = tmp_path / "backup.hw"
    made = run("store", "backup", str(file), "--store", store_url)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    moved = run("store", "move", "--store", store_url, "--to", other_url)
    restored_url = f"sqlite:///{tmp_path}/restored.db"
    assert run("store", "restore", str(file), "--store", restored_url) == made
    assert (moved["seq"], moved["chain"]) == (made["seq"], made["chain"])
    first = answers(open_store(store_url))
    assert first["/api/v1/tags"]["tags"][0]["name"] == "pii"
    for url in (other_url, restored_url):
        copied = open_store(url)
        assert list_tokens(copied.connection) == tokens
        rebuild(copied)
        assert answers(copied) == first
    # What is copied can be written on.
    again = open_store(restored_url)
    (receipt,) = again.append([json.dumps(event("START", 200, run=200)).encode()])
    assert receipt.seq == made["seq"] + 1
    again.close()


def test_a_backup_is_taken_while_the_server_runs(
    launch: Callable[..., Process], store_url: str, tmp_path: Path
) -> None:
    server = launch(store_url)
    sent = [json.dumps(event("START", n, run=n, outputs=["t"])) for n in range(20)]
    for line in sent[:10]:
        assert httpx.post(f"{server.url}/api/v1/lineage", content=line).status_code == 201
    file = tmp_path / "backup.hw"
    assert run("store", "backup", str(file), "--store", store_url)["records"] == 10
    for line in sent[10:]:
        assert httpx.post(f"{server.url}/api/v1/lineage", content=line).status_code == 201
    # The backup is a store: a server answers from it.
    second = launch(f"sqlite:///{file}")
    assert httpx.get(f"{second.url}/api/v1/jobs").json()["totalCount"] == 1
    assert httpx.get(f"{second.url}/api/v2/health").json()["events"] == 10


def test_a_full_target_a_missing_file_and_a_second_backup_are_refused(
    store_url: str, tmp_path: Path
) -> None:
    store = open_store(store_url)
    fill(store)
    store.close()
    file = tmp_path / "backup.hw"
    run("store", "backup", str(file), "--store", store_url)
    for arguments, message in (
        (["restore", str(file), "--store", store_url], "not empty"),
        (["backup", str(file), "--store", store_url], "exists"),
        (["restore", str(tmp_path / "none"), "--store", store_url], "no file"),
        (["backup", str(tmp_path / "x"), "--store", f"sqlite:///{tmp_path}/none.db"], "no store"),
        (["move", "--store", store_url, "--to", store_url], "the same"),
    ):
        failed = CliRunner().invoke(app, ["store", *arguments])
        assert message in str(failed.exception), failed.output
        assert getattr(failed.exception, "hint", None)
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "none.db").exists()


def _written(source: Store, _: Store) -> None:
    source.append([json.dumps(event("START", 300, run=300)).encode()])


def _damaged(_: Store, target: Store) -> None:
    target.connection.run("UPDATE head SET epoch = epoch + 1")


@pytest.mark.parametrize(
    ("harm", "message"), [(_written, "events came in"), (_damaged, "table head is not equal")]
)
def test_a_copy_that_is_not_equal_is_not_kept(
    tmp_path: Path, harm: Callable[[Store, Store], None], message: str
) -> None:
    source = open_store(f"sqlite:///{tmp_path}/a.db")
    fill(source)
    target = open_store(f"sqlite:///{tmp_path}/b.db")
    once = iter([harm])

    def progress(_done: int, _total: int) -> None:
        for do in once:
            do(source, target)

    with pytest.raises(StoreError, match=message):
        copy_store(source.database, target, still=True, progress=progress)
    assert target.connection.all("SELECT count(*) FROM log") == [(0,)]
    assert target.connection.all("SELECT seq FROM head") == [(0,)]
