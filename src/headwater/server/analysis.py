"""Results of work on the whole estate, which somebody else does: the lake, with Spark.

The server has no lake of its own: whoever puts it together sets `App.analysis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["AnalysedColumn", "AnalysedComponent", "AnalysedDataset", "AnalysedEstate", "Analysis"]


class AnalysedDataset(NamedTuple):
    """What lies behind a dataset, and whether it is used."""

    namespace: str
    name: str
    component: int
    jobs: int
    datasets: int
    owners: int
    readers: int
    unused: bool
    columns: int
    unused_columns: int


class AnalysedColumn(NamedTuple):
    """What lies behind a column, and whether it is used; `unused` is None where nobody can tell."""

    field: str
    columns: int
    datasets: int
    jobs: int
    unused: bool | None


class AnalysedComponent(NamedTuple):
    """A part of the estate that no edge joins to the others; 1 is the largest."""

    component: int
    datasets: int
    jobs: int
    columns: int


class AnalysedEstate(NamedTuple):
    """All datasets, the moment that it holds for, and since when use was looked for; microseconds."""

    at: int
    since: int
    datasets: Sequence[AnalysedDataset]
    components: Sequence[AnalysedComponent] = ()
    """The largest first."""


class Analysis(Protocol):
    """Has the results of the last analysis."""

    def estate(self) -> AnalysedEstate | None:
        """The datasets; None while there was no analysis. Raises HttpError where it cannot be had."""
        ...

    def columns(self, names: Collection[tuple[str, str]]) -> list[AnalysedColumn]:
        """The columns of a dataset, which has one of these names there. Raises HttpError too."""
        ...
