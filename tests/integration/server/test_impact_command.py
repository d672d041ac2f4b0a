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
    assert "the columns of 1 are known; 0 unaffected, 1 unknown" in broken.stdout
    told = impact("shop-orders", "--type", "price=float", "--json")
    assert (told.returncode, json.loads(told.stdout)["verdict"]) == (0, "changes")
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


def test_the_workflow_fails_with_a_comment_where_something_breaks(
    server: Process, tmp_path: Path
) -> None:
    workflow = yaml.safe_load((CI / "schema-impact.yml").read_text())
    (step,) = [s for s in workflow["jobs"]["impact"]["steps"] if s.get("name") == "Who is hit"]
    (tmp_path / "schemas").mkdir()
    for schema, code, told in ((GROWN, 0, "Nobody is hit."), (BROKEN, 5, "1 breaks, 1 unknown")):
        (tmp_path / "impact.md").unlink(missing_ok=True)
        (tmp_path / "schemas" / "shop-orders.avsc").write_text(json.dumps(schema))
        done = run(server, "bash", "-e", "-c", step["run"], cwd=tmp_path)
        assert done.returncode == code, done
        assert told in (tmp_path / "impact.md").read_text()


def test_the_hook_refuses_a_commit_that_breaks_a_reader(server: Process, tmp_path: Path) -> None:
    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return run(server, "git", *words, cwd=tmp_path)

    git("init", "-q")
    hook = tmp_path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes((CI / "pre-commit").read_bytes())
    hook.chmod(0o755)
    (tmp_path / "schemas").mkdir()

    def commit(name: str, schema: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "schemas" / name).write_text(json.dumps(schema))
        git("add", "-A")
        return git("commit", "-q", "-m", "change")

    assert commit("shop-orders.avsc", GROWN).returncode == 0
    refused = commit("shop-orders.avsc", BROKEN)
    assert refused.returncode == 1
    assert "breaks" in refused.stdout + refused.stderr
    git("reset", "-q", "--hard")
    unknown = commit("elsewhere.avsc", BROKEN)
    assert (unknown.returncode, "is not known; committing anyway" in unknown.stderr) == (0, True)


def test_a_schema_is_compared_with_the_registered_version(
    server: Process, registry: RegistryClient, tmp_path: Path
) -> None:
    """The topic has a column that the registered schema lacks: only what the file takes away counts."""
    answer = httpx.post(
        f"{registry.url}/subjects/shop-orders-value/versions",
        json={"schema": json.dumps(ORDERS)},
        trust_env=False,
        timeout=60,
    )
    answer.raise_for_status()
    (tmp_path / "new.avsc").write_text(json.dumps(BROKEN))
    (tmp_path / "same.avsc").write_text(json.dumps(ORDERS))

    def impact(schema: str, subject: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = ("impact", "--registry", registry.url, "--subject", subject, "--schema", schema)
        return run(server, str(BIN / "headwater"), *command, *more, cwd=tmp_path)

    assert impact("new.avsc", "shop-orders-value").returncode == 5
    assert impact("same.avsc", "shop-orders-value").returncode == 0
    missing = impact("new.avsc", "other-value", "shop-orders")
    assert (missing.returncode, "other-value is not registered" in missing.stderr) == (4, True)
