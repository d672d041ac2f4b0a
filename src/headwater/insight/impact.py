"""Who is hit when a dataset changes: job by job and column by column, and what is unknown.

A change spreads from column to column through the jobs that read them. A column on the way is
*carried* (it is dropped, renamed or retyped there too), *changed* (it is derived by a job that the
change reaches), or *unknown*; and of a dataset the change may decide which *rows* there are. Every
such finding is a node, and what is hit is what one walk from the changed column reaches.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol

from headwater.lineage.columns import WHOLE, part_of, wholes
from headwater.lineage.graph import Direction, N, walk
from headwater.lineage.model import NULL_TEST_ONLY
from headwater.lineage.schema import holds_nothing, same_family, widens

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from headwater.lineage.graph import Pairs, Step
    from headwater.lineage.model import Transformation
    from headwater.lineage.schema import SchemaChange

__all__ = [
    "ColumnReaders",
    "ColumnUse",
    "Effect",
    "Impact",
    "Leg",
    "Passage",
    "PlannedChange",
    "Struck",
    "StruckColumn",
    "impact",
    "planned_change",
]

ChangeKind = Literal["drop", "rename", "type", "nullable", "delete"]
CHANGE_MEMBERS: dict[ChangeKind, tuple[str, ...]] = {
    "drop": ("column",),
    "rename": ("column", "to"),
    "type": ("column", "to"),
    "delete": (),
}
"""The kinds of changes that can be asked about, and what each has besides."""
_VALUES = ("CONDITIONAL", "WINDOW", "SORT")
"""INDIRECT transformations that decide a column's value where they stand at that column."""


class Effect(str, Enum):
    """What a change does to a job, a column or the rows of a dataset; the worst first.

    What is unknown may break, so that it is worse than all but a break that is sure.
    """

    BREAKS = "breaks"
    UNKNOWN = "unknown"
    CHANGES = "changes"
    ROWS = "rows"
    CARRIES = "carries"
    UNAFFECTED = "unaffected"


_RANK = {effect: rank for rank, effect in enumerate(Effect)}


class PlannedChange(NamedTuple):
    """One change of a dataset: of a column, or with `delete` of the whole.

    `to` is the new name or the new type, `old` the type before, where it is known.
    """

    kind: ChangeKind
    column: str = ""
    to: str = ""
    old: str = ""


def planned_change(one: SchemaChange) -> PlannedChange | None:
    """A difference between two schemas as a change to judge; None if nobody can be hit by it."""
    if one.kind == "removed":
        return PlannedChange("drop", one.path, "", one.old)
    if one.kind in ("renamed", "moved"):
        return PlannedChange("rename", one.old, one.new)
    if one.kind == "type":
        return PlannedChange("type", one.path, one.new, one.old)
    if one.kind == "nullability" and one.new == "nullable":
        return PlannedChange("nullable", one.path)
    return None


class ColumnUse(NamedTuple):
    """One column that a job reads, and the column of its output that it enters, or `WHOLE`."""

    column: str
    output: str
    transformations: tuple[Transformation, ...] = ()


@dataclass(frozen=True)
class Passage(Generic[N]):
    """What a job does with the columns of one dataset on their way into one of its outputs.

    `target` is None for a job that reads and writes nothing. `uses` is None while the columns of
    the pair are not known; `unknown` are the columns of the output whose sources are not, and
    `trimmed`: uses may be missing. With `by_schema` the job hands on whatever columns a
    record has, except that it names those in `named`; otherwise every use names its column. Of a
    topic, `value` and `key` are its records as a whole.
    """

    job: N
    origin: N
    target: N | None
    uses: tuple[ColumnUse, ...] | None = None
    unknown: tuple[str, ...] = ()
    trimmed: bool = False
    by_schema: bool = False
    named: frozenset[str] = frozenset()
    from_topic: bool = False
    to_topic: bool = False


class ColumnReaders(Protocol[N]):
    """A graph that knows what its jobs do with the columns they read."""

    def passages(self, datasets: Collection[N]) -> Iterable[Passage[N]]:
        """What every job that reads one of these datasets does with its columns."""
        ...

    def types(self, datasets: Collection[N]) -> Mapping[N, Mapping[str, str]]:
        """The types of their columns, as far as they are known."""
        ...


