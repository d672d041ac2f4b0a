"""What `lake analyse` found, as a server and the command line show it: read without Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.lake.iceberg import open_lake
from headwater.server.http import HttpError

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.server.analysis import AnalysedColumn, AnalysedEstate

__all__ = ["LakeAnalysis"]

KEPT_SECONDS = 300.0


class LakeAnalysis:
    """The analysis in the lake behind an address; its datasets are kept for a while."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._kept: tuple[float, AnalysedEstate | None] | None = None

    def estate(self) -> AnalysedEstate | None:
        """The datasets; None while there was no analysis. Raises HttpError."""
        kept = self._kept
        if kept is None or time.monotonic() - kept[0] > KEPT_SECONDS:
            try:
                kept = self._kept = time.monotonic(), open_lake(self._url).analysed()
            except HeadwaterError as error:
                raise HttpError(503, str(error)) from None
        return kept[1]

    def columns(self, names: Collection[tuple[str, str]]) -> list[AnalysedColumn]:
        """The columns of a dataset, which has one of these names there. Raises HttpError."""
        try:
            return open_lake(self._url).analysed_columns(names)
        except HeadwaterError as error:
            raise HttpError(503, str(error)) from None
