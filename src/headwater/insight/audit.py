"""What a dataset was made of in a period: where it came from, by which runs, and who had it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol

from headwater.lineage.graph import Direction, MemoryGraph, N, NodeKind, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from headwater.lineage.graph import Graph, Pairs, Walk

__all__ = ["Audit", "AuditedJob", "Records", "RunUse", "Use", "audit", "through"]


Use = tuple[N, N]
"""A job, and a dataset that it writes or reads."""


class RunUse(NamedTuple):
    """A run by its number, and when it used what it was asked about."""

    run: int
    since: int
    until: int | None


class Records(Protocol[N]):
    """What was recorded of jobs in a period."""

    def runs(
        self, uses: Collection[Use[N]], *, writing: bool
    ) -> tuple[Mapping[N, Sequence[RunUse]], bool]:
        """The runs of jobs that wrote, or read, these datasets in the period, the newest first.

        Also whether some were left out because there are too many.
        """
        ...


@dataclass(frozen=True)
class AuditedJob(Generic[N]):
    """A job, how many jobs away it is, what it reads and writes on the way, and its runs."""

    job: N
    distance: int
    inputs: tuple[N, ...]
    outputs: tuple[N, ...]
    runs: tuple[RunUse, ...]


@dataclass(frozen=True)
class Audit(Generic[N]):
    """The provenance of a dataset: datasets by how many jobs away they are, the nearest first."""

    sources: tuple[N, ...]
    """Where the data came from: other datasets, which no job is known to write."""
    upstream: Mapping[N, int]
    writers: tuple[AuditedJob[N], ...]
    downstream: Mapping[N, int]
    readers: tuple[AuditedJob[N], ...]
    cut: bool


def audit(graph: Graph[N], records: Records[N], dataset: N, *, depth: int, limit: int) -> Audit[N]:
    """All that a dataset was made of, and all that was made of it, with the runs that did it.

    `graph` and `records` are those of the period; `depth` counts jobs. A job stands on each side once.
    """
    sides = [
        walk(graph, [dataset], direction, depth=2 * depth, limit=limit)
        for direction in (Direction.UPSTREAM, Direction.DOWNSTREAM)
    ]
    up, down = sides
    written_by = sorted((origin, node) for origin, node in up.edges if _is_job(origin))
    read_by = sorted((node, origin) for origin, node in down.edges if _is_job(node))
    ran, some_cut = records.runs(written_by, writing=True)
    read, more_cut = records.runs(read_by, writing=False)
    written = {node for _, node in written_by}
    upstream = _datasets(up)
    # Nothing comes from itself; who writes what lies at the greatest depth was not asked for.
    others = written.union(up.ahead, [dataset])
    return Audit(
        tuple(node for node in upstream if node not in others),
        upstream,
        _jobs(up, ran),
        {node: far for node, far in _datasets(down).items() if node != dataset},
        _jobs(down, read),
        some_cut or more_cut or any(side.cut or side.ahead for side in sides),
    )


def through(
    carried: Mapping[tuple[tuple[int, str], tuple[int, str]], Collection[int]],
    writers: Iterable[tuple[int, int]] = (),
) -> MemoryGraph[tuple[str, int]]:
    """The jobs and datasets that values go through, by the jobs that carry one column into another.

    `writers` are jobs and the datasets that they write from nothing that is known.
    """
    job, dataset = NodeKind.JOB.value, NodeKind.DATASET.value
    edges = {((job, number), (dataset, root)) for number, root in writers}
    pairs: dict[tuple[str, int], Pairs[tuple[str, int]]] = {}
    for ((source, _), (target, _)), jobs in carried.items():
        origin, end = (dataset, source), (dataset, target)
        for number in jobs:
            edges |= {(origin, (job, number)), ((job, number), end)}
            feeds = pairs.setdefault((job, number), {})
            feeds[end] = feeds.get(end, frozenset()) | {origin}
    return MemoryGraph(edges, pairs)


def _is_job(node: N) -> bool:
    return bool(node[0] == NodeKind.JOB.value)


def _datasets(found: Walk[N]) -> dict[N, int]:
    return {node: far // 2 for node, far in found.distance.items() if not _is_job(node)}


def _jobs(found: Walk[N], runs: Mapping[N, Sequence[RunUse]]) -> tuple[AuditedJob[N], ...]:
    ends: dict[N, tuple[set[N], set[N]]] = defaultdict(lambda: (set(), set()))
    for origin, destination in found.edges:
        if _is_job(destination):
            ends[destination][0].add(origin)
        else:
            ends[origin][1].add(destination)
    return tuple(
        AuditedJob(
            node,
            (far + 1) // 2,
            tuple(sorted(ends[node][0])),
            tuple(sorted(ends[node][1])),
            tuple(runs.get(node, ())),
        )
        for node, far in found.distance.items()
        if _is_job(node)
    )
