"""Jobs that began to read a column with a tag."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from headwater.insight import tag_reach
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
    from headwater.server.store.entities import Node

    Reader: TypeAlias = tuple[Passage[Node], str, str, str]

__all__ = ["new_readers"]

READERS = 5_000
DEPTH, COLUMNS = 50, 5_000
"""How far a tag is followed, and to how many columns beside those on which it was set."""


def new_readers(evaluation: Evaluation) -> list[Finding]:
    """Jobs that began to read a tagged column, and those reported within the last day.

    A rule that is evaluated for the first time records the present readers and reports none.
    """
    readers = list(_readers(evaluation))
    opened = {one.id: one.opened for one in evaluation.known if one.resolved is None}
    found = []
    for rule in evaluation.rules.of("new-reader"):
        seen = set(evaluation.rules.seen.get(rule.name, ()))
        for reader in readers:
            finding, digest = _judged(evaluation, rule, reader)
            if finding is None:
                continue
            new = digest not in seen
            if new:
                seen.add(digest)
                evaluation.seen.append((rule.name, digest))
            recent = evaluation.now - opened.get(finding.id, 0) < DAY
            if recent or (new and rule.name not in evaluation.rules.fresh):
                _describe(evaluation, finding, reader[0].job)
                found.append(finding)
    return found


def _readers(evaluation: Evaluation) -> Iterator[Reader]:
    """Each job that reads a tagged column: how, which column, and the tag."""
    tagged: dict[int, list[tuple[str, str]]] = {}
    rules = evaluation.rules.of("new-reader")
    graph = TaggedColumns(evaluation.view)
    for tag, columns in sorted(graph.tagged()[0].items()):
        seeds = sorted(column for column in columns if column[1])
        if not seeds or not any(rule.marked((), (tag,)) for rule in rules):
            continue
        # As `headwater tags` has it: set on a column, or come there along the data.
        found = tag_reach(graph, seeds, depth=DEPTH, limit=COLUMNS + len(seeds))
        for root, column in found.reached:
            tagged.setdefault(root, []).append((column, tag))
    if not tagged:
        return
    nodes = [(DATASET, number) for number in tagged]
    passages = list(StoredColumnReaders(evaluation.view).passages(nodes))[:READERS]
    evaluation.labels.load(node for one in passages for node in (one.job, one.origin))
    for passage in passages:
        for column, tag in tagged[passage.origin[1]]:
            if (text := _use(passage, column)) is not None:
                yield passage, column, tag, text


def _use(passage: Passage[Node], column: str) -> str | None:
    """How a job reads a column; None if it does not."""
    if passage.uses is None:
        return "it reads the dataset, and nobody knows which columns"
    for use in passage.uses:
        ends = sorted((use.column, column), key=len)
        if ends[0] == ends[1] or ends[1].startswith(f"{ends[0]}."):
            return f"it reads {use.column}"
    return None


def _judged(evaluation: Evaluation, rule: Rule, reader: Reader) -> tuple[Finding | None, bytes]:
    passage, column, tag, text = reader
    job, dataset = evaluation.labels.name(passage.job), evaluation.labels.name(passage.origin)
    if job is None or dataset is None or not rule.named(*dataset) or not rule.marked((), (tag,)):
        return None, b""
    digest = hashlib.sha256("\0".join((*dataset, column, *job)).encode()).digest()
    subject = EntityRef("dataset", *dataset)
    title = f"{job[1]} began to read {dataset[1]}.{column} ({tag})"
    body = evaluation.body(subject, title, (), cut=False)
    body.detail, body.rules, body.members = text, [rule.name], [EntityRef("job", *job)]
    since = _since(evaluation, passage)
    return Finding("new-reader", subject, since, body, mark=digest.hex()[:16]), digest


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
