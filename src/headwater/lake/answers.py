"""The server's own answers from the lake: a store of what a question depends on, asked like a server.

The lake has no questions of its own. The events that an answer can depend on go into a store of a
server, by the server's own projection, and the server's own routes answer: what both have, both say.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import httpx

from headwater.lake.projection import replay
from headwater.lake.records import UNLIMITED
from headwater.lake.selection import LakeEstate
from headwater.server.app import App, ServerSettings
from headwater.server.store import open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from headwater.lake.projection import LogRecord
    from headwater.lake.selection import LakeAlias, Name, Use

__all__ = ["LakeSource", "Scratch", "Wanted", "select"]


class LakeSource(Protocol):
    """What has to be read of a lake to answer a question."""

    def uses(self) -> Iterable[Use]:
        """Who touched which dataset, and when."""
        ...

    def named(self) -> Iterable[tuple[str, Name]]:
        """Who ever named which dataset."""
        ...

    def aliases(self) -> Iterable[LakeAlias]:
        """Which names stand for one thing."""
        ...

    def reporting(self, since: int, until: int) -> set[str]:
        """The nodes with events or commands of a period."""
        ...

    def records(self, nodes: Collection[str]) -> Iterable[LogRecord]:
        """The records of some nodes and the commands of no node, each once, as they arrived."""
        ...


class Wanted(NamedTuple):
    """What a question is about."""

    dataset: str = ""
    """As a person types it; empty for the whole estate."""
    direction: str = "around"
    """`up` for what leads to it, `down` for what it leads to, `around` for both and what is beside it."""
    moments: tuple[int | None, ...] = (None,)
    depth: int = 50
    period: tuple[int, int] | None = None


def select(source: LakeSource, wanted: Wanted) -> set[str]:
    """The nodes whose records the answer to a question can depend on."""
    estate = LakeEstate(source.uses(), source.named(), source.aliases())
    datasets: set[Name] = set()
    nodes: set[str] = set()
    if wanted.dataset:
        start = estate.called(wanted.dataset)
        for at in wanted.moments:
            # One job further: the columns of what a job touches are part of the answer about it.
            datasets |= estate.walk(start, wanted.direction, at, wanted.depth + 1)
    elif wanted.period is not None:
        nodes = source.reporting(*wanted.period)
        datasets = estate.touched_by(nodes)
    return nodes | estate.reporters(datasets)


class Scratch:
    """A server's store of some records, and the server's routes over it."""

    def __init__(self, records: Iterable[LogRecord]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-lake-")
        self._store = open_store(
            f"sqlite:///{Path(self._folder.name) / 'scratch.db'}", limits=UNLIMITED
        )
        self._store.begin()
        replay(self._store, records)
        self._store.connection.commit()
        self._app = App(self._store, ServerSettings(page=False))

    def get(self, path: str, query: Mapping[str, str]) -> httpx.Response:
        """What a server with these records answers."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1"
            ) as client:
                return await client.get(path, params=dict(query))

        return asyncio.run(ask())

    def close(self) -> None:
        """Let go of the store."""
        asyncio.run(self._app.close())
        self._folder.cleanup()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
