"""What a limited token does not see is told by every answer, to people and to assistants."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.cli.mcp import shorten

FRESH: dict[str, Any] = {
    "verdict": "live", "since": None, "lastWrittenAt": None, "lastWrittenFrom": None,
    "causes": [], "hidden": 2, "truncated": False,
}  # fmt: skip


def test_freshness_says_how_much_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("httpx.request", lambda *_, **__: httpx.Response(200, json=FRESH))
    said = CliRunner().invoke(app, ["freshness", "s3://lake", "orders"])
    assert said.stdout == "live\n2 jobs or datasets upstream are hidden from you\n"


def test_what_is_partly_hidden_is_not_complete() -> None:
    assert shorten.freshness(FRESH)["complete"] is False
    assert shorten.freshness({**FRESH, "hidden": 0})["complete"] is True
    tree: dict[str, Any] = {
        "direction": "up",
        "nodes": [],
        "edges": [],
        "rows": [],
        "columnsKnown": None,
    }
    assert shorten.trace({**tree, "hidden": 1, "truncated": False})["complete"] is False
    assert shorten.trace({**tree, "hidden": 0, "truncated": False})["complete"] is True


@pytest.mark.parametrize("named", [True, False])
def test_column_edges_of_a_server_of_an_earlier_release_have_their_ids(
    named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = {"origin": "datasetField:db:a:x", "destination": "datasetField:s3://lake:t:y"}
    ends = [*edge.values()]
    if named:
        edge |= {"originName": "db:a.x", "destinationName": "s3://lake:t.y"}
        ends = ["db:a.x", "s3://lake:t.y"]
    lists = ["appeared", "vanished", "added", "removed", "columnsRemoved", "schemas", "states"]
    answer: dict[str, Any] = {
        **{name: [] for name in lists}, "columnsAdded": [edge],
        "from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "hidden": 0, "truncated": False,
    }  # fmt: skip
    assert shorten.difference(answer)["columnEdgesAdded"] == [ends]
    monkeypatch.setattr("httpx.request", lambda *_, **__: httpx.Response(200, json=answer))
    said = CliRunner().invoke(app, ["diff", "--from", "2026-01-01"])
    assert f"+ column {ends[0]} → {ends[1]}" in said.stdout


def test_the_jobs_behind_which_no_tag_can_be_followed_are_named() -> None:
    blind = {
        "job": "job:shop:load",
        "origin": "dataset:s3://lake:a",
        "destination": "dataset:s3://lake:b",
    }
    found: dict[str, Any] = {"columns": [], "stopped": [], "unknown": [blind], "truncated": False}
    short = shorten.tags(found)
    assert short["complete"] is False
    assert short["reportNoColumns"] == [
        {"job": "shop:load", "from": "s3://lake:a", "into": "s3://lake:b"}
    ]
