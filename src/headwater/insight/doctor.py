"""The health of what is known: datasets under two names, and what else makes an answer doubtful."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol

from headwater.insight.dataset_pairs import Identity, same_datasets
from headwater.lineage.graph import N

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headwater.insight.dataset_pairs import JobUse, NameRules, Pair

__all__ = ["ClockGap", "Diagnosis", "Doubt", "DoubtKind", "Estate", "KnownJob", "LiveRun", "doctor"]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
AHEAD = MINUTE
"""Events from so far in the future come from a clock that is ahead."""
BEHIND = 5 * MINUTE
STEADY = MINUTE
"""How much the delay of a clock that is behind may vary; a queue's delay varies more."""
EVENTS = 5
PATIENCE = 3
RUNS = 3
"""Runs that are named of a job that is reported twice."""


class DoubtKind(str, Enum):
    """What makes answers doubtful, beside datasets under two names."""

    SCHEMA = "schema"
    EXTERNAL = "external file"
    ORPHAN = "orphan"
    NO_OUTPUTS = "no outputs"
    INFERRED = "inferred"
    SILENT = "silent"
    TWICE = "reported twice"
    CLOCK = "clock"
    REFUSED = "refused"
    ASSUMED = "assumed"


class LiveRun(NamedTuple):
    """A run of a stream that has not ended, and what it reads and writes."""

    run: str
    began: int
    last: int
    uses: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class KnownJob(Generic[N]):
    """A job, and what is known of how it reports."""

    node: N
    parent: bool = False
    """Whether other jobs report what it does."""
    action: bool = False
    """Whether it is one action of an application, or one test: it may be there to read alone."""
    inferred: int | None = None
    """When its newest run ended, if somebody else concluded that."""
    running: bool = False
    began: int | None = None
    """When its newest run did."""
    last: int | None = None
    usual: int | None = None
    live: tuple[LiveRun, ...] = ()
    """Of a stream that has several: its runs that have not ended."""


@dataclass(frozen=True)
class ClockGap(Generic[N]):
    """How long after their time the events of a job arrived, in microseconds."""

    job: N
    events: int
    least: int
    most: int


@dataclass(frozen=True)
class Doubt(Generic[N]):
    """Something that makes answers doubtful, where it is, and since when; `count` of what has no place."""

    kind: DoubtKind
    node: N | None
    text: str
    since: int | None = None
    count: int = 1


class Estate(Identity[N], Protocol[N]):
    """All that is known of an estate's datasets and jobs, as far as doctor looks at it."""

    def jobs(self) -> Sequence[KnownJob[N]]:
        """Every job."""
        ...

    def disagreements(self) -> Iterable[tuple[N, str, int]]:
        """Datasets whose schema producers disagree about, in which, and since when."""
        ...

    def external(self) -> Iterable[tuple[N, str]]:
        """Tables that are files elsewhere, and jobs that read such, where nobody says which file."""
        ...

    def clocks(self) -> Iterable[ClockGap[N]]:
        """How the newest events of each job came."""
        ...

    def counters(self) -> Iterable[tuple[DoubtKind, str, int]]:
        """How many events were refused, or read with an assumption, by reason."""
        ...


@dataclass(frozen=True)
class Diagnosis(Generic[N]):
    """What doctor found: pairs from the surest on, and doubts by kind."""

    pairs: tuple[Pair[N], ...]
    doubts: tuple[Doubt[N], ...]


def doctor(estate: Estate[N], now: int, rules: NameRules | None = None) -> Diagnosis[N]:
    """Datasets that are almost surely one, and whatever else makes answers about the estate doubtful."""
    pairs = same_datasets(estate, rules)
    used = [use for use in estate.uses() if use.now]
    doubts = [Doubt(DoubtKind.SCHEMA, *found) for found in estate.disagreements()]
    doubts += [Doubt(DoubtKind.EXTERNAL, *found) for found in estate.external()]
    doubts += _unused(estate, used, now)
    for job in estate.jobs():
        doubts += _of_job(job, now)
    for gap in estate.clocks():
        if text := _clock(gap):
            doubts.append(Doubt(DoubtKind.CLOCK, gap.job, text))
    doubts += [Doubt(kind, None, text, None, n) for kind, text, n in estate.counters()]
    return Diagnosis(tuple(pairs), tuple(doubts))


