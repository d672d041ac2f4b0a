"""One evaluation of all rules: the rules, and the incidents that are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from headwater.insight import downstream
from headwater.lineage.graph import NodeKind
from headwater.server.alerts.incidents import EntityRef, Incident, IncidentBody
from headwater.server.alerts.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headwater.server.alerts.rules import Rule, Rules
    from headwater.server.store.entities import Node
    from headwater.server.store.view import View

__all__ = ["BEHIND", "DATASET", "DAY", "JOB", "NAMED", "TEXT", "ActiveRules", "Evaluation"]

JOB, DATASET = NodeKind.JOB.value, NodeKind.DATASET.value
DAY = 86_400_000_000
NAMED = 20
"""How many of what is downstream a message names; the rest is counted."""
BEHIND = 200
TEXT = 500


class ActiveRules(NamedTuple):
    """The rules, since when each exists, and what it has reported already."""

    rules: Rules
    since: Mapping[str, int]
    seen: Mapping[str, set[bytes]]
    fresh: frozenset[str]
    """The rules that are evaluated for the first time."""

    def of(self, kind: str) -> list[Rule]:
        """The rules of a kind."""
        return [rule for rule in self.rules.rules.values() if rule.when == kind]


@dataclass
class Evaluation:
    """What the rules are asked about at one moment; `known` are the open and the recently resolved incidents."""

    view: View
    rules: ActiveRules
    known: Sequence[Incident]
    now: int
    labels: Labels = field(init=False)
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    """What each rule has now seen and does not report again: rule and hash."""

    def __post_init__(self) -> None:
        self.labels = Labels(self.view)

    def wanted(self, kind: str, node: Node, since: int) -> list[str]:
        """The rules of a kind that ask for a job or dataset with which something is wrong."""
        return [
            rule.name
            for rule in self.rules.of(kind)
            if self.now - since >= rule.lasting and self.labels.fits(rule, node)
        ]

    def stale(self, datasets: Sequence[Node], since: int) -> tuple[list[EntityRef], list[str]]:
        """Those of these datasets that rules ask for, being stale for long enough, and the rules."""
        found: dict[Node, None] = {}
        rules = []
        for rule in self.rules.of("stale"):
            if self.now - since < rule.lasting:
                continue
            if fitting := [node for node in datasets if self.labels.fits(rule, node)]:
                rules.append(rule.name)
                found |= dict.fromkeys(fitting)
        return self.names(list(found)[:NAMED]), rules

    def behind(self, nodes: Sequence[Node]) -> tuple[list[Node], bool]:
        """What is downstream of these, nearest first, and whether there is more."""
        found, cut = downstream(self.view.graph(), nodes, limit=BEHIND)
        self.labels.load(found)
        return list(found), cut

    def body(
        self, subject: EntityRef, title: str, behind: Sequence[Node], *, cut: bool
    ) -> IncidentBody:
        """The content of an incident: its subject and what is downstream of it, datasets first."""
        shown = sorted(behind[:BEHIND], key=lambda node: node[0] != DATASET)[:NAMED]
        jobs = sum(1 for node in behind if node[0] == JOB)
        return IncidentBody(
            subject,
            title,
            affected=self.names(shown),
            jobs=jobs,
            datasets=len(behind) - jobs,
            more=cut,
        )

    def names(self, nodes: Iterable[Node]) -> list[EntityRef]:
        """These by name, without what is gone."""
        return [EntityRef(node[0], *named) for node in nodes if (named := self.labels.name(node))]
