"""The server's own answers from the lake: a store of what a question depends on, asked like a server.

The lake has no questions of its own. The events that an answer can depend on go into a store of a
server, by the server's own projection, and the server's own routes answer: what both have, both say.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

import httpx

from headwater.errors import UsageError
from headwater.lake.projection import replay
from headwater.lake.records import UNLIMITED
from headwater.lake.selection import LakeEstate, UseSource
from headwater.server.app import App, ServerSettings
from headwater.server.history import past_question
from headwater.server.http import HttpError, Request
from headwater.server.store import open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from headwater.lake.projection import LogRecord
    from headwater.lake.selection import LakeAlias, Name, Span
    from headwater.server.history import PastQuestion

__all__ = ["NEVER", "LakeSource", "Scratch", "Wanted", "answer", "select", "wanted_by"]

NEVER = 2**62


class LakeSource(UseSource, Protocol):
    """What has to be read of a lake to answer a question."""

    def aliases(self) -> Iterable[LakeAlias]:
        """Which names stand for one thing."""
        ...

    def parents(self) -> Iterable[tuple[str, str]]:
        """The nodes whose runs name a run of another as their parent, each with that other."""
        ...

    def reporting(self, since: int, until: int) -> set[str]:
        """The nodes with events or commands of a period."""
        ...

    def records(self, nodes: Collection[str], most: int | None = None) -> Iterable[LogRecord]:
        """The records of some nodes and the commands of no node, each once, as they arrived."""
        ...


class Wanted(NamedTuple):
    """What a question is about."""

    dataset: str = ""
    """As a person types it; empty for the whole estate, or where a node is given."""
    direction: str = "around"
    """`up` for what leads to it, `down` for what it leads to, `both`, or `around` for what is beside too."""
    moments: tuple[Span | None, ...] = (None,)
    """When edges are followed; None for now."""
    depth: int = 50
    period: Span | None = None
    """Of the whole estate, what reported something then."""
    node: str = ""
    """The id of a dataset, a job or a column."""
    programs: bool = False
    """Whether the answer shows jobs with the application that runs them."""


def wanted_by(question: PastQuestion) -> Wanted:
    """What the lake is read for, by what a request to a server asks."""
    return Wanted(
        direction=question.direction,
        moments=question.moments,
        depth=question.depth,
        period=question.period,
        node=question.node,
        programs=question.programs,
    )


def select(source: LakeSource, wanted: Wanted) -> set[str]:
    """The nodes whose records the answer to a question can depend on."""
    estate = LakeEstate(source, source.aliases())
    parents = list(source.parents()) if wanted.programs else []
    datasets: set[Name] = set()
    nodes: set[str] = set()
    if wanted.dataset or wanted.node:
        start = estate.at_node(wanted.node) if wanted.node else estate.called(wanted.dataset)
        if wanted.node.startswith("job:"):
            # What lies around an application lies around what it runs.
            asked = estate.shown_as_one(wanted.node)
            nodes = asked | {child for child, parent in parents if parent in asked}
            start |= estate.touched_by(nodes)
        for during in wanted.moments:
            # One job further: the columns of what a job touches are part of the answer about it.
            datasets |= estate.walk(start, wanted.direction, during, wanted.depth + 1)
    else:
        # Of the whole estate at a moment, everything that had reported until then.
        nodes = source.reporting(*(wanted.period or (0, max(_last(one) for one in wanted.moments))))
        datasets = estate.touched_by(nodes)
    found = nodes | estate.reporters(datasets)
    above = {parent for child, parent in parents if child in found}
    return found.union(*map(estate.shown_as_one, above))


def _last(during: Span | None) -> int:
    return NEVER if during is None else during[1]


class Scratch:
    """A server's store of some records, and the server's routes over it."""

    def __init__(self, records: Iterable[LogRecord]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-lake-")
        self._store = open_store(
            f"sqlite:///{Path(self._folder.name) / 'scratch.db'}", limits=UNLIMITED
        )
        try:
            self._store.begin()
            replay(self._store, records)
            self._store.connection.commit()
        except BaseException:
            self._store.close()
            self._folder.cleanup()
            raise
        self.app = App(self._store, ServerSettings(page=False))

    def get(self, path: str, query: Mapping[str, str]) -> httpx.Response:
        """What a server with these records answers."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1"
            ) as client:
                return await client.get(path, params=dict(query))

        return asyncio.run(ask())

    def close(self) -> None:
        """Let go of the store."""
        asyncio.run(self.app.close())
        self._folder.cleanup()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer(source: LakeSource, target: str) -> httpx.Response:
    """What a server with the whole lake says to GET PATH?QUERY about the past; raises UsageError."""
    parts = urlsplit(target)
    scope = {
        "method": "GET",
        "path": parts.path,
        "query_string": parts.query.encode(),
        "headers": [],
    }
    with Scratch(()) as empty:
        try:
            request = Request(scope)
            question = past_question(empty.app.router.find(request).declared, request)
        except HttpError as error:
            raise UsageError(f"{target}: {error}") from None
    if question is None:
        raise UsageError(
            f"{target} asks nothing about the past",
            hint="give at=, or from= and to=, of a question",
        )
    with Scratch(source.records(select(source, wanted_by(question)))) as scratch:
        return scratch.get(parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)))
