"""Changes of schemas that break a job which reads the dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.insight import Effect, impact, planned_change
from headwater.lineage.schema import diff
from headwater.server.alerts.evaluation import DAY, NAMED, TEXT
from headwater.server.alerts.incidents import EntityRef, Finding
from headwater.server.store.read.column_readers import StoredColumnReaders
from headwater.server.store.read.observed import read_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from headwater.insight import Passage
    from headwater.lineage.schema import Schema
    from headwater.server.alerts.evaluation import Evaluation
    from headwater.server.store.entities import Dataset, Node

__all__ = ["SchemaBreaks", "breaking_title"]

CHANGES = 200
"""Changes that are judged in one evaluation, the oldest first; the others wait for the next."""
READ = 20_000
NAMES = 3
"""Jobs that a title names."""
Change = tuple[int, int]
"""A dataset whose schema changed, and when."""


class _Before:
    """The readers of columns as they were before a dataset changed."""

    def __init__(self, readers: StoredColumnReaders, node: Node, schema: Schema) -> None:
        self._readers = readers
        self._node = node
        self._types = {one.name: one.type for one in schema.columns(containers=True)}

    def passages(self, datasets: Collection[Node]) -> Iterator[Passage[Node]]:
        """What every job that reads one of these datasets does with its columns."""
        return self._readers.passages(datasets)

    def types(self, datasets: Collection[Node]) -> dict[Node, dict[str, str]]:
        """The types of their columns; those of the dataset that changed, before it did."""
        found = self._readers.types(datasets)
        return found | {self._node: self._types} if self._node in datasets else found


class SchemaBreaks:
    """Judges each change of a schema once, and those that broke something until they do not."""

    def __init__(self) -> None:
        self._judged: set[Change] = set()
        self._lasting: set[Change] = set()
        """What breaks a reader, and not yet for as long as a rule asks for."""

    def find(self, evaluation: Evaluation) -> list[Finding]:
        """What breaks a reader, of the changes since the rules are there."""
        rules = evaluation.rules.of("schema-breaks")
        longest = max(rule.lasting for rule in rules)
        wanted = self._unjudged(evaluation, longest) | self._lasting
        for one in evaluation.known:
            if one.kind == "schema-breaks" and one.resolved is None:
                for kind, *named in sorted(one.keys):
                    dataset = evaluation.view.dataset(*named) if kind == "dataset" else None
                    if dataset is not None:
                        wanted.add((dataset.id, one.since))
        datasets = evaluation.view.datasets(number for number, _ in wanted)
        found: dict[int, dict[Node, _Break]] = {}
        self._lasting = set()
        for number, at in sorted(wanted, key=lambda one: (one[1], one[0])):
            if (
                number in datasets
                and (broken := _judged(evaluation, datasets[number], at)) is not None
            ):
                found.setdefault(at, {})[datasets[number].node] = broken
                if evaluation.now - at < longest:
                    self._lasting.add((number, at))
        return [
            _finding(evaluation, some, at)
            for at, breaks in found.items()
            for some in _families(evaluation, breaks)
        ]

    def _unjudged(self, evaluation: Evaluation, longest: int) -> set[Change]:
        """The oldest changes that were not judged yet; those of one moment together."""
        rules = evaluation.rules.of("schema-breaks")
        start = min(evaluation.rules.since.get(rule.name, evaluation.now) for rule in rules)
        sql = (
            "SELECT entity, time FROM facet_change WHERE kind = 0 AND name = 'schema' AND facet <> 0"
            " AND time > ? ORDER BY time DESC LIMIT ?"
        )
        rows = evaluation.view.all(sql, (max(start, evaluation.now - DAY - longest), READ))
        known = {(row[0], row[1]) for row in rows}
        waiting = sorted(known - self._judged, key=lambda one: (one[1], one[0]))
        last = waiting[:CHANGES][-1][1] if waiting else 0
        found = {one for one in waiting if one[1] <= last}
        self._judged = self._judged & known | found
        return found


class _Break(NamedTuple):
    """A dataset that changed, the jobs that this breaks, and how it changed."""

    dataset: Dataset
    jobs: list[Node]
    detail: str


def _families(evaluation: Evaluation, found: dict[Node, _Break]) -> list[list[_Break]]:
    """Changes of one moment: each with those that came along from it, the one furthest up first."""
    if len(found) == 1:
        return [list(found.values())]
    behind = {node: set(evaluation.behind([node])[0]) for node in found}
    families: dict[Node, list[_Break]] = {}
    # What has more of the others behind it is further up.
    for node in sorted(found, key=lambda one: (-len(behind[one] & found.keys()), one)):
        above = next((one for one in families if node in behind[one]), node)
        families.setdefault(above, []).append(found[node])
    return list(families.values())


def _judged(evaluation: Evaluation, dataset: Dataset, at: int) -> _Break | None:
    """Whether a dataset as it is now breaks whoever read it as it was before a moment."""
    schemas = _schemas(evaluation, dataset, at)
    if schemas is None:
        return None
    old, new = schemas
    differences = diff(old, new)
    changes = [one for item in differences if (one := planned_change(item)) is not None]
    if not changes:
        return None
    readers = _Before(StoredColumnReaders(evaluation.view), dataset.node, old)
    broken = impact(readers, dataset.node, changes[:CHANGES]).of(Effect.BREAKS)
    if not broken:
        return None
    jobs = list(dict.fromkeys(one.job for one in broken))
    return _Break(dataset, jobs, "; ".join(map(str, differences))[:TEXT])


def _finding(evaluation: Evaluation, family: list[_Break], at: int) -> Finding:
    first, *others = family
    dataset = first.dataset
    jobs = list(dict.fromkeys(job for one in family for job in one.jobs))
    evaluation.labels.load(jobs)
    behind, cut = evaluation.behind(jobs)
    subject = EntityRef("dataset", dataset.space, dataset.name)
    names = [one.name for one in evaluation.names(jobs[:NAMES])]
    title = breaking_title(dataset.name, names, len(jobs))
    body = evaluation.body(subject, title, [*jobs, *behind], cut=cut)
    body.breaks = len(jobs)
    members = evaluation.names(jobs[:NAMED])
    rest = [one for one in body.affected if one not in members]
    body.affected = [*members, *rest][:NAMED]
    body.members = [*members, *evaluation.names(one.dataset.node for one in others)]
    for one in family:
        wanted = evaluation.wanted("schema-breaks", one.dataset.node, at)
        body.rules += [name for name in wanted if name not in body.rules]
    body.detail, body.owners = first.detail, evaluation.labels.owners(dataset.node)
    return Finding("schema-breaks", subject, at, body, mark=str(at))


def _schemas(evaluation: Evaluation, dataset: Dataset, at: int) -> tuple[Schema, Schema] | None:
    """The schema before a moment and the one of now; None if there are no two."""
    sql = (
        "SELECT facet FROM facet_change WHERE kind = 0 AND entity = ? AND name = 'schema'"
        " AND facet <> 0 AND time < ? ORDER BY time DESC LIMIT 1"
    )
    before = evaluation.view.all(sql, (dataset.id, at))
    held = dataset.state.facets.get("schema")
    if not before or not held or before[0][0] == held[0]:
        return None
    bodies = evaluation.view.bodies([before[0][0], held[0]])
    return read_schema(bodies.get(before[0][0])), read_schema(bodies.get(held[0]))


def breaking_title(dataset: str, jobs: Sequence[str], count: int) -> str:
    """What happened, with the names of the first jobs that break, of so many."""
    more = f" and {count - NAMES} more" if count > NAMES else ""
    return f"{dataset} changed its schema and breaks {', '.join(jobs[:NAMES])}{more}"