def _unused(estate: Estate[N], used: list[JobUse], now: int) -> Iterator[Doubt[N]]:
    """Datasets that no job uses, and jobs that write nothing.

    Applications and streams report what they write only when they do: a run of less than an hour is
    not judged while it lasts.
    """
    datasets = {use.dataset for use in used}
    for known in estate.datasets():
        if known.node not in datasets:
            yield Doubt(DoubtKind.ORPHAN, known.node, "no job reads or writes it")
    writers = {use.job for use in used if use.writes}
    readers = {use.job for use in used if not use.writes}
    for job in estate.jobs():
        begins = job.running and job.began is not None and now - job.began < HOUR
        if job.node not in writers and not job.parent and not begins:
            text = "it reads and writes nothing"
            if job.node in readers:
                if job.action:
                    continue
                text = "it reads, and nobody knows what it writes"
            yield Doubt(DoubtKind.NO_OUTPUTS, job.node, text)


def _twice(job: KnownJob[N]) -> Iterator[Doubt[N]]:
    """Runs of a stream that report the same at once: two agents, or two producers, report one job.

    A run that reported nothing since the next one began was left behind, and is no second report.
    """
    alike: dict[frozenset[tuple[int, int]], list[LiveRun]] = {}
    for run in sorted(job.live, key=lambda one: (one.began, one.run)):
        alike.setdefault(run.uses, []).append(run)
    for runs in alike.values():
        at_once = [run for run in runs if run.last >= runs[-1].began]
        if len(at_once) < 2:
            continue
        named = ", ".join(run.run for run in at_once[:RUNS])
        more = f" and {len(at_once) - RUNS} more" if len(at_once) > RUNS else ""
        text = (
            f"{len(at_once)} runs at once read and write the same: {named}{more}. If two agents report it,"
            " give both one state store, so that one stands by; headwater runs abort ends what is left"
        )
        yield Doubt(DoubtKind.TWICE, job.node, text, at_once[1].began)


def _of_job(job: KnownJob[N], now: int) -> Iterator[Doubt[N]]:
    yield from _twice(job)
    if job.inferred is not None:
        text = "its newest run was closed because nothing more came"
        yield Doubt(DoubtKind.INFERRED, job.node, text, job.inferred)
    if job.last is None:
        return
    patience = PATIENCE * (job.usual or 0)
    if job.running and now - job.last > max(HOUR, patience):
        text = f"it runs, and has reported nothing for {_span(now - job.last)}"
        yield Doubt(DoubtKind.SILENT, job.node, text, job.last)
    elif not job.running and job.usual and now - job.last > patience + MINUTE:
        text = f"it usually runs every {_span(job.usual)}, and last reported {_span(now - job.last)} ago"
        yield Doubt(DoubtKind.SILENT, job.node, text, job.last)


def _clock(gap: ClockGap[N]) -> str:
    if gap.least < -AHEAD:
        return f"its clock is ahead: events came up to {_span(-gap.least)} before their time"
    steady = gap.most - gap.least <= STEADY
    if gap.events >= EVENTS and gap.least > BEHIND and steady:
        return (
            f"its clock is behind: {gap.events} events all came {_span(gap.least)} after their time"
        )
    return ""


def _span(micros: int) -> str:
    """A time span in its largest unit."""
    for unit, size in (("days", 24 * HOUR), ("hours", HOUR), ("minutes", MINUTE)):
        if micros >= 2 * size:
            return f"{micros // size} {unit}"
    return f"{micros // SECOND} seconds"
