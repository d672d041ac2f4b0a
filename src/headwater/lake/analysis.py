"""Work on the whole estate: what lies behind every dataset and column, what nobody uses, and components.

Pure functions over rows, so that Spark may call them anywhere. `join_estate` finds which names stand for
one dataset, by the server's rules, and which parts of the estate belong together. That needs datasets and
jobs of the whole estate in one place, but no columns. `analyse_component` then does the rest for one
component, wherever that is.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.lake.reach import reached
from headwater.lake.selection import JoinedNames
from headwater.lake.tables import ANALYSED_COLUMNS, ANALYSED_DATASETS
from headwater.lineage.columns import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.lake.selection import Name

__all__ = ["EstateRow", "Member", "Part", "analyse_component", "join_estate"]

STEPS = 8
"""How many parents of parents of a task job are followed, as on the server."""
RECORD = "value"
"""The column of a Kafka topic that is the whole record."""
Row = dict[str, Any]


class EstateRow(NamedTuple):
    """Something that is known of names in the estate.

    `kind` is one of:
    `dataset`, a dataset that was named at some time (`number`);
    `alias`, a name and the dataset that it stands for; `cluster`, a namespace and its cluster;
    `job`, a job that there is; `task`, a task job and its parent job;
    `input` and `output`, a job and a dataset that it reads or writes now, and `source`, one that
    its columns come from; `reads` and `writes`, the same of all times.
    """

    kind: str
    first: str
    second: str = ""
    third: str = ""
    fourth: str = ""
    number: int = 0


class Member(NamedTuple):
    """A name of a dataset, or a job, with what it counts as and the component of that.

    `leads` is true of the one name by which the result names a dataset.
    """

    kind: str
    namespace: str
    name: str
    number: int
    component: int
    leads: bool


class Part(NamedTuple):
    """A row of a component; datasets and jobs by number.

    `kind` is one of:
    `dataset`, its namespace and name; `input` and `output`, a dataset and a job now (`third` of an
    output is 1 where an explicit facet states what it is made of);
    `stated`, a source dataset, a target and a job, by such a facet;
    `map`, a source dataset with its column, and a target with its own, by a job;
    `read`, a dataset that a job read in the period (`third` is 1 where that job's columns are not known);
    `written`, a dataset that a job wrote then; `used`, a column that a job used then;
    `schema`, a dataset with its fields as JSON, since a moment (`third`);
    `owner` of a dataset (`first`) or of a job (`second`), whether a person set it on the page, and since when.
    """

    kind: str
    first: int = -1
    second: int = -1
    third: int = 0
    text: str = ""
    other: str = ""


def join_estate(reported: Iterable[EstateRow]) -> Iterator[Member]:
    """Every name of a dataset and every job, with what it counts as and the component it belongs to."""
    rows: dict[str, list[EstateRow]] = defaultdict(list)
    for one in reported:
        rows[one.kind].append(one)
    datasets = _Datasets(rows)
    parent = _parent_jobs(rows)
    parts = JoinedNames()
    touched = [*rows["input"], *rows["output"], *rows["source"]]
    for one in touched:
        if (root := datasets.root(one.second, one.third)) is not None:
            parts.join(("job", parent.get(one.first, one.first)), root)
    jobs = sorted({parent.get(one.first, one.first) for one in touched})
    sizes: dict[Name, int] = defaultdict(int)
    for node in (*datasets.leaders, *(("job", job) for job in jobs)):
        sizes[parts.of(node)] += 1
    ranked = sorted(sizes, key=lambda part: (-sizes[part], part))
    component = {part: number for number, part in enumerate(ranked, 1)}
    numbers = {root: number for number, root in enumerate(sorted(datasets.leaders))}
    for name in datasets.named:
        root = datasets.root(*name)
        assert root is not None
        part = component[parts.of(root)]
        yield Member("dataset", *name, numbers[root], part, datasets.leaders[root] == name)
    of_job = {job: number for number, job in enumerate(jobs)}
    members: set[str] = set()
    for reporter in sorted({one.first for one in touched}):
        job = parent.get(reporter, reporter)
        part = component[parts.of(("job", job))]
        yield Member("job", reporter, "", of_job[job], part, job not in members)
        members.add(job)


class _Datasets:
    """Which names stand for one dataset."""

    def __init__(self, rows: dict[str, list[EstateRow]]) -> None:
        self._joined = JoinedNames({one.first: one.second for one in rows["cluster"]})
        self.named = {(one.first, one.second): one.number for one in rows["dataset"]}
        targets: dict[Name, set[Name]] = defaultdict(set)
        for one in rows["alias"]:
            targets[one.first, one.second].add((one.third, one.fourth))
        crossed = _crossed(rows, {t for some in targets.values() if len(some) > 1 for t in some})
        for name, some in targets.items():
            for target in _one_dataset(sorted(some), crossed):
                self._joined.join(self._joined.plain(name), self._joined.plain(target))
        self.leaders: dict[Name, Name] = {}
        """The name by which each dataset is named: its own before a symlink, the oldest first."""
        for name in sorted(self.named, key=lambda one: (one in targets, self.named[one], one)):
            self.leaders.setdefault(self._joined.of(self._joined.plain(name)), name)

    def root(self, namespace: str, name: str) -> Name | None:
        """What stands for a dataset and all its names; None where it was never named."""
        if (namespace, name) not in self.named:
            return None
        return self._joined.of(self._joined.plain((namespace, name)))


def _crossed(rows: dict[str, list[EstateRow]], wanted: set[Name]) -> set[tuple[Name, Name]]:
    """Pairs of some datasets of which a job reads the first and writes the second."""
    sides: dict[str, tuple[set[Name], set[Name]]] = defaultdict(lambda: (set(), set()))
    if wanted:
        for way, kind in enumerate(("reads", "writes")):
            for one in rows[kind]:
                if (one.second, one.third) in wanted:
                    sides[one.first][way].add((one.second, one.third))
    return {(a, b) for reads, writes in sides.values() for a in reads for b in writes if a != b}


def _one_dataset(targets: list[Name], crossed: set[tuple[Name, Name]]) -> list[Name]:
    """The datasets of one symlink that are one; a table that moved is named by where it is now."""
    behind = [t for t in targets if any((other, t) in crossed for other in targets)]
    apart = {t for pair in crossed for t in pair if pair[0] in targets and pair[1] in targets}
    latest = max(behind, key=lambda t: sum((o, t) in crossed for o in targets), default=None)
    return [t for t in targets if t not in apart or t == latest]


def _parent_jobs(rows: dict[str, list[EstateRow]]) -> dict[str, str]:
    """The job that each task job is shown as: its topmost parent that there is."""
    known = {one.first for one in rows["job"]}
    parent = {one.first: one.second for one in rows["task"]}
    found: dict[str, str] = {}
    for task in parent:
        passed = [task]
        while (above := parent.get(passed[-1])) in known and above is not None:
            if above in passed or len(passed) > STEPS:
                passed = [task]
                break
            passed.append(above)
        found[task] = passed[-1]
    return found


def analyse_component(parts: Iterable[Part]) -> Iterator[tuple[str, Row]]:
    """The rows of one component's datasets and columns, each with the name of its table."""
    found = _Component()
    for part in parts:
        found.take(part)
    columns = dict(found.columns())
    known: dict[int, int] = defaultdict(int)
    unused: dict[int, int] = defaultdict(int)
    for (dataset, field), row in columns.items():
        namespace, name = found.names[dataset]
        known[dataset] += 1
        unused[dataset] += row["unused"] is True
        named = {"dataset_namespace": namespace, "dataset_name": name, "field": field}
        yield ANALYSED_COLUMNS.name, {**named, **row}
    for dataset, row in found.datasets():
        namespace, name = found.names[dataset]
        named = {"dataset_namespace": namespace, "dataset_name": name}
        counts = {"columns": known[dataset], "unused_columns": unused[dataset]}
        yield ANALYSED_DATASETS.name, {**named, **row, **counts}


class _Component:
    """What is known of one component."""

    def __init__(self) -> None:
        self.names: dict[int, Name] = {}
        self._sides: dict[int, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
        self._by_columns: dict[tuple[int, int], set[int]] = defaultdict(set)
        self._stated: dict[tuple[int, int], set[int]] = {}
        self._maps: list[Part] = []
        self._read: dict[int, bool] = defaultdict(bool)
        self._written: set[int] = set()
        self._used: dict[int, set[str]] = defaultdict(set)
        self._above: dict[int, tuple[set[str], set[str]]] = {}
        self._schemas: dict[int, tuple[int, str]] = {}
        self._owners: dict[tuple[int, int], dict[tuple[str, int], set[str]]] = defaultdict(dict)

    def take(self, part: Part) -> None:
        """Take in a row."""
        match part.kind:
            case "dataset":
                self.names[part.first] = (part.text, part.other)
            case "input":
                self._sides[part.second][0].add(part.first)
            case "output":
                self._sides[part.second][1].add(part.first)
                if part.third:
                    self._stated.setdefault((part.second, part.first), set())
            case "stated":
                self._stated.setdefault((part.third, part.second), set()).add(part.first)
            case "map":
                self._maps.append(part)
                self._by_columns[part.third, part.second].add(part.first)
                self._used[part.first].add(part.text)
            case "read":
                self._read[part.first] |= bool(part.third)
            case "written":
                self._written.add(part.first)
            case "used":
                self._used[part.first].add(part.text)
                self._read[part.first] |= False
            case "schema":
                newest = (part.third, part.text)
                self._schemas[part.first] = max(newest, self._schemas.get(part.first, newest))
            case "owner":
                held = self._owners[part.first, part.second]
                held.setdefault((part.other, part.third), set()).add(part.text)

    def _owned(self, dataset: int = -1, job: int = -1) -> set[str]:
        """The owners that count: whom a person named, else those reported last."""
        held = self._owners.get((dataset, job))
        return held[max(held)] if held else set()

    def _feeds(self) -> dict[int, set[int]]:
        """The datasets that jobs make of each, by the rule of the server's `OutputSources`."""
        found: dict[int, set[int]] = defaultdict(set)
        for job, (inputs, outputs) in self._sides.items():
            exact = {o: self._stated[job, o] for o in outputs if (job, o) in self._stated}
            others = {o: self._by_columns.get((job, o)) or inputs for o in outputs - exact.keys()}
            # What nothing else is made of, by any facet, goes into every output but the exact ones.
            rest = inputs.difference(*exact.values(), *others.values())
            for output, some in (*exact.items(), *others.items()):
                for dataset in (some & inputs) | (set() if output in exact else rest):
                    found[dataset].add(output)
        return found

    def datasets(self) -> Iterator[tuple[int, Row]]:
        """What lies behind each dataset, and whether anybody reads it."""
        order = {dataset: place for place, dataset in enumerate(self.names)}
        feeds = self._feeds()
        readers: dict[int, set[int]] = defaultdict(set)
        for job, (inputs, _) in self._sides.items():
            for dataset in inputs:
                readers[dataset].add(job)
        people: dict[str, int] = {}
        owners = []
        for dataset in order:
            names: set[str] = set().union(
                *(self._owned(job=job) for job in readers[dataset]),
                *(self._owned(dataset=far) for far in feeds.get(dataset, ())),
            )
            owners.append([people.setdefault(name, len(people)) for name in names])
        jobs, datasets, owned = reached(
            [[order[far] for far in feeds.get(dataset, ())] for dataset in order],
            ([readers[dataset] for dataset in order], [(place,) for place in order.values()], owners),
        )  # fmt: skip
        for dataset, place in order.items():
            yield (
                dataset,
                {
                    "jobs": jobs[place],
                    "datasets": datasets[place] - 1,
                    "owners": owned[place],
                    "readers": len(readers[dataset]),
                    "unused": dataset in self._written and dataset not in self._read,
                },
            )

    def columns(self) -> Iterator[tuple[tuple[int, str], Row]]:
        """What lies behind each column, and whether any job uses it."""
        order: dict[tuple[int, str], int] = {}
        ahead: list[set[int]] = []
        jobs: list[set[int]] = []
        datasets: list[set[int]] = []

        def place(dataset: int, field: str) -> int:
            found = order.setdefault((dataset, field), len(order))
            if found == len(ahead):
                ahead.append(set())
                jobs.append(set())
                datasets.append({dataset})
            return found

        for one in self._maps:
            if one.second not in self.names:
                continue  # its edge came while the tables were read: the next analysis has both
            near = place(one.first, one.text)
            jobs[near].add(one.third)
            if one.other == WHOLE:
                datasets[near].add(one.second)
            else:
                ahead[near].add(place(one.second, one.other))
        for dataset, (_, fields) in self._schemas.items():
            for field in _flat(msgspec.json.decode(fields)):
                place(dataset, field)
        every = [(number,) for number in range(len(order))]
        counts = reached(ahead, (every, datasets, jobs))
        for (dataset, field), number in order.items():
            behind = [of[number] for of in counts]
            yield (
                (dataset, field),
                {
                    "columns": behind[0] - 1,
                    "datasets": behind[1] - 1,
                    "jobs": behind[2],
                    "unused": self._unused(dataset, field),
                },
            )

    def _unused(self, dataset: int, field: str) -> bool | None:
        """Whether nobody used a column in the period; None where a reader does not report columns."""
        if dataset not in self._written and dataset not in self._read:
            return False
        used, above = self._uses(dataset)
        if field in above or any(path in used for path in _paths(field)):
            return False
        if RECORD in used and self.names[dataset][0].startswith("kafka://"):
            return False
        return None if self._read.get(dataset) else True

    def _uses(self, dataset: int) -> tuple[set[str], set[str]]:
        """The columns of a dataset that jobs use, and these with all that they are inside of."""
        if dataset not in self._above:
            used = self._used.get(dataset, set())
            self._above[dataset] = used, {path for one in used for path in _paths(one)}
        return self._above[dataset]


def _paths(field: str) -> Iterator[str]:
    """A column and the columns that it is inside of, by their paths."""
    end = field.find(".")
    while end >= 0:
        yield field[:end]
        end = field.find(".", end + 1)
    yield field


def _flat(fields: object, prefix: str = "") -> Iterator[str]:
    """The columns of a schema and those inside them, by their paths."""
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict) and isinstance(field.get("name"), str):
            name = prefix + field["name"]
            yield name
            yield from _flat(field.get("fields"), f"{name}.")
