"""What a dataset was made of and who had it: by hand on a small estate, cut answers too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.insight import RunUse, audit
from headwater.lineage.graph import MemoryGraph

from .nodes import Node, dataset, job

if TYPE_CHECKING:
    from collections.abc import Collection

RAW, OTHER, BRONZE, SIDE, SILVER, SHEET = map(
    dataset, ("raw", "other", "bronze", "side", "silver", "sheet")
)
INGEST, CLEAN, EXPORT = map(job, ("ingest", "clean", "export"))
EDGES = [
    (RAW, INGEST), (OTHER, INGEST), (INGEST, BRONZE), (INGEST, SIDE), (BRONZE, CLEAN),
    (CLEAN, SILVER), (SILVER, EXPORT), (EXPORT, SHEET),
]  # fmt: skip
PAIRS = {
    INGEST: {BRONZE: frozenset({RAW}), SIDE: frozenset({OTHER})},
}


class Recorded:
    """Runs written down by hand, and what was asked for."""

    def __init__(self, *, cut: bool = False) -> None:
        self.asked: dict[bool, set[tuple[Node, Node]]] = {}
        self._cut = cut

    def runs(
        self, uses: Collection[tuple[Node, Node]], *, writing: bool
    ) -> tuple[dict[Node, list[RunUse]], bool]:
        self.asked[writing] = set(uses)
        return {name: [RunUse(1, 5, 9)] for name, _ in uses if name != EXPORT}, self._cut


def test_a_dataset_has_its_sources_its_writers_and_its_readers() -> None:
    records = Recorded()
    found = audit(MemoryGraph(EDGES, PAIRS), records, SILVER, depth=9, limit=99)
    assert found.sources == (RAW,)
    assert dict(found.upstream) == {SILVER: 0, BRONZE: 1, RAW: 2}
    assert [(one.job, one.distance, one.runs) for one in found.writers] == [
        (CLEAN, 1, (RunUse(1, 5, 9),)),
        (INGEST, 2, (RunUse(1, 5, 9),)),
    ]
    assert [(one.inputs, one.outputs) for one in found.writers] == [
        ((BRONZE,), (SILVER,)),
        ((RAW,), (BRONZE,)),
    ]
    assert [(one.job, one.distance, one.runs) for one in found.readers] == [(EXPORT, 1, ())]
    assert dict(found.downstream) == {SHEET: 1}
    # Only runs that wrote what went into it, and runs that read what came of it.
    assert records.asked == {
        True: {(CLEAN, SILVER), (INGEST, BRONZE)},
        False: {(EXPORT, SILVER)},
    }
    assert not found.cut


def test_what_is_cut_is_no_source() -> None:
    graph = MemoryGraph(EDGES, PAIRS)
    near = audit(graph, Recorded(), SILVER, depth=1, limit=99)
    assert (near.sources, near.cut) == ((), True)
    assert audit(graph, Recorded(), SILVER, depth=9, limit=3).cut
    assert audit(graph, Recorded(cut=True), SILVER, depth=9, limit=99).cut


def test_a_dataset_that_nobody_writes_has_no_source_that_is_known() -> None:
    found = audit(MemoryGraph(EDGES, PAIRS), Recorded(), RAW, depth=9, limit=99)
    assert (found.sources, found.writers) == ((), ())
    assert [one.job for one in found.readers] == [INGEST, CLEAN, EXPORT]
    assert SIDE not in found.downstream