@dataclass(frozen=True)
class Leg(Generic[N]):
    """One step of a path: a column (or a whole dataset, without a name) that a job reads."""

    dataset: N
    column: str
    job: N
    target: N | None
    transformations: tuple[Transformation, ...]


@dataclass(frozen=True)
class Struck(Generic[N]):
    """A job that a change reaches: how, why, and on which path, nearest leg first."""

    job: N
    effect: Effect
    change: PlannedChange
    why: str
    path: tuple[Leg[N], ...]


@dataclass(frozen=True)
class StruckColumn(Generic[N]):
    """A column that a change reaches; without a name, the dataset as a whole or its rows."""

    dataset: N
    column: str
    effect: Effect
    change: PlannedChange


@dataclass(frozen=True)
class Impact(Generic[N]):
    """Who is hit: each job once, by the worst effect on it; and how much of it is known.

    `jobs` are all jobs that read a dataset on the way, `known` those of them whose columns are
    known, and `blind` the others. With `cut` there is more behind than was looked at.
    """

    struck: tuple[Struck[N], ...] = ()
    columns: tuple[StruckColumn[N], ...] = ()
    unaffected: tuple[N, ...] = ()
    jobs: int = 0
    known: int = 0
    cut: bool = False
    blind: tuple[N, ...] = ()

    def of(self, effect: Effect) -> tuple[Struck[N], ...]:
        """The jobs with this effect."""
        return tuple(one for one in self.struck if one.effect is effect)


_Node = tuple[Effect, N, str, str]
"""A finding: what holds of a column (or of a dataset, without a name), and its new type."""


class _Outcome(NamedTuple):
    """What comes of a column at a job: the effect on the job and why, and what it is behind it."""

    effect: Effect
    why: str
    behind: Effect


