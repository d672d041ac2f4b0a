"""The lake as a server's history: its records, read for one question and answered by the server's routes."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.lake.answers import Scratch, select, wanted_by
from headwater.lake.iceberg import FEW, TooManyRecordsError, open_lake
from headwater.server.http import HttpError

if TYPE_CHECKING:
    from headwater.lake.answers import LakeSource, Wanted
    from headwater.server.history import PastQuestion
    from headwater.server.http import Request, Response
    from headwater.server.store.read.namespace_limit import Limit

__all__ = ["LakeHistory"]

KEPT = 4
"""Stores of earlier questions that are kept: a page asks several about one moment."""
KEPT_SECONDS = 300.0
OLDER = "the moment is older than this server keeps"
NODES = FEW
"""Jobs and datasets whose events are read for one answer: of more, the whole lake would be."""
RECORDS = 250_000
"""Events that are read for one answer; all of them are in memory for a moment."""
LESS = "ask about one node, or with less depth"


class LakeHistory:
    """Answers about the past from the lake behind an address, one question after the other."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._kept: OrderedDict[Wanted, tuple[float, Scratch]] = OrderedDict()

    def answer(self, question: PastQuestion, request: Request, limit: Limit | None) -> Response:
        """The answer of the server's own route; raises HttpError."""
        wanted = wanted_by(question)
        return self._scratch(wanted).app.read(request, limit)

    def close(self) -> None:
        """Let go of the stores of earlier questions."""
        while self._kept:
            self._drop(next(iter(self._kept)))

    def renewed(self) -> LakeHistory:
        """Another one of the same lake, that has read nothing yet."""
        return LakeHistory(self._url)

    def _scratch(self, wanted: Wanted) -> Scratch:
        oldest = time.monotonic() - KEPT_SECONDS
        for old in [one for one, (made, _) in self._kept.items() if made < oldest]:
            self._drop(old)
        if wanted not in self._kept:
            scratch = self._read(wanted)
            self._kept[wanted] = (time.monotonic(), scratch)
            if len(self._kept) > KEPT:
                self._drop(next(iter(self._kept)))
        self._kept.move_to_end(wanted)
        return self._kept[wanted][1]

    def _drop(self, wanted: Wanted) -> None:
        self._kept.pop(wanted)[1].close()

    def _read(self, wanted: Wanted) -> Scratch:
        try:
            lake: LakeSource = open_lake(self._url)
            nodes = select(lake, wanted)
            if len(nodes) > NODES:
                raise HttpError(
                    422,
                    f"{OLDER}, and the answer depends on {len(nodes):,} jobs and datasets of the"
                    f" lake, where {NODES:,} are read at most: {LESS}",
                )
            return Scratch(lake.records(nodes, RECORDS))
        except TooManyRecordsError as error:
            raise HttpError(422, f"{OLDER}, and {error}: {LESS}") from None
        except HeadwaterError as error:
            raise HttpError(503, f"{OLDER}, and {error}") from None
