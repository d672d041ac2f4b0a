"""Why is a dataset not up to date: the nearest causes, the way each takes, and what changed before."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol

from headwater.insight.freshness import Freshness, JobGraph, freshness
from headwater.insight.trace import tree
from headwater.lineage.graph import N
from headwater.lineage.schema import Schema, diff

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from headwater.insight.trace import LineageTree
    from headwater.lineage.graph import Edge
    from headwater.lineage.schema import SchemaChange

__all__ = [
    "CauseKind", "ObservedChange", "ObservedGraph", "Reason", "Signal", "Why", "last_change", "why",
]  # fmt: skip

HOUR = 3_600_000_000
SHORTLY = HOUR
"""How long before a cause a change may be to be shown beside it."""
RECENT = 24 * HOUR
"""How long before the trouble a schema may have changed to be a cause of it."""
CLOCKS = 60_000_000
"""How far the clocks of two producers may be apart: so much later a change may still be a cause."""
CHANGES = 10


class CauseKind(str, Enum):
    """What is wrong, in the order in which causes are listed; the last two are no trouble."""

    FAILED = "failed"
    ABORTED = "aborted"
    LATE = "late"
    LAGGING = "lagging"
    SCHEMA = "schema"
    ENDED = "ended"
    QUALITY = "quality"
    PAUSED = "paused"
    STOPPED = "stopped"

    @property
    def planned(self) -> bool:
        """Whether somebody wanted it so."""
        return self in (CauseKind.PAUSED, CauseKind.STOPPED)


_ORDER = {kind: number for number, kind in enumerate(CauseKind)}


class Signal(NamedTuple):
    """Something observed on a job or a dataset beside the state of runs."""

    kind: CauseKind
    since: int
    detail: str


class ObservedChange(NamedTuple):
    """Something that became different at a moment."""

    time: int
    text: str


class ObservedGraph(JobGraph[N], Protocol[N]):
    """A graph that also knows what was observed on its nodes and how they changed."""

    def signals(self, nodes: Collection[N], since: int) -> Mapping[N, Sequence[Signal]]:
        """What is wrong with these nodes now, and how their schemas broke since a moment."""
        ...

    def changes(
        self, nodes: Collection[N], since: int, until: int, edges: Collection[Edge[N]]
    ) -> Mapping[N, Sequence[ObservedChange]]:
        """What became different about these nodes between two moments, the newest first.

        Of what jobs began to read and write, only these edges count. What is reported of a job for
        the first time is no change.
        """
        ...


@dataclass(frozen=True)
class Reason(Generic[N]):
    """A cause: where it is, since when, how it leads to the dataset, and what changed shortly before."""

    node: N
    kind: CauseKind
    since: int
    detail: str
    root: bool
    path: tuple[N, ...]
    changes: tuple[tuple[N, ObservedChange], ...] = ()
    by: str = ""
    """Who ended the run of a job, where that is known."""


@dataclass(frozen=True)
class Why(Generic[N]):
    """The verdict on a dataset, and what explains it."""

    freshness: Freshness[N]
    reasons: tuple[Reason[N], ...]
    cut: bool
    recent: tuple[tuple[N, ObservedChange], ...] = ()
    """Schemas that changed lately while nothing is wrong, the newest first."""


def why(
    graph: ObservedGraph[N], dataset: N, now: int, *, depth: int = 20, limit: int = 500
) -> Why[N]:
    """The causes upstream of a dataset, those that nothing further up explains first.

    Of those, the graver come first (`CauseKind`), then the nearer. What somebody paused or stopped is
    last: it explains why nothing comes, and is no trouble. A changed schema is a cause only beside
    something that is wrong.
    """
    verdict = freshness(graph, dataset, now, depth=depth, limit=limit)
    found = tree(graph, dataset, depth=depth, limit=limit)
    places: dict[N, int] = {}
    for place, row in enumerate(found.rows):
        if row.node not in places or row.level < found.rows[places[row.node]].level:
            places[row.node] = place
    reasons = [
        Reason(
            one.job,
            CauseKind(one.trouble.value),
            one.since,
            "",
            one.root,
            found.path(at),
            by=one.by,
        )
        for one in verdict.causes
        if (at := places.get(one.job)) is not None
    ]
    started = min((one.since for one in reasons), default=now)
    observed = graph.signals(list(places), started - RECENT)
    # A change that came along from further up at the same moment is that change.
    onward = {
        (far, signal.since)
        for node, signals in observed.items()
        for signal in signals
        if signal.kind is CauseKind.SCHEMA
        for far in found.path(places[node])[1:]
    }
    for node, signals in observed.items():
        path = found.path(places[node])
        for signal in signals:
            root = signal.kind is not CauseKind.SCHEMA or (node, signal.since) not in onward
            reasons.append(Reason(node, *signal, root, path))
    # What changed after all that is wrong had begun is not why.
    wrong = [one for one in reasons if not one.kind.planned and one.kind is not CauseKind.SCHEMA]
    last = max((one.since for one in wrong), default=now) + CLOCKS
    reasons = [one for one in reasons if one.kind is not CauseKind.SCHEMA or one.since <= last]
    # A change that nobody stumbled over is news, and explains nothing.
    recent: list[tuple[N, ObservedChange]] = []
    if all(one.kind.planned or one.kind is CauseKind.SCHEMA for one in reasons):
        harmless = [one for one in reasons if one.kind is CauseKind.SCHEMA]
        reasons = [one for one in reasons if one.kind is not CauseKind.SCHEMA]
        recent = [(one.node, ObservedChange(one.since, one.detail)) for one in harmless if one.root]
        recent.sort(key=lambda one: (-one[1].time, one[0]))
    reasons.sort(key=_rank)
    explained = tuple(_with_changes(graph, reason, found, places) for reason in reasons[:CHANGES])
    reached = explained + tuple(reasons[CHANGES:])
    return Why(verdict, reached, verdict.cut or found.cut, tuple(recent[:CHANGES]))


def _rank(reason: Reason[N]) -> tuple[bool, bool, int, int, int]:
    kind = reason.kind
    return kind.planned, not reason.root, _ORDER[kind], len(reason.path), reason.since


def _with_changes(
    graph: ObservedGraph[N], reason: Reason[N], found: LineageTree[N], places: Mapping[N, int]
) -> Reason[N]:
    """A reason with what changed shortly before on its way, and right before where it is."""
    above = {row.node for row in found.rows if row.parent == places[reason.node]}
    near = [*reason.path, *sorted(above - set(reason.path))]
    known = graph.changes(near, reason.since - SHORTLY, reason.since, found.edges)
    # A schema that changed is no change before itself.
    own = (reason.node, reason.since) if reason.kind is CauseKind.SCHEMA else None
    changes = [
        (node, change)
        for node, some in known.items()
        for change in some
        if (node, change.time) != own
    ]
    changes.sort(key=lambda one: (-one[1].time, one[0], one[1].text))
    return replace(reason, changes=tuple(changes[:CHANGES]))


def last_change(
    versions: Sequence[tuple[int, Schema]], column: str
) -> tuple[int, SchemaChange] | None:
    """When a column last became another one, of the versions of a schema from the newest on."""
    for (time, new), (_, old) in itertools.pairwise(versions):
        for change in diff(old, new):
            if change.path == column or column in (change.old, change.new):
                return time, change
    return None