@dataclass
class _Spread(Generic[N]):
    """The findings of one change as a graph: from each to those that follow from it."""

    estate: ColumnReaders[N]
    change: PlannedChange
    readers: dict[N, list[Passage[N]]]
    types: dict[N, Mapping[str, str]]
    hits: dict[N, list[tuple[_Outcome, Leg[N], _Node[N]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    legs: dict[tuple[_Node[N], _Node[N]], Leg[N]] = field(default_factory=dict)

    def pairs(self, nodes: Collection[_Node[N]]) -> Mapping[_Node[N], Pairs[_Node[N]]]:
        """None: a finding leads to each that follows from it."""
        return {}

    def next(
        self, nodes: Collection[_Node[N]], direction: Direction | None
    ) -> Iterator[Step[_Node[N]]]:
        """What follows from these findings; only downstream is known."""
        self._load({node[1] for node in nodes})
        for node in nodes:
            for passage in self.readers[node[1]]:
                for far in self._through(node, passage):
                    yield node, far, True

    def _load(self, datasets: set[N]) -> None:
        missing = datasets - self.readers.keys()
        if missing:
            self.readers.update((dataset, []) for dataset in missing)
            for passage in self.estate.passages(missing):
                self.readers[passage.origin].append(passage)
        if self.change.kind == "type":
            targets = {one.target for dataset in datasets for one in self.readers[dataset]}
            wanted = {one for one in (*datasets, *targets) if one is not None} - self.types.keys()
            self.types.update((dataset, {}) for dataset in wanted)
            self.types.update(self.estate.types(wanted))

    def _through(self, node: _Node[N], passage: Passage[N]) -> Iterator[_Node[N]]:
        state, _, column, _ = node
        if state is Effect.CARRIES and self.change.kind == "delete":
            yield from self._hit(node, passage, _deleted(Effect.UNAFFECTED))
        if state is Effect.ROWS:
            why = "which of its rows there are depends on the change"
            yield from self._hit(node, passage, _Outcome(Effect.ROWS, why, Effect.ROWS))
        elif passage.uses is None:
            yield from self._unseen(node, passage)
        elif state is Effect.UNKNOWN and not column:
            yield from self._hit(node, passage, _behind_unknown())
        else:
            for use in passage.uses:
                rest = _below(use.column, column, topic=passage.from_topic)
                if rest is not None:
                    for part in _parts(use):
                        yield from self._used(node, passage, part, rest, use.transformations)
            if passage.trimmed:
                why = "its event was too large, and columns were left out of it"
                yield from self._hit(node, passage, _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN))
            for output in passage.unknown:
                why = f"it is not known what its column {output} is made of"
                outcome = _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN)
                yield from self._hit(node, passage, outcome, ColumnUse(column, output))

    def _used(
        self,
        node: _Node[N],
        passage: Passage[N],
        use: ColumnUse,
        rest: str,
        steps: tuple[Transformation, ...],
    ) -> Iterator[_Node[N]]:
        """What follows where a column is used in one way, of all the steps that it takes."""
        if rest and node[0] is Effect.CARRIES and _tests_for_null(use):
            return  # a record is not null for what becomes of a column in it
        inside = part_of(use.output, rest, topic=passage.to_topic) if rest else use.output
        part = ColumnUse(node[2], inside, use.transformations) if rest else use
        outcome = self._outcome(node, passage, use, part)
        if outcome is None:
            return
        if outcome.behind is Effect.CARRIES:
            use = use._replace(output=inside)
        yield from self._hit(node, passage, outcome, use, steps)

    def _unseen(self, node: _Node[N], passage: Passage[N]) -> Iterator[_Node[N]]:
        """A job of which no columns are known: only that of a deleted dataset is sure."""
        if self.change.kind == "delete" and node[0] is Effect.CARRIES:
            yield from self._hit(node, passage, _deleted(Effect.UNKNOWN))
        elif passage.target is None:
            why = "it reads the dataset and nobody knows which columns"
            yield from self._hit(node, passage, _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN))
        else:
            why = "it has no column lineage"
            yield from self._hit(node, passage, _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN))

    def _outcome(
        self, node: _Node[N], passage: Passage[N], use: ColumnUse, part: ColumnUse
    ) -> _Outcome | None:
        """What comes of a column at a job that uses it, or the whole that it is part of."""
        state, whole = node[0], part is not use
        if state is Effect.UNKNOWN:
            return _behind_unknown()
        if state is Effect.CHANGES:
            why = f"it reads {use.column}, which changes"
            return _Outcome(Effect.CHANGES, why, Effect.CHANGES)
        if self.change.kind == "delete":
            return _deleted(Effect.CHANGES)
        if passage.by_schema:
            if _is_named(passage.named, use.column, node[2]):
                return self._named(node, passage, part)
            return _Outcome(Effect.CARRIES, "it hands on what records hold", Effect.CARRIES)
        if whole and _identity(use):
            return _Outcome(Effect.CARRIES, f"it hands on {use.column} as a whole", Effect.CARRIES)
        if whole and all(step.type == "INDIRECT" for step in use.transformations):
            why = f"it decides by {use.column} as a whole"
            return _Outcome(Effect.ROWS, why, Effect.CHANGES)
        if whole:
            why = f"it works on {use.column} as a whole"
            return _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN)
        return self._named(node, passage, use)

    def _named(self, node: _Node[N], passage: Passage[N], use: ColumnUse) -> _Outcome | None:
        """What comes of a column at a job that names it; None if the job does not care."""
        if self.change.kind == "nullable" and _tests_for_null(use):
            why = f"it tests {use.column} for null, which it may be from now on"
            return _Outcome(Effect.ROWS, why, Effect.ROWS)
        if self.change.kind == "nullable":
            why = f"it names {use.column}, and whether it bears missing values is not known"
            return _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN)
        new = _new_type(node, use)
        if self.change.kind != "type" or new == _GONE:
            return _Outcome(Effect.BREAKS, f"it names {use.column}", Effect.CHANGES)
        if _tests_for_null(use):
            return None
        old = self.types.get(passage.origin, {}).get(use.column, "")
        made = self.types.get(passage.target, {}).get(use.output, "") if passage.target else ""
        fits = _fits(new, old, made, use)
        if fits is None:
            why = f"it names {use.column}, and whether the new type fits is not known"
            return _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN)
        if fits:
            why = f"it names {use.column}, and {new} fits its use"
            return _Outcome(Effect.CHANGES, why, Effect.CHANGES)
        into = f" into {use.output} ({made})" if made and _identity(use) else ""
        why = f"it uses {use.column} as {old}{into}, which {new} does not fit"
        return _Outcome(Effect.BREAKS, why, Effect.CHANGES)

    def _hit(
        self,
        node: _Node[N],
        passage: Passage[N],
        outcome: _Outcome,
        use: ColumnUse | None = None,
        steps: tuple[Transformation, ...] = (),
    ) -> Iterator[_Node[N]]:
        """Note what happens to a job, and give what that means for its output."""
        leg = Leg(
            passage.origin, use.column if use else node[2], passage.job, passage.target, steps
        )
        self.hits[passage.job].append((outcome, leg, node))
        target = passage.target
        if target is None or outcome.behind is Effect.UNAFFECTED:
            return
        behind, column = outcome.behind, use.output if use else ""
        if use is not None and _decides_rows(use):
            # Of a column that nobody can judge, nor can anybody tell which rows there are then.
            decided = Effect.UNKNOWN if behind is Effect.UNKNOWN else Effect.ROWS
            far: _Node[N] = (decided, target, "", "")
            self.legs.setdefault((node, far), leg)
            yield far
            if not _direct(use):
                return
        column = "" if column == WHOLE or behind is Effect.ROWS else column
        if use is not None and not column and behind is not Effect.UNKNOWN:
            return
        far = (behind, target, column, self._carried(node, passage, use, behind))
        self.legs.setdefault((node, far), leg)
        yield far

    def _carried(
        self, node: _Node[N], passage: Passage[N], use: ColumnUse | None, behind: Effect
    ) -> str:
        """The type that a carried column has then: the new one, where it had the same before."""
        if use is None or behind is not Effect.CARRIES or not node[3] or passage.target is None:
            return ""
        kind = _new_type(node, use)
        if kind in (_GONE, _UNTYPED):
            return kind
        old = self.types.get(passage.origin, {}).get(node[2], "")
        made = self.types.get(passage.target, {}).get(use.output, "")
        return kind if old and made and widens(old, made) and widens(made, old) else _UNTYPED


