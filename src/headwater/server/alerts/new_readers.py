"""Jobs that began to read a column with a tag."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from headwater.insight import tag_reach
from headwater.lineage.columns import wholes
from headwater.server.alerts.evaluation import DATASET, DAY
from headwater.server.alerts.incidents import EntityRef, Finding
from headwater.server.store.entities import INPUT
from headwater.server.store.read.column_readers import StoredColumnReaders
from headwater.server.store.read.tagged import TaggedColumns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from headwater.insight import Passage
    from headwater.server.alerts.evaluation import Evaluation
    from headwater.server.alerts.rules import Rule
    from headwater.server.store.entities import Column, Node

    Reader: TypeAlias = tuple[Passage[Node], str, str, str]
    Ends: TypeAlias = tuple[tuple[str, str], tuple[str, str]]
    Tagged: TypeAlias = dict[int, list[tuple[str, str, int | None]]]
    Marks: TypeAlias = dict[tuple[int, str, str], bytes]
    Tags: TypeAlias = dict[str, dict[Column, int | None]]

__all__ = ["NewReaders"]

READERS = 5_000
DEPTH, COLUMNS = 50, 5_000
"""How far a tag is followed, and to how many columns beside those on which it was set."""
LOW = 0xFFFFF
"""Sums of times are of these bits alone: SQLite adds up no larger integers."""
# What the walks over columns and their readers depend on. Heartbeats change none of it.
LINEAGE = (
    "SELECT count(*), count(until), sum(since & {low}), sum(until & {low}) FROM edge",
    "SELECT count(*), sum(facet), sum(time & {low}) FROM column_map",
    "SELECT max(id) FROM dataset",
    "SELECT count(*), sum(id), sum(root) FROM dataset WHERE root <> id",
    "SELECT count(*), sum(id), sum(hidden) FROM job WHERE hidden <> 0",
    "SELECT count(*), sum(job), sum(whole) FROM fold",
    (
        "SELECT count(*), sum(facet), sum(time & {low}) FROM facet_change"
        " WHERE kind = 1 AND name = 'headwater_evidence'"
    ),
)


class _Read(NamedTuple):
    """That a job reads a tagged column, and by which hash a rule remembers it."""

    reader: Reader
    ends: Ends
    digest: bytes


class _Reads(NamedTuple):
    """What one rule is about: who reads which tagged columns, and its hashes of the columns."""

    reads: list[_Read]
    marks: Marks


class NewReaders:
    """Finds who began to read a tagged column; follows the tags anew only where lineage or tags changed."""

    def __init__(self) -> None:
        self._known: object = None
        self._tagged: Tagged = {}
        self._of_rule: dict[str, _Reads] = {}

    def find(self, evaluation: Evaluation) -> list[Finding]:
        """Jobs that began to read a tagged column, and those reported within the last day.

        A rule that is evaluated for the first time records the present readers and reports none. Nor does
        it report who read a column before somebody set the tag: then the tag is new, not the reader.
        """
        self._follow(evaluation)
        still_open = [one for one in evaluation.known if one.resolved is None]
        opened = {one.id: one.opened for one in still_open}
        open_ = {(one.body.subject, job) for one in still_open for job in one.body.members}
        found = []
        for rule in evaluation.rules.of("new-reader"):
            before = evaluation.rules.seen.get(rule.name, set())
            reads, marks = self._of_rule[rule.name]
            since_tagged = _set_since(self._tagged, marks, before)
            seen = set(before)
            for reader, ends, digest in reads:
                passage, column, tag, _ = reader
                new = digest not in seen
                if (
                    not new
                    and (EntityRef("dataset", *ends[0]), EntityRef("job", *ends[1])) not in open_
                ):
                    continue  # most readers, in each evaluation
                finding = _finding(evaluation, rule, reader, ends, digest)
                if new:
                    seen.add(digest)
                    evaluation.seen.append((rule.name, digest))
                    if marks[passage.origin[1], column, tag] not in before:
                        new = finding.since >= since_tagged.get(tag, 0)
                recent = evaluation.now - opened.get(finding.id, 0) < DAY
                if recent or (new and rule.name not in evaluation.rules.fresh):
                    _describe(evaluation, finding, passage.job)
                    found.append(finding)
            evaluation.seen.extend((rule.name, mark) for mark in {*marks.values()} - before)
        return found

    def _follow(self, evaluation: Evaluation) -> None:
        """Find out who reads the tagged columns, unless all that this depends on is as it was."""
        graph = TaggedColumns(evaluation.view)
        tags = _tags(evaluation, graph)
        lineage = [evaluation.view.all(sql.format(low=LOW)) for sql in LINEAGE] if tags else []
        if self._known == (tags, lineage):
            return
        self._tagged = tagged = _reached(graph, tags)
        readers = list(_readers(evaluation, tagged))
        evaluation.labels.load((DATASET, root) for root in tagged)
        for rule in evaluation.rules.of("new-reader"):
            reads = [
                _Read(one, ends, _digest(*ends[0], one[1], *ends[1]))
                for one in readers
                if (ends := _ends(evaluation, rule, one)) is not None
            ]
            self._of_rule[rule.name] = _Reads(reads, _marks(evaluation, rule, tagged))
        self._known = (tags, lineage)


def _tags(evaluation: Evaluation, graph: TaggedColumns) -> Tags:
    """The tags that rules ask about: the columns on which each was set, and when."""
    rules = evaluation.rules.of("new-reader")
    found: Tags = {}
    for tag, columns in sorted(graph.tagged()[0].items()):
        seeds = sorted(column for column in columns if column[1])
        if seeds and any(rule.marked((), (tag,)) for rule in rules):
            times = graph.set_at(seeds, tag)
            found[tag] = {seed: times.get(seed) for seed in seeds}
    return found


def _reached(graph: TaggedColumns, tags: Tags) -> Tagged:
    """The tagged columns of each dataset, each with the tag and when it was set there, if it was.

    As `headwater tags` has it: set on a column, or come there along the data.
    """
    tagged: Tagged = {}
    for tag, seeds in tags.items():
        found = tag_reach(graph, list(seeds), depth=DEPTH, limit=COLUMNS + len(seeds))
        for root, column in found.reached:
            tagged.setdefault(root, []).append((column, tag, seeds.get((root, column))))
    return tagged


def _marks(evaluation: Evaluation, rule: Rule, tagged: Tagged) -> Marks:
    """By which hash a rule remembers that a column has a tag."""
    marks = {}
    for root, columns in tagged.items():
        named = evaluation.labels.name((DATASET, root))
        for column, tag, _ in columns:
            if named is not None and rule.marked((), (tag,)):
                marks[root, column, tag] = _digest(*named, column, tag)
    return marks


def _set_since(tagged: Tagged, marks: Marks, before: set[bytes]) -> dict[str, int]:
    """When each tag was last set on a column that a rule did not know with it."""
    times: dict[str, int] = {}
    for root, columns in tagged.items():
        for column, tag, at in columns:
            mark = marks.get((root, column, tag))
            if at is not None and mark is not None and mark not in before:
                times[tag] = max(times.get(tag, 0), at)
    return times


def _readers(evaluation: Evaluation, tagged: Tagged) -> Iterator[Reader]:
    """Each job that reads a tagged column: how, which column, and the tag."""
    if not tagged:
        return
    nodes = [(DATASET, number) for number in tagged]
    passages = list(StoredColumnReaders(evaluation.view).passages(nodes))[:READERS]
    evaluation.labels.load(node for one in passages for node in (one.job, one.origin))
    for passage in passages:
        for column, tag, _ in tagged[passage.origin[1]]:
            if (text := _use(passage, column)) is not None:
                yield passage, column, tag, text


def _use(passage: Passage[Node], column: str) -> str | None:
    """How a job reads a column; None if it does not."""
    if passage.uses is None:
        return "it reads the dataset, and nobody knows which columns"
    holding = {column, *wholes(column, topic=passage.from_topic)}
    for use in passage.uses:
        if use.column in holding or use.column.startswith(f"{column}."):
            return f"it reads {use.column}"
    return None


def _ends(evaluation: Evaluation, rule: Rule, reader: Reader) -> Ends | None:
    """The names of the dataset and of the job that reads it, if a rule is about them."""
    passage, _, tag, _ = reader
    job, dataset = evaluation.labels.name(passage.job), evaluation.labels.name(passage.origin)
    if job is None or dataset is None or not rule.named(*dataset) or not rule.marked((), (tag,)):
        return None
    return dataset, job


def _finding(
    evaluation: Evaluation, rule: Rule, reader: Reader, ends: Ends, digest: bytes
) -> Finding:
    passage, column, tag, text = reader
    dataset, job = ends
    subject = EntityRef("dataset", *dataset)
    title = f"{job[1]} began to read {dataset[1]}.{column} ({tag})"
    body = evaluation.body(subject, title, (), cut=False)
    body.detail, body.rules, body.members = text, [rule.name], [EntityRef("job", *job)]
    since = _since(evaluation, passage)
    return Finding("new-reader", subject, since, body, mark=digest.hex()[:16])


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()


def _describe(evaluation: Evaluation, finding: Finding, job: Node) -> None:
    behind, cut = evaluation.behind([job])
    full = evaluation.body(finding.subject, finding.body.title, behind, cut=cut)
    full.detail, full.rules = finding.body.detail, finding.body.rules
    full.members, full.owners = finding.body.members, evaluation.labels.owners(job)
    finding.body = full


def _since(evaluation: Evaluation, passage: Passage[Node]) -> int:
    sql = (
        "SELECT min(e.since) FROM edge e JOIN dataset d ON d.id = e.dataset"
        " WHERE e.job = ? AND d.root = ? AND e.direction = ?"
    )
    ((since,),) = evaluation.view.all(sql, (passage.job[1], passage.origin[1], INPUT))
    return int(since or 0)
