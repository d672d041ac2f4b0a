"""What a server does by itself goes on whatever happens."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from headwater.server.store import StoreUnavailableError, open_store

from .conftest import Client
from .making import event

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.server.app import App


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_background_task_that_fails_is_logged_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headwater.server.app.RESTART", 0.01)
    client = Client(open_store(f"sqlite:///{tmp_path}/h.db"))
    began: list[float] = []

    async def falls(_: App) -> None:
        began.append(time.monotonic())
        raise ValueError("fell over")

    client.app.background.insert(0, falls)
    client.post(event("START", 0))
    wait(lambda: len(began) > 4)
    client.close()
    pauses = [after - before for before, after in pairwise(began)]
    assert all(pause > 0.01 * 2**n for n, pause in enumerate(pauses))
    (first, *_) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "test_upkeep" in first.getMessage()
    assert "fell over" in caplog.text


def test_a_server_closes_its_store_whatever_its_tasks_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(open_store(f"sqlite:///{tmp_path}/h.db"))
    ended: list[str] = []

    async def breaks(_: App) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise StoreUnavailableError("gone at the end")

    async def ends(_: App) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    client.app.background[:0] = [breaks, ends]
    client.post(event("START", 0))
    client.close()
    assert ended == ["ended"]
    assert "gone at the end" in caplog.text
    with pytest.raises(Exception, match="closed"):
        client.store.connection.all("SELECT 1 FROM head")