_UNTYPED = "?"
_GONE = "-"
"""The type of what was part of a column whose new type holds nothing."""
_CUT = "the answer was cut before all that may reach it was looked at"


def _deleted(behind: Effect) -> _Outcome:
    return _Outcome(Effect.BREAKS, "it reads the dataset", behind)


def _behind_unknown() -> _Outcome:
    why = "it is behind a job that nobody can judge"
    return _Outcome(Effect.UNKNOWN, why, Effect.UNKNOWN)


def _below(used: str, column: str, *, topic: bool) -> str | None:
    """The path from a used column down to another: none if it is that or inside it.

    None where the two have nothing to do with each other.
    """
    if used == column or not column or used.startswith(f"{column}."):
        return ""
    return wholes(column, topic=topic).get(used)


def _parts(use: ColumnUse) -> Iterable[ColumnUse]:
    """A use by each way in which it takes its column, to be judged one by one.

    One that also decides about rows is then never judged milder than the copy alone would be.
    """
    if len(use.transformations) < 2:
        return (use,)
    ways: dict[tuple[bool, ...], list[Transformation]] = defaultdict(list)
    for step in use.transformations:
        indirect = step.type == "INDIRECT"
        null = indirect and step.description == NULL_TEST_ONLY
        ways[indirect, null, step.subtype in (_VALUES if indirect else ("IDENTITY",))].append(step)
    return [ColumnUse(use.column, use.output, tuple(steps)) for steps in ways.values()]


def _new_type(node: _Node[N], use: ColumnUse) -> str:
    """The type that what is used has then: of a part of a retyped column it may not be known."""
    _, _, column, kind = node
    if not kind or not use.column.startswith(f"{column}."):
        return kind
    return _GONE if kind == _GONE or holds_nothing(kind) else _UNTYPED


def _is_named(named: frozenset[str], used: str, column: str) -> bool:
    """Whether a connector names what it uses, what changes, or something inside of that."""
    return not named.isdisjoint((used, column)) or any(
        name.startswith(f"{column}.") for name in named
    )


def _identity(use: ColumnUse) -> bool:
    return bool(use.transformations) and all(
        step.type != "INDIRECT" and step.subtype == "IDENTITY" for step in use.transformations
    )


def _tests_for_null(use: ColumnUse) -> bool:
    return bool(use.transformations) and all(
        step.type == "INDIRECT" and step.description == NULL_TEST_ONLY
        for step in use.transformations
    )


def _direct(use: ColumnUse) -> bool:
    """Whether the column, or a decision by it, enters the value of the output column."""
    if use.output == WHOLE:
        return False
    return not use.transformations or any(
        step.type != "INDIRECT" or step.subtype in _VALUES for step in use.transformations
    )


