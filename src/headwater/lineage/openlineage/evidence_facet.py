"""The facet `headwater_evidence`: what a job knows its edges and datasets from.

What has another shape than the published one is left out, so that one damaged entry costs no other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["FACET", "Item", "ReportedEdge", "ReportedEvidence", "read_evidence"]

FACET = "headwater_evidence"
Key = tuple[str, str]
Item = dict[str, Any]
"""One piece of evidence: its `source`, its `detail` and whether it was `observed`."""


class ReportedEdge(NamedTuple):
    """Data of one dataset that a job reports to reach another."""

    input: Key
    output: Key
    columns: bool | None
    """Whether the producer knows the columns of this edge."""
    named: frozenset[str]
    """The columns that are read by their names."""
    items: list[Item]


class ReportedEvidence(NamedTuple):
    """What one facet reports."""

    edges: list[ReportedEdge]
    datasets: list[tuple[Key, list[Item]]]
    items: list[Item]
    """Of the facet of a dataset, as older Spark jobs write it: what that dataset is known from."""

    @property
    def names(self) -> set[Key]:
        """All datasets that it names."""
        ends = {key for edge in self.edges for key in (edge.input, edge.output)}
        return ends | {key for key, _ in self.datasets}


def read_evidence(facet: object) -> ReportedEvidence:
    """Read a decoded facet of a job or a dataset."""
    held = facet if isinstance(facet, dict) else {}
    edges = []
    for edge in _objects(held.get("edges")):
        ends = _key(edge.get("input")), _key(edge.get("output"))
        if ends[0] and ends[1]:
            columns, named = edge.get("columns"), edge.get("named")
            edges.append(
                ReportedEdge(
                    ends[0],
                    ends[1],
                    columns if isinstance(columns, bool) else None,
                    frozenset(map(str, named)) if isinstance(named, list) else frozenset(),
                    _items(edge),
                )
            )
    datasets = [(key, _items(one)) for one in _objects(held.get("datasets")) if (key := _key(one))]
    return ReportedEvidence(edges, datasets, _items(held))


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _items(holder: dict[str, Any]) -> list[Item]:
    kept = ("source", "detail", "observed")
    return [{k: one[k] for k in kept if k in one} for one in _objects(holder.get("evidence"))]


def _key(value: object) -> Key | None:
    if not isinstance(value, dict):
        return None
    namespace, name = value.get("namespace"), value.get("name")
    return (namespace, name) if isinstance(namespace, str) and isinstance(name, str) else None
