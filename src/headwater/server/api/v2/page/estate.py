"""The map: a neighbourhood, a namespace or the whole estate, never more than can be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.server.api.v1.nodes import dataset_node, job_node, kind_of
from headwater.server.api.v1.present import when
from headwater.server.api.v1.search import moment
from headwater.server.api.v2.page import columns, describe
from headwater.server.http import HttpError
from headwater.server.store.entities import OUTPUT, STATUSES
from headwater.server.store.neighbourhood import Found, Neighbourhood

if TYPE_CHECKING:
    from headwater.server.http import Request
    from headwater.server.store.neighbourhood import Edge
    from headwater.server.store.view import View

__all__ = ["draw"]

NODES = 300
Key = tuple[str, int]
"""A node: the letter j or d, and its id."""


def draw(view: View, request: Request) -> dict[str, Any]:
    """Nodes and edges as of now or a moment, or the difference between two moments."""
    limit = request.integer("limit", NODES, 1, NODES)
    start = moment(request, "from", 0) if request.query.get("from") else None
    at = _moment(request, "at")
    if start is not None:
        at = _moment(request, "to")
    if not request.query.get("node") and not request.query.get("namespace"):
        jobs, datasets = _count(view, "job"), _count(view, "dataset")
        if jobs + datasets > limit:
            return {"at": when(at), "total": {"jobs": jobs, "datasets": datasets}, **_groups(view)}
    now = _found(view, request, at, limit)
    found, change = now, dict.fromkeys(now.edges, "")
    if start is not None:
        before = _found(view, request, start, limit)
        change = {e: "" if e in before.edges else "added" for e in now.edges}
        change |= dict.fromkeys(before.edges - now.edges, "removed")
        found = Found(
            {**before.jobs, **now.jobs}, {**before.datasets, **now.datasets}, set(change),
            before.cut or now.cut,
        )  # fmt: skip
    answer = _answer(view, request, found, limit, at)
    if start is not None:
        answer |= {"from": when(start), "to": when(at)}
        _mark(answer, before, now)
    ids = answer.pop("ids")
    answer["edges"] = [
        _edge(edge, ids) | ({"change": change[edge]} if start is not None else {})
        for edge in sorted(found.edges)
        if ("j", edge[0]) in ids and ("d", edge[1]) in ids
    ]
    return answer


def _moment(request: Request, name: str) -> int | None:
    return moment(request, name, 0) if request.query.get(name) else None


def _count(view: View, table: str) -> int:
    where = " AND root = id" if table == "dataset" else ""
    ((count,),) = view.all(f"SELECT count(*) FROM {table} WHERE hidden = 0{where}")  # noqa: S608
    return int(count)


def _found(view: View, request: Request, at: int | None, limit: int) -> Found:
    around = Neighbourhood(view, at)
    node, namespace = request.query.get("node"), request.query.get("namespace")
    if node:
        kind, rest = kind_of(node)
        depth = request.integer("depth", 2, 0, 20)
        if kind == "dataset":
            start = [dataset_node(view, rest).root]
            return around.around(datasets=start, depth=depth, limit=limit)
        if kind == "job":
            return around.around(jobs=[job_node(view, rest).id], depth=depth, limit=limit)
        raise HttpError(400, "node: must be a dataset or a job")
    where = " WHERE t.hidden = 0"
    params: list[str | int] = []
    if namespace:
        where += " AND t.namespace = (SELECT id FROM namespace WHERE name = ?)"
        params.append(namespace)
    if at is not None:
        where += " AND t.created <= ?"
        params.append(at)
    tail = where + " ORDER BY t.updated DESC, t.id LIMIT ?"
    values = (*params, limit + 1)
    jobs = [row[0] for row in view.all("SELECT t.id FROM job t" + tail, values)]  # noqa: S608
    own = [row[0] for row in view.all("SELECT t.root FROM dataset t" + tail, values)]  # noqa: S608
    found = Found(dict.fromkeys(jobs, 0), dict.fromkeys(own, 0))
    found.edges = {*around.of_jobs(jobs), *around.of_datasets(own)}
    for job, dataset, _ in found.edges:
        found.jobs.setdefault(job, 1)
        found.datasets.setdefault(dataset, 1)
    return found


def _answer(
    view: View, request: Request, found: Found, limit: int, at: int | None
) -> dict[str, Any]:
    shown = sorted(
        [("j", n, far) for n, far in found.jobs.items()]
        + [("d", n, far) for n, far in found.datasets.items()],
        key=lambda item: (item[2], item[0], item[1]),
    )
    far = {(letter, number): distance for letter, number, distance in shown[:limit]}
    jobs = view.jobs(number for letter, number in far if letter == "j")
    datasets = view.datasets(number for letter, number in far if letter == "d")
    more = _hidden(view, far, at)
    facets = describe.Facets(
        view, (d.state.facets for d in datasets.values()), "catalog", "storage", "schema"
    )
    with_columns = request.flag("columns")
    nodes: list[dict[str, Any]] = []
    for number, dataset in datasets.items():
        node: dict[str, Any] = {
            "id": describe.dataset_id(dataset),
            "kind": "dataset",
            "namespace": dataset.space,
            "name": dataset.name,
            "store": describe.store_of(dataset, facets),
            "type": dataset.kind.lower(),
            "updatedAt": when(dataset.updated),
        }
        if with_columns:
            node["fields"] = describe.flat(facets.raw(dataset.state.facets, "schema"), 100)
        nodes.append(node | _place(("d", number), far, more))
    for number, job in describe.jobs(view, list(jobs.values()), at).items():
        nodes.append(job | _place(("j", number), far, more))
    ids = {("d", n): describe.dataset_id(d) for n, d in datasets.items()}
    ids |= {("j", n): describe.job_id(j) for n, j in jobs.items()}
    answer: dict[str, Any] = {
        "at": when(at),
        "nodes": sorted(nodes, key=lambda node: str(node["id"])),
        "edges": [],
        "truncated": found.cut or len(shown) > limit,
        "ids": ids,
    }
    if with_columns:
        answer["columns"] = columns.between(view, datasets, at)
    return answer


def _place(key: Key, far: dict[Key, int], more: dict[Key, tuple[int, int]]) -> dict[str, Any]:
    up, down = more.get(key, (0, 0))
    return {"distance": far[key], "more": {"upstream": up, "downstream": down}}


def _hidden(view: View, shown: dict[Key, int], at: int | None) -> dict[Key, tuple[int, int]]:
    """For each node shown: how many before and after it are not."""
    around = Neighbourhood(view, at)
    counts: dict[Key, tuple[int, int]] = {}
    edges = {*around.of_jobs([n for k, n in shown if k == "j"])}
    edges |= {*around.of_datasets([n for k, n in shown if k == "d"])}
    for job, dataset, direction in edges:
        ends: tuple[Key, Key] = (("j", job), ("d", dataset))
        for mine, other in (ends, ends[::-1]):
            if mine in shown and other not in shown:
                up, down = counts.get(mine, (0, 0))
                before = (direction == OUTPUT) == (mine[0] == "d")
                counts[mine] = (up + 1, down) if before else (up, down + 1)
    return counts


def _edge(edge: Edge, ids: dict[Key, str]) -> dict[str, str]:
    ends = (ids["d", edge[1]], ids["j", edge[0]])
    origin, destination = reversed(ends) if edge[2] == OUTPUT else ends
    return {"origin": origin, "destination": destination}


def _mark(answer: dict[str, Any], before: Found, now: Found) -> None:
    """Say of each node whether it came or went."""
    by_id = {node["id"]: node for node in answer["nodes"]}
    for (letter, number), node_id in answer["ids"].items():
        was = number in (before.jobs if letter == "j" else before.datasets)
        has = number in (now.jobs if letter == "j" else now.datasets)
        by_id[node_id]["change"] = "" if was == has else "added" if has else "removed"


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
    sql = (
        "SELECT n.name, count(*) FROM dataset d JOIN namespace n ON n.id = d.namespace"
        " WHERE d.hidden = 0 AND d.root = d.id GROUP BY n.name"
    )
    for name, count in view.all(sql):
        group(name)["datasets"] += count
    largest = sorted(groups.values(), key=lambda g: (-g["jobs"] - g["datasets"], g["namespace"]))
    kept = {g["namespace"] for g in largest[:NODES]}
    sql = (
        # The edges of a part are its whole's, unless that has them itself.
        "SELECT a.name, b.name, e.direction, count(*) FROM edge e LEFT JOIN fold f ON f.job = e.job"
        " JOIN job j ON j.id = coalesce(f.whole, e.job) JOIN dataset d ON d.id = e.dataset"
        " JOIN namespace a ON a.id = j.namespace JOIN namespace b ON b.id = d.namespace"
        " WHERE e.until IS NULL AND j.hidden = 0 AND d.hidden = 0 AND (f.whole IS NULL"
        " OR NOT EXISTS (SELECT 1 FROM edge o WHERE o.job = f.whole AND o.dataset = e.dataset"
        " AND o.direction = e.direction AND o.until IS NULL)) GROUP BY a.name, b.name, e.direction"
    )
    edges = []
    for job_space, dataset_space, direction, count in view.all(sql):
        if job_space != dataset_space and {job_space, dataset_space} <= kept:
            ends = (f"namespace:{dataset_space}", f"namespace:{job_space}")
            origin, destination = reversed(ends) if direction == OUTPUT else ends
            edges.append({"origin": origin, "destination": destination, "count": count})
    return {
        "groups": largest[:NODES],
        "nodes": [],
        "edges": sorted(edges, key=lambda e: -int(e["count"]))[:1_000],
        "truncated": len(largest) > NODES,
    }
