"""`headwater impact` and the files in docs/ci, played against a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from headwater.lab import ports
from headwater.lab.login_proxy import LoginProxy, LoginProxyServer
from headwater.lab.waiting import wait_until

from .making import columns, dataset, event, facet

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.lab.clients import RegistryClient

    from .conftest import Process

CI = Path(__file__).parents[3] / "docs" / "ci"
BIN = Path(sys.executable).parent
ORDERS = {"name": "orders", "type": "record", "fields": [
    {"name": "id", "type": "long"}, {"name": "price", "type": "double"},
]}  # fmt: skip
BROKEN = {**ORDERS, "fields": ORDERS["fields"][:1]}
GROWN = {**ORDERS, "fields": [*ORDERS["fields"], {"name": "note", "type": "string"}]}


def topic() -> dict[str, Any]:
    fields = [{"name": "id", "type": "long"}, {"name": "price", "type": "double"}]
    return dataset("shop-orders", "kafka://broker:9092", schema=facet(fields=fields))


@pytest.fixture
def server(launch: Callable[..., Process]) -> Process:
    found = launch()
    made = columns(total=("shop-orders", "price"))
    made["fields"]["total"]["inputFields"][0]["namespace"] = "kafka://broker:9092"
    owned = {"ownership": facet(owners=[{"name": "team|a"}])}
    outputs = [dataset("totals", columnLineage=made)]
    for one in (
        event("START", 0, job="sum|up", inputs=[topic()], outputs=outputs, job_facets=owned),
        event("START", 1, run=2, job="blind", inputs=[topic()], outputs=["dark"]),
    ):
        httpx.post(f"{found.url}/api/v1/lineage", json=one).raise_for_status()
    return found


def run(
    server: Process, *command: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k != "HEADWATER_TOKEN"}
    env = {**kept, "PATH": f"{BIN}:{os.environ['PATH']}", "OPENLINEAGE_URL": server.url}
    env |= dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "x")
    env |= dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "x@example.com")
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_the_command_says_who_is_hit_and_ends_with_5(server: Process, tmp_path: Path) -> None:
    def impact(*options: str) -> subprocess.CompletedProcess[str]:
        return run(server, str(BIN / "headwater"), "impact", *options, cwd=tmp_path)

    broken = impact("shop-orders", "--drop", "price")
    assert broken.returncode == 5, broken
    assert "sum|up: it names price owned by team|a" in broken.stdout
    assert "blind: it has no column lineage" in broken.stdout
    assert (
        "the columns of 1 are known, not those of blind; 0 unaffected, 1 unknown" in broken.stdout
    )
    told = impact("shop-orders", "--type", "price=float", "--json")
    assert (told.returncode, json.loads(told.stdout)["verdict"]) == (0, "unknown")
    unknown = impact("shop-orders", "--drop", "id")
    assert (unknown.returncode, impact("shop-orders", "--drop", "id", "--strict").returncode) == (
        0,
        5,
    )
    markdown = impact("shop-orders", "--delete", "--markdown")
    assert "| **breaks** | `sum\\|up` | `it reads the dataset` | `team\\|a` |" in markdown.stdout
    (tmp_path / "new.avsc").write_text(json.dumps(BROKEN))
    (tmp_path / "grown.avsc").write_text(json.dumps(GROWN))
    (tmp_path / "new.proto").write_text('syntax = "proto3"; message Orders { int64 id = 1; }')
    assert impact("shop-orders", "--schema", "new.avsc").returncode == 5
    assert impact("shop-orders", "--schema", "new.proto").returncode == 5
    properties: dict[str, Any] = {"id": {"type": "integer"}, "price": {"type": "number"}}
    for name, kept in (("new.json", ["id"]), ("same.json", ["id", "price"])):
        chosen = {column: properties[column] for column in kept}
        written = {"type": "object", "properties": chosen, "required": kept}
        (tmp_path / name).write_text(json.dumps(written))
    broken = impact("shop-orders", "--schema", "new.json")
    assert (broken.returncode, "it names price" in broken.stdout) == (5, True), broken
    assert impact("shop-orders", "--schema", "same.json").returncode == 0
    (tmp_path / "settings.json").write_text('{"retries": 3}')
    none = impact("shop-orders", "--schema", "settings.json")
    assert (none.returncode, "neither a type nor properties" in none.stderr) == (2, True), none
    grown = impact("shop-orders", "--schema", "grown.avsc")
    assert (grown.returncode, "note was added" in grown.stdout) == (0, True)
    for wrong in (
        ("shop-orders",), ("--drop", "price"), ("shop-orders", "--rename", "price"), ("nope.avsc", "--subject", "x"),
        ("shop-orders", "--schema", "nope.avsc"), ("shop-orders", "--delete", "--drop", "price"),
        ("shop-orders.price", "--delete"), ("shop-orders", "--rename", "price=id"),
    ):  # fmt: skip
        assert impact(*wrong).returncode == 2, wrong
    near = impact("shop-orders", "--drop", "prise")
    assert (near.returncode, "shop-orders.price" in near.stderr) == (4, True)
    # The value of the topic shop-orders-key, not the key of shop-orders.
    options = ("--registry", "http://127.0.0.1:1", "--subject", "shop-orders-key-value")
    other = impact(*options, "--schema", "new.avsc")
    assert (other.returncode, "is called 'shop-orders-key'" in other.stderr) == (4, True), other


class Repository:
    """A git repository with schemas."""

    def __init__(self, server: Process, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.git("init", "-q")
        # A commit to merge into, which the hook, not there yet, has not judged.
        (folder / "schemas").mkdir()
        self.commit(**{"shop-orders.avsc": ORDERS})

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(self.server, "git", *words, cwd=self.folder)

    def commit(self, **schemas: dict[str, Any] | None) -> subprocess.CompletedProcess[str]:
        """Commit these files below schemas/, by their paths; those without a schema go."""
        for path, schema in schemas.items():
            file = self.folder / "schemas" / path
            if schema is None:
                file.unlink()
            else:
                file.parent.mkdir(exist_ok=True)
                file.write_text(json.dumps(schema))
        self.git("add", "-A", "schemas")
        return self.git("commit", "-q", "-m", "change")


@pytest.fixture
def repository(server: Process, tmp_path: Path) -> Repository:
    return Repository(server, tmp_path)


@pytest.mark.full
def test_the_workflow_fails_with_a_comment_where_something_breaks(
    server: Process, repository: Repository
) -> None:
    workflow = yaml.safe_load((CI / "schema-impact.yml").read_text())
    (step,) = [s for s in workflow["jobs"]["impact"]["steps"] if s.get("name") == "Who is hit"]
    folder = repository.folder

    def played(code: int, **schemas: dict[str, Any] | None) -> str:
        """The comment on a commit of these, as a runner's shell makes it."""
        assert repository.commit(**schemas).returncode == 0
        (folder / "impact.md").unlink(missing_ok=True)
        done = run(server, "bash", "-eo", "pipefail", "-c", step["run"], cwd=folder)
        assert done.returncode == code, done
        return (folder / "impact.md").read_text()

    assert "Nobody is hit." in played(0, **{"shop-orders.avsc": GROWN})
    assert "1 breaks, 1 unknown" in played(5, **{"shop-orders.avsc": BROKEN})
    (folder / "schemas" / "README.md").write_text("no schema")
    new = played(0, **{"shop-orders.avsc": ORDERS, "new topics/a `new` one.avsc": ORDERS})
    assert "Nobody is hit." in new
    assert "`a__new__one` is not known yet" in new
    assert "1 breaks" in played(5, **{"shop-orders.avsc": None, "shop/shop-orders.avsc": BROKEN})
    assert "Nobody is hit." in played(0, **{"shop/shop-orders.avsc": ORDERS})
    assert "the dataset is deleted" in played(5, **{"shop/shop-orders.avsc": None})
    assert "### Impact" not in played(2, **{"shop-orders.avsc": {"type": "nonsense"}})


