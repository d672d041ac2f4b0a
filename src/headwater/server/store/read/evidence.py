"""Where an edge came from: the evidence that its producer reports, and which facet names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.read.column_graph import ColumnGraph

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headwater.server.store.entities import Held
    from headwater.server.store.view import View

__all__ = ["evidence", "feeds", "intervals"]

NAME = "headwater_evidence"
LIMIT = 100


def evidence(
    view: View, job: int, origin: int, target: int, at: int | None = None
) -> dict[str, Any] | None:
    """The evidence that data of `origin` reaches `target` through `job`; None without such an edge.

    `basis` is `lineage` or `columnLineage` when a facet names this very pair, and `all` when the
    job only lists its inputs and outputs. `items` are the producer's own words.
    """
    sources = view.output_sources(at).of_jobs([job]).get(job, {}).get(target)
    if sources is None or origin not in sources.inputs - sources.unpaired:
        return None
    found = view.jobs([job])[job]
    datasets = view.datasets([origin, target])
    items = _of_pair(view, _read(view, found.state.facets), origin, target)
    for number in (target, origin):
        facet = _read(view, datasets[number].state.facets).get("evidence")
        items += [item for item in _objects(facet) if item not in items]
    sql = (
        "SELECT min(since) FROM edge WHERE direction = ? AND until IS NULL"
        " AND dataset IN (SELECT id FROM dataset WHERE root = ?)"
        " AND (job = ? OR job IN (SELECT job FROM fold WHERE whole = ?))"
    )
    ((since,),) = view.all(sql, (OUTPUT, target, job, job))
    return {"basis": sources.basis, "since": since, "items": items[:LIMIT]}


def intervals(
    view: View, job: int, datasets: Collection[int], direction: int
) -> list[tuple[int, int | None]]:
    """When a job, or a task job of it, had an edge to one of these datasets, the latest first."""
    sql = (
        "SELECT since, until FROM edge WHERE (job = ? OR job IN (SELECT job FROM fold WHERE whole = ?))"
        " AND direction = ? AND dataset IN ({in})"
    )
    found = within(view.connection, sql, list(datasets), (job, job, direction))
    return sorted(found, key=lambda span: -span[0])


def feeds(view: View, sources: Iterable[int], targets: Iterable[int]) -> bool:
    """Whether a job has ever read one of some datasets and written one of others."""
    jobs = "SELECT DISTINCT job FROM edge WHERE direction = ? AND dataset IN ({in})"
    readers = within(view.connection, jobs, sources, (INPUT,))
    return not set(readers).isdisjoint(within(view.connection, jobs, targets, (OUTPUT,)))


def _of_pair(view: View, facet: dict[str, Any], origin: int, target: int) -> list[dict[str, Any]]:
    edges = _objects(facet.get("edges"))
    datasets = _objects(facet.get("datasets"))
    ends = [(_key(e.get("input")), _key(e.get("output"))) for e in edges]
    names = {key for pair in ends for key in pair} | {_key(d) for d in datasets}
    roots = ColumnGraph(view).resolve({key for key in names if key is not None})
    items: list[dict[str, Any]] = []
    for edge, (one, other) in zip(edges, ends, strict=True):
        if one and other and roots.get(one) == origin and roots.get(other) == target:
            items += _objects(edge.get("evidence"))
    for dataset in datasets:
        key = _key(dataset)
        if key and roots.get(key) in (origin, target):
            items += [i for i in _objects(dataset.get("evidence")) if i not in items]
    return items


def _read(view: View, facets: dict[str, Held]) -> dict[str, Any]:
    held = facets.get(NAME)
    body = view.bodies([held[0]]).get(held[0]) if held else None
    value = msgspec.json.decode(body) if body else {}
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _key(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    namespace, name = value.get("namespace"), value.get("name")
    return (namespace, name) if isinstance(namespace, str) and isinstance(name, str) else None
