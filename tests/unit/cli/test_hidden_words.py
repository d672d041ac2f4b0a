"""What a limited token does not see is told by every answer, to people and to assistants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.cli.mcp import shorten

if TYPE_CHECKING:
    import pytest

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
