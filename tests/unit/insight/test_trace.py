"""Which jobs carry a column from one dataset to another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import headwater.server.api
from headwater.insight import carriers

if TYPE_CHECKING:
    from collections.abc import Collection

ORDERS, SUPPLIERS, STATS, COPY = 1, 2, 3, 4


class Jobs:
    """Job 10 writes the statistics of orders and suppliers, 11 and 12 copy orders."""

    def carried(self, datasets: Collection[int]) -> list[tuple[int, int, int]]:
        rows = [
            (ORDERS, STATS, 10), (SUPPLIERS, STATS, 10), (ORDERS, COPY, 11), (ORDERS, COPY, 12),
        ]  # fmt: skip
        return [row for row in rows if row[1] in datasets]


def test_the_jobs_of_an_edge_are_those_that_carry_columns_between_its_datasets() -> None:
    total = ((ORDERS, "price"), (STATS, "total"))
    country = ((SUPPLIERS, "country"), (STATS, "country"))
    copied = ((ORDERS, "price"), (COPY, "price"))
    assert carriers(Jobs(), [total, country, copied]) == {
        total: {10},
        country: {10},
        copied: {11, 12},
    }


def test_an_edge_that_no_job_carries_has_none() -> None:
    edge = ((COPY, "price"), (STATS, "total"))
    assert carriers(Jobs(), [edge]) == {edge: frozenset()}


def test_the_api_reads_no_table_of_the_graph_itself() -> None:
    """Its lineage questions go through insight, its fetches through the store."""
    table = re.compile(r"\b(?:FROM|JOIN) (?:edge|column_link|column_map|fold)\b")
    api = Path(str(headwater.server.api.__file__)).parent
    found = [path.name for path in api.rglob("*.py") if table.search(path.read_text("utf-8"))]
    assert not found
