"""Jobs that began to read a column with a tag."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from headwater.insight import tag_reach
from headwater.server.alerts.incidents import Finding, Named
from headwater.server.alerts.look import DATASET, DAY
from headwater.server.store.entities import INPUT
from headwater.server.store.read.column_readers import StoredColumnReaders
from headwater.server.store.read.tagged import TaggedColumns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from headwater.insight import Passage
    from headwater.server.alerts.look import Look
    from headwater.server.alerts.rules import Rule
    from headwater.server.store.entities import Node

    Reader: TypeAlias = tuple[Passage[Node], str, str, str]

__all__ = ["new_readers"]

READERS = 5_000
DEPTH, COLUMNS = 50, 5_000
"""How far a tag is followed, and to how many columns beside those on which it was set."""


def new_readers(look: Look) -> list[Finding]:
    """Who reads a tagged column and did not before; and who was told of within the last day.

    A rule that is looked at for the first time learns who reads already.
    """
    readers = list(_readers(look))
    opened = {one.id: one.opened for one in look.known if one.resolved is None}
    found = []
    for rule in look.asked.of("new-reader"):
        seen = set(look.asked.seen.get(rule.name, ()))
        for reader in readers:
            finding, digest = _judged(look, rule, reader)
            if finding is None:
                continue
            new = digest not in seen
            if new:
                seen.add(digest)
                look.seen.append((rule.name, digest))
            recent = look.now - opened.get(finding.id, 0) < DAY
            if recent or (new and rule.name not in look.asked.fresh):
                _describe(look, finding, reader[0].job)
                found.append(finding)
    return found


def _readers(look: Look) -> Iterator[Reader]:
    """Each job that reads a tagged column: how, which column, and the tag."""
    tagged: dict[int, list[tuple[str, str]]] = {}
    rules = look.asked.of("new-reader")
    graph = TaggedColumns(look.view)
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
    passages = list(StoredColumnReaders(look.view).passages(nodes))[:READERS]
    look.labels.load(node for one in passages for node in (one.job, one.origin))
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


def _judged(look: Look, rule: Rule, reader: Reader) -> tuple[Finding | None, bytes]:
    passage, column, tag, text = reader
    job, dataset = look.labels.name(passage.job), look.labels.name(passage.origin)
    if job is None or dataset is None or not rule.named(*dataset) or not rule.marked((), (tag,)):
        return None, b""
    digest = hashlib.sha256("\0".join((*dataset, column, *job)).encode()).digest()
    subject = Named("dataset", *dataset)
    title = f"{job[1]} began to read {dataset[1]}.{column} ({tag})"
    body = look.body(subject, title, (), cut=False)
    body.detail, body.rules, body.members = text, [rule.name], [Named("job", *job)]
    since = _since(look, passage)
    return Finding("new-reader", subject, since, body, mark=digest.hex()[:16]), digest


def _describe(look: Look, finding: Finding, job: Node) -> None:
    behind, cut = look.behind([job])
    full = look.body(finding.subject, finding.body.title, behind, cut=cut)
    full.detail, full.rules = finding.body.detail, finding.body.rules
    full.members, full.owners = finding.body.members, look.labels.owners(job)
    finding.body = full


def _since(look: Look, passage: Passage[Node]) -> int:
    sql = (
        "SELECT min(e.since) FROM edge e JOIN dataset d ON d.id = e.dataset"
        " WHERE e.job = ? AND d.root = ? AND e.direction = ?"
    )
    ((since,),) = look.view.all(sql, (passage.job[1], passage.origin[1], INPUT))
    return int(since or 0)
