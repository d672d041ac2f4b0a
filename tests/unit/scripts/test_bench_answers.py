"""What the benchmark of questions says of a question that takes too long."""

from __future__ import annotations

import asyncio
import importlib
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from scripts import docs

from headwater.server.app import App, ServerSettings
from headwater.server.store import open_store


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "bench"))
    return importlib.import_module("answers")


def test_a_question_over_its_limit_is_named(
    answers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now = datetime.now(timezone.utc)
    url = f"sqlite:///{tmp_path}/bench.db"
    store = open_store(url)
    answers.fill(store, 100, now)
    store.close()

    def measured(limit: float) -> Any:
        monkeypatch.setattr(answers, "LIMITS", dict.fromkeys(answers.LIMITS, limit))
        app = App(open_store(url), ServerSettings(page=False, stale_every=3_600))
        figures = answers.Figures()
        figures.store = "SQLite"
        asyncio.run(answers.measure(app, 100, now, 1, figures))
        return figures

    figures, names = measured(1e9), list(answers.questions(100, now))
    assert figures.slow == []
    kept = figures.kept(100)
    assert kept["machine"][0]["jobs"] == 100
    shown = docs.results("answers")
    assert kept.keys() == shown["measured"].keys()
    # What is kept is what the documents show.
    assert [row["on the server"] for row in shown["questions"]] == names
    columns = {"on the server", "limit: ms", "SQLite: p50 ms", "SQLite: CPU ms"}
    assert all(set(row) == columns for row in kept["questions"])
    assert [one.split(": ")[1] for one in measured(0).slow] == names


@pytest.mark.parametrize(("slow", "code"), [([], 0), (["why: 51.0 ms, the limit is 50"], 1)])
def test_it_fails_if_a_question_was_too_slow(
    answers: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    slow: list[str],
    code: int,
) -> None:
    def bench(_url: str, _chosen: Any, _rules: Path, figures: Any) -> None:
        figures.slow += [f"over its limit on {figures.store}: {one}" for one in slow]

    monkeypatch.setattr(answers, "bench", bench)
    monkeypatch.setattr(sys, "argv", ["answers.py", "--jobs", "1"])
    with pytest.raises(SystemExit) as ended:
        answers.main()
    assert ended.value.code == code
    said = capsys.readouterr().out
    assert ("over its limit on SQLite: why: 51.0 ms" in said) == bool(slow)
