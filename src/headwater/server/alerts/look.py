"""One look over the store: what is asked, what is known, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from headwater.insight import downstream
from headwater.lineage.graph import NodeKind
from headwater.server.alerts.incidents import Body, Finding, Incident, Named
from headwater.server.alerts.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headwater.server.alerts.rules import Rule, Rules
    from headwater.server.store.entities import Node
    from headwater.server.store.view import View

__all__ = ["BEHIND", "DATASET", "DAY", "JOB", "NAMED", "TEXT", "Asked", "Look"]

JOB, DATASET = NodeKind.JOB.value, NodeKind.DATASET.value
DAY = 86_400_000_000
NAMED = 20
"""How many of what is downstream a message names; the rest is counted."""
BEHIND = 200
TEXT = 500


class Asked(NamedTuple):
    """The rules, since when each is there, and what it has seen already."""

    rules: Rules
    since: Mapping[str, int]
    seen: Mapping[str, set[bytes]]
    fresh: frozenset[str]
    """The rules that are looked at for the first time."""

    def of(self, kind: str) -> list[Rule]:
        """The rules of a kind."""
        return [rule for rule in self.rules.rules.values() if rule.when == kind]


@dataclass
class Look:
    """What is found at one moment; `known` are the incidents that are open or were of late."""

    view: View
    asked: Asked
    known: Sequence[Incident]
    now: int
    labels: Labels = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    """What rules have now seen and need not tell again."""

    def __post_init__(self) -> None:
        self.labels = Labels(self.view)

    def wanted(self, kind: str, node: Node, since: int) -> list[str]:
        """The rules of a kind that ask for a job or dataset with which something is wrong."""
        return [
            rule.name
            for rule in self.asked.of(kind)
            if self.now - since >= rule.lasting and self.labels.fits(rule, node)
        ]

    def stale(self, datasets: Sequence[Node], since: int) -> tuple[list[Named], list[str]]:
        """Those of these datasets that rules ask for, being stale for long enough, and the rules."""
        found: dict[Node, None] = {}
        rules = []
        for rule in self.asked.of("stale"):
            if self.now - since < rule.lasting:
                continue
            if fitting := [node for node in datasets if self.labels.fits(rule, node)]:
                rules.append(rule.name)
                found |= dict.fromkeys(fitting)
        return self.names(list(found)[:NAMED]), rules

    def behind(self, nodes: Sequence[Node]) -> tuple[list[Node], bool]:
        """What lies downstream of these, nearest first, and whether there is more."""
        found, cut = downstream(self.view.graph(), nodes, limit=BEHIND)
        self.labels.load(found)
        return list(found), cut

    def body(self, subject: Named, title: str, behind: Sequence[Node], *, cut: bool) -> Body:
        """What an incident says: what it is about and what lies behind it, datasets first."""
        shown = sorted(behind[:BEHIND], key=lambda node: node[0] != DATASET)[:NAMED]
        jobs = sum(1 for node in behind if node[0] == JOB)
        return Body(
            subject,
            title,
            affected=self.names(shown),
            jobs=jobs,
            datasets=len(behind) - jobs,
            more=cut,
        )

    def names(self, nodes: Iterable[Node]) -> list[Named]:
        """These by name, without what is gone."""
        return [Named(node[0], *named) for node in nodes if (named := self.labels.name(node))]
