"""The map: a neighbourhood, a namespace or the whole estate, never more than can be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.insight import Moment, around, difference, flow, hidden, paired, spanned
from headwater.server.api import describe
from headwater.server.api.lookup import node_of
from headwater.server.api.parameters import check_period, flag, integer, moment, text
from headwater.server.api.present import when
from headwater.server.api.types import Edge, Object, Sourced, Time
from headwater.server.api.v2.page import columns, programs
from headwater.server.routing import Past, Routes
from headwater.server.store.entities import DELETED, OUTPUT, STATUSES
from headwater.server.store.read.changed import shown_at
from headwater.server.store.read.deleted import drawn_though_deleted, left_behind

if TYPE_CHECKING:
    from headwater.insight import Difference, Neighbourhood
    from headwater.server.store.entities import Node
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

NODES = 300
NEVER = 2**62


class Map(Sourced):
    """A part of the graph, to be drawn; with groups in the place of nodes where it is too large."""

    at: Time | None
    nodes: list[Object]
    edges: list[Edge]
    parents: list[Object]
    truncated: bool


class MapRequest(NamedTuple):
    """Which part of the graph to draw, how much of it, and whether with columns."""

    node: str
    namespace: str
    depth: int
    limit: int
    columns: bool


@api.get("/api/v2/map", answer=Map, past=Past(programs=True))
def draw(
    view: View,
    node: str = text(example="job:shop:load"),
    namespace: str = text(),
    depth: int = integer(2, 0, 50),
    limit: int = integer(NODES, 1, 5_000),
    at: int | None = moment(),
    start: int | None = moment(name="from"),
    end: int | None = moment(name="to"),
    with_columns: bool = flag(name="columns"),
) -> dict[str, Any]:
    """Nodes and edges as of now or a moment, or the difference between two moments."""
    check_period(start, end)
    asked = MapRequest(node, namespace, depth, limit, with_columns)
    if start is not None:
        at = end
    if not node and not namespace:
        jobs, datasets = _count(view, "job"), _count(view, "dataset")
        if jobs + datasets > limit:
            return {"at": when(at), "total": {"jobs": jobs, "datasets": datasets}, **_groups(view)}
    if start is None:
        return _answer(view, asked, _found(view, asked, at), at)
    period = start, NEVER if at is None else at
    before, now = _found(view, asked, start, period), _found(view, asked, at)
    changes = difference(*_moments(view, before, now, period))
    answer = _answer(view, asked, before | now, at, changes)
    return answer | {"from": when(start), "to": when(at)}


def _count(view: View, table: str) -> int:
    where = " AND root = id" if table == "dataset" else ""
    ((count,),) = view.all(f"SELECT count(*) FROM {table} WHERE hidden = 0{where}")  # noqa: S608
    gone = view.deleted_jobs()
    return int(count) - len(gone if table == "job" else left_behind(view, gone))


def _moments(
    view: View, before: Neighbourhood[Node], now: Neighbourhood[Node], period: tuple[int, int]
) -> list[Moment[Node]]:
    """What was there at two moments, by the rule of the list of differences: what has an edge."""
    both = before | now
    jobs = view.jobs(number for _, number in both.jobs)
    datasets = view.datasets(number for _, number in both.datasets)
    shown_jobs = shown_at(view, 1, {n: j.hidden == DELETED for n, j in jobs.items()}, period)
    gone = {number: one.hidden == DELETED for number, one in datasets.items()}
    shown_datasets = shown_at(view, 0, gone, period)
    found = []
    for part, of_jobs, of_datasets in zip((before, now), shown_jobs, shown_datasets, strict=True):
        there = {("job", n) for n in of_jobs} | {("dataset", n) for n in of_datasets}
        edges = frozenset(edge for edge in part.edges if there.issuperset(edge))
        found.append(Moment(frozenset(node for edge in edges for node in edge), edges))
    return found


def _found(
    view: View, asked: MapRequest, at: int | None, deleted_in: tuple[int, int] | None = None
) -> Neighbourhood[Node]:
    """What is to be drawn of a moment, with what is deleted now if that happened in a period."""
    graph = view.graph(at, deleted_in=deleted_in)
    if asked.node:
        start = node_of(view, asked.node)
        found = around(graph, start, depth=asked.depth, limit=asked.limit)
        # An application has no datasets of its own: what lies around it lies around its actions.
        for child in _actions(view, start, found):
            found |= around(graph, child, depth=asked.depth, limit=asked.limit)
        return found
    gone = view.deleted_jobs(at)
    unused = left_behind(view, gone, at)
    where = " WHERE (t.hidden = 0{})"
    params: list[str | int] = []
    if asked.namespace:
        where += " AND t.namespace = (SELECT id FROM namespace WHERE name = ?)"
        params.append(asked.namespace)
    if at is not None:
        where += " AND t.created <= ?"
        params.append(at)
    tail = where + " ORDER BY t.updated DESC, t.id LIMIT ?"
    nodes: list[Node] = []
    for table, own, left in (("dataset", "root", unused), ("job", "id", set(gone))):
        also = f" OR {drawn_though_deleted(table, deleted_in)}" if deleted_in else ""
        sql = f"SELECT t.{own} FROM {table} t" + tail.format(also)  # noqa: S608
        rows = view.all(sql, (*params, asked.limit + 1 + len(left)))
        nodes += [(table, n) for (n,) in rows if n not in left][: asked.limit + 1]
    return spanned(graph, nodes)


def _actions(view: View, start: Node, found: Neighbourhood[Node]) -> list[Node]:
    """The jobs that a job without datasets runs."""
    kind, number = start
    if kind != "job" or found.links:
        return []
    return [
        child.node for job in view.jobs([number]).values() for child in programs.children(view, job)
    ]


def _answer(
    view: View,
    asked: MapRequest,
    found: Neighbourhood[Node],
    at: int | None,
    changes: Difference[Node] | None = None,
) -> dict[str, Any]:
    shown = sorted(
        [*found.jobs.items(), *found.datasets.items()], key=lambda item: (item[1], item[0])
    )
    far = dict(shown[: asked.limit])
    jobs = view.jobs(number for kind, number in far if kind == "job")
    datasets = view.datasets(number for kind, number in far if kind == "dataset")
    graph = view.graph(at)
    more = hidden(graph, far, found.asked)
    nodes: dict[Node, dict[str, Any]] = {
        ("dataset", number): one for number, one in describe.datasets(view, datasets).items()
    }
    if asked.columns:
        facets = describe.Facets(view, (d.state.facets for d in datasets.values()), "schema")
        for number, dataset in datasets.items():
            fields = describe.flat(facets.raw(dataset.state.facets, "schema"), 100)
            nodes["dataset", number]["fields"] = fields
    pairs = paired(graph, [("job", number) for number in jobs])
    assumed = view.output_sources(at).assumed(jobs)
    for number, described in describe.jobs(view, list(jobs.values()), at).items():
        known = pairs.get(("job", number))
        nodes["job", number] = described | {
            "pairs": None
            if known is None
            else [
                {"origin": nodes[origin]["id"], "destination": nodes[destination]["id"]}
                for origin, destination in known
                if origin in nodes and destination in nodes
            ],
            "assumed": number in assumed,
        }
    above = programs.parents(view, jobs.values(), at)
    for number in jobs:
        nodes["job", number]["parent"] = describe.job_id(above[number]) if number in above else None
    beyond = {job.id: job for job in above.values() if job.id not in jobs}
    for node, one in nodes.items():
        up, down = more.get(node, (0, 0))
        one |= {"distance": far[node], "more": {"upstream": up, "downstream": down}}
    edges = {
        edge: {"origin": nodes[edge[0]]["id"], "destination": nodes[edge[1]]["id"]}
        for edge in map(flow, sorted(found.links))
        if edge[0] in nodes and edge[1] in nodes
    }
    if changes is not None:
        change = dict.fromkeys((*changes.appeared, *changes.added), "added")
        change |= dict.fromkeys((*changes.vanished, *changes.removed), "removed")
        for key, one in (*nodes.items(), *edges.items()):
            one["change"] = change.get(key, "")
    answer: dict[str, Any] = {
        "at": when(at),
        "nodes": sorted(nodes.values(), key=lambda node: str(node["id"])),
        "edges": list(edges.values()),
        "parents": list(describe.jobs(view, list(beyond.values()), at).values()),
        "truncated": found.cut or len(shown) > asked.limit,
    }
    if asked.columns:
        answer["columns"] = columns.between(view, datasets, at)
    return answer


def _groups(view: View) -> dict[str, Any]:
    """The namespaces of an estate too large to draw, and what flows between them."""
    groups: dict[str, dict[str, Any]] = {}

    def group(name: str) -> dict[str, Any]:
        fresh = {
            "id": f"namespace:{name}",
            "namespace": name,
            "jobs": 0,
            "datasets": 0,
            "states": {},
        }
        return groups.setdefault(name, fresh)

    sql = (
        "SELECT n.name, r.status, count(*) FROM job j JOIN namespace n ON n.id = j.namespace"
        " LEFT JOIN run r ON r.id = j.latest WHERE j.hidden = 0 GROUP BY n.name, r.status"
    )
    for name, status, count in view.all(sql):
        one = group(name)
        one["jobs"] += count
        one["states"][STATUSES[status or 0].value] = count
    ended_states = describe.states_of_deleted(view)
    for number, job in view.jobs(ended_states).items():
        one = group(job.space)
        one["jobs"] -= 1
        one["states"][ended_states[number].value] -= 1
    for ended in describe.planned_ends(view):
        states = group(ended.job.space)["states"]
        states[ended.state.value] -= 1
        states[ended.how.name] = states.get(ended.how.name, 0) + 1
    sql = (
        "SELECT n.name, count(*) FROM dataset d JOIN namespace n ON n.id = d.namespace"
        " WHERE d.hidden = 0 AND d.root = d.id GROUP BY n.name"
    )
    for name, count in view.all(sql):
        group(name)["datasets"] += count
    for unused in view.datasets(left_behind(view, ended_states)).values():
        group(unused.space)["datasets"] -= 1
    there = [one for one in groups.values() if one["jobs"] or one["datasets"]]
    largest = sorted(there, key=lambda g: (-g["jobs"] - g["datasets"], g["namespace"]))
    kept = {g["namespace"] for g in largest[:NODES]}
    edges: list[dict[str, Any]] = []
    for job_space, dataset_space, direction, count in view.namespace_edges():
        if job_space != dataset_space and {job_space, dataset_space} <= kept:
            ends = (f"namespace:{dataset_space}", f"namespace:{job_space}")
            origin, destination = reversed(ends) if direction == OUTPUT else ends
            edges.append({"origin": origin, "destination": destination, "count": count})
    return {
        "groups": largest[:NODES],
        "nodes": [],
        "parents": [],
        "edges": sorted(edges, key=lambda e: -e["count"])[:1_000],
        "truncated": len(largest) > NODES,
    }