def test_the_hook_refuses_a_commit_that_breaks_a_reader(repository: Repository) -> None:
    git, commit = repository.git, repository.commit
    hook = repository.folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes((CI / "pre-commit").read_bytes())
    hook.chmod(0o755)

    def refused(**schemas: dict[str, Any] | None) -> bool:
        done = commit(**schemas)
        assert ("breaks" in done.stdout + done.stderr) == (done.returncode == 1), done
        git("reset", "-q", "--hard")
        return done.returncode == 1

    assert not refused(**{"shop-orders.avsc": GROWN})
    assert refused(**{"shop-orders.avsc": BROKEN})
    unknown = commit(**{"else where.avsc": BROKEN})
    assert unknown.returncode == 0
    assert "schemas/else where.avsc is not known; committing anyway" in unknown.stderr
    # A move is judged by what the schema is now; what is renamed or removed goes.
    assert refused(**{"shop-orders.avsc": None, "shop/shop-orders.avsc": BROKEN})
    assert not refused(**{"shop-orders.avsc": None, "shop/shop-orders.avsc": GROWN})
    assert refused(**{"shop/shop-orders.avsc": None, "shop/orders.avsc": GROWN})
    assert refused(**{"shop/shop-orders.avsc": None})


def test_a_schema_is_compared_with_the_registered_version(
    server: Process, registry: RegistryClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what the topic has, the narrow subject lacks the price: its file takes nothing away."""
    for subject, schema in (("shop-orders-value", ORDERS), ("narrow-value", BROKEN)):
        httpx.post(
            f"{registry.url}/subjects/{subject}/versions",
            json={"schema": json.dumps(schema)},
            trust_env=False,
            timeout=60,
        ).raise_for_status()
    (tmp_path / "new.avsc").write_text(json.dumps(BROKEN))
    (tmp_path / "same.avsc").write_text(json.dumps(ORDERS))

    def impact(
        schema: str, subject: str, *more: str, url: str = registry.url
    ) -> subprocess.CompletedProcess[str]:
        command = ("impact", "--registry", url, "--subject", subject, "--schema", schema)
        return run(server, str(BIN / "headwater"), *command, *more, cwd=tmp_path)

    assert impact("new.avsc", "shop-orders-value").returncode == 5
    assert impact("same.avsc", "shop-orders-value").returncode == 0
    narrow = impact("new.avsc", "narrow-value", "shop-orders")
    assert (narrow.returncode, "nothing that a reader could miss" in narrow.stdout) == (0, True)
    missing = impact("new.avsc", "other-value", "shop-orders")
    assert (missing.returncode, "other-value is not registered" in missing.stderr) == (4, True)

    monkeypatch.delenv("SCHEMA_REGISTRY_USER_INFO", raising=False)
    port = ports.free()
    gate = LoginProxyServer(LoginProxy(registry.url, {"lab": "pass:word"}), port)
    gate.start()
    try:
        wait_until(lambda: ports.accepts(port), seconds=60, what="the proxy")
        url = httpx.URL(registry.url).copy_with(port=port)
        assert impact("new.avsc", "shop-orders-value", url=str(url)).returncode == 1
        monkeypatch.setenv("SCHEMA_REGISTRY_USER_INFO", "lab:pass:word")
        assert impact("new.avsc", "shop-orders-value", url=str(url)).returncode == 5
    finally:
        gate.close()