def _decides_rows(use: ColumnUse) -> bool:
    return use.output == WHOLE or any(
        step.type == "INDIRECT" and step.subtype not in _VALUES for step in use.transformations
    )


def _fits(new: str, old: str, made: str, use: ColumnUse) -> bool | None:
    """Whether a use survives a new type of its column; None if too little is known."""
    if new in ("", _UNTYPED):
        return None
    if _identity(use):
        return widens(new, made) if made else None
    if old and widens(old, new):
        return True
    return same_family(old, new) if old else None


def impact(
    estate: ColumnReaders[N],
    dataset: N,
    changes: Iterable[PlannedChange],
    *,
    depth: int = 50,
    limit: int = 5_000,
    more: bool = False,
) -> Impact[N]:
    """Whom these changes of a dataset hit, directly or behind others, at most `limit` findings.

    Where something is left out, no job is called unaffected: it is unknown then. With `more`, these
    are not all changes.
    """
    readers: dict[N, list[Passage[N]]] = {}
    types: dict[N, Mapping[str, str]] = {}
    best: dict[N, Struck[N]] = {}
    columns: dict[tuple[N, str], StruckColumn[N]] = {}
    wanted, cut = tuple(changes), more
    for change in wanted:
        spread = _Spread(estate, change, readers, types)
        start: _Node[N] = (
            Effect.CARRIES,
            dataset,
            change.column,
            change.to if change.kind == "type" else "",
        )
        found = walk(spread, [start], Direction.DOWNSTREAM, depth=depth, limit=max(1, limit))
        limit -= len(found.distance)
        cut = cut or found.cut or bool(found.ahead)
        came = {far: near for near, far, _ in reversed(found.steps)}
        for job, hits in spread.hits.items():
            for outcome, leg, node in hits:
                if job in best and _RANK[best[job].effect] <= _RANK[outcome.effect]:
                    continue
                path = (*_path(node, start, came, spread), leg)
                best[job] = Struck(job, outcome.effect, change, outcome.why, path)
        for effect, where, column, _ in found.distance:
            key = where, column if effect is not Effect.ROWS else WHOLE
            if key not in columns or _RANK[effect] < _RANK[columns[key].effect]:
                columns[key] = StruckColumn(where, column, effect, change)
    carried = {one.dataset for one in columns.values() if one.effect is Effect.CARRIES}
    types |= estate.types(carried - types.keys())
    # What a record holds that is handed on as a whole is no column of what holds it then.
    columns = {key: one for key, one in columns.items() if not _lacks(types, one)}
    return _answer(readers, best, columns, dataset, wanted, cut=cut)


def _lacks(types: Mapping[N, Mapping[str, str]], one: StruckColumn[N]) -> bool:
    """Whether the columns of a dataset are known, and a carried one is none of them."""
    known = types.get(one.dataset)
    return bool(one.effect is Effect.CARRIES and one.column and known) and one.column not in (
        known or ()
    )


def _path(
    node: _Node[N], start: _Node[N], came: Mapping[_Node[N], _Node[N]], spread: _Spread[N]
) -> tuple[Leg[N], ...]:
    legs: list[Leg[N]] = []
    while node != start:
        near = came[node]
        legs.append(spread.legs[near, node])
        node = near
    return tuple(reversed(legs))


def _answer(
    readers: Mapping[N, list[Passage[N]]],
    best: dict[N, Struck[N]],
    columns: Mapping[tuple[N, str], StruckColumn[N]],
    dataset: N,
    changes: tuple[PlannedChange, ...],
    *,
    cut: bool,
) -> Impact[N]:
    passages = [passage for some in readers.values() for passage in some]
    jobs = {passage.job for passage in passages}
    blind = {passage.job for passage in passages if passage.uses is None or passage.trimmed}
    rest = sorted(jobs - best.keys())
    if cut:
        best |= {job: Struck(job, Effect.UNKNOWN, changes[0], _CUT, ()) for job in rest}
        rest = []
    asked = {(dataset, change.column) for change in changes}
    struck = sorted(best.values(), key=lambda one: (_RANK[one.effect], len(one.path), one.job))
    return Impact(
        tuple(struck),
        tuple(
            one
            for one in columns.values()
            if (one.dataset, one.column) not in asked or one.effect is not Effect.CARRIES
        ),
        tuple(rest),
        len(jobs),
        len(jobs - blind),
        cut,
        tuple(sorted(blind)),
    )
