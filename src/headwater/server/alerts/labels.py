"""Owners and tags of jobs and datasets, read once in an evaluation and only where a rule filters by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.graph import NodeKind
from headwater.lineage.openlineage.facets import ABOUT
from headwater.server.store.read.tagged import sent_tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.server.alerts.rules import Rule
    from headwater.server.store.entities import Dataset, Held, Job, Node
    from headwater.server.store.view import View

__all__ = ["Labels"]

DATASET = NodeKind.DATASET.value
KINDS = {DATASET: 0, NodeKind.JOB.value: 1}
OWNERS = 20


class Labels:
    """Names, owners and tags of the nodes of one evaluation."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[Node, Job | Dataset] = {}
        self._marks: dict[Node, tuple[list[str], set[str]]] = {}

    def load(self, nodes: Iterable[Node]) -> None:
        """Read these at once."""
        wanted = {node for node in nodes if node not in self._known}
        if not wanted:
            return
        jobs = self._view.jobs(number for kind, number in wanted if kind != DATASET)
        datasets = self._view.datasets(number for kind, number in wanted if kind == DATASET)
        self._known |= {(NodeKind.JOB.value, n): one for n, one in jobs.items()}
        self._known |= {(DATASET, n): one for n, one in datasets.items()}

    def name(self, node: Node) -> tuple[str, str] | None:
        """Namespace and name; None of what is gone."""
        self.load([node])
        found = self._known.get(node)
        return (found.space, found.name) if found else None

    def fits(self, rule: Rule, node: Node) -> bool:
        """Whether the filters of a rule let a job or a dataset through."""
        named = self.name(node)
        if named is None or not rule.named(*named):
            return False
        if not rule.owners and not rule.tags:
            return True
        owners, tags = self._of(node)
        return rule.marked(owners, tags)

    def owners(self, node: Node) -> list[str]:
        """Who owns it, by name."""
        return self._of(node)[0] if self.name(node) else []

    def _of(self, node: Node) -> tuple[list[str], set[str]]:
        if node not in self._marks:
            held = self._known[node].state.facets
            numbers = [held[name][0] for name in (ABOUT, "ownership", "tags") if name in held]
            bodies = self._view.bodies(numbers)
            tags = {tag for _, tag in self._view.tags(KINDS[node[0]], [node[1]]).get(node[1], ())}
            if "tags" in held:
                tags |= {tag for _, tag in sent_tags(bodies.get(held["tags"][0]))}
            self._marks[node] = _owners(held, bodies), tags
        return self._marks[node]


def _owners(held: Mapping[str, Held], bodies: Mapping[int, bytes]) -> list[str]:
    for name in (ABOUT, "ownership"):
        body = bodies.get(held[name][0]) if name in held else None
        facet: Any = msgspec.json.decode(body) if body else None
        listed = facet.get("owners") if isinstance(facet, dict) else None
        found = [
            str(one["name"])
            for one in (listed[:OWNERS] if isinstance(listed, list) else ())
            if isinstance(one, dict) and one.get("name")
        ]
        if found:
            return found
    return []
