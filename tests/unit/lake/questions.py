"""Every question that the lake is asked, put to a lake and to a server's store of the same log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from headwater.lake.answers import Scratch, Wanted, select
from headwater.lineage.moments import iso
from headwater.lineage.url_paths import path_of

from .estates import BASE, DATASETS, FIELDS, JOBS, NAMESPACE

if TYPE_CHECKING:
    from headwater.lake.answers import LakeSource
    from headwater.server.store import Store

LATER = (BASE + 40 * 365 * 86_400) * 1_000_000
"""Behind the commands, which a server dates by its clock."""
moments = st.one_of(
    st.integers(0, 41).map(lambda minute: (BASE + minute * 60 + 30) * 1_000_000), st.just(LATER)
)
datasets = st.sampled_from(DATASETS)
fields = st.sampled_from(["", *FIELDS])
nodes = st.sampled_from([*(f"job:jobs:{job}" for job in JOBS), ""])
depths = st.integers(0, 3)


class Question(NamedTuple):
    """What of the lake has to be read, and the request that is answered from it."""

    wanted: Wanted
    path: str
    query: dict[str, str]


def answered(scratch: Scratch, path: str, query: dict[str, str]) -> Any:
    response = scratch.get(path, query)
    return response.status_code, response.json()


def asked(store: Store, path: str, query: dict[str, str]) -> Any:
    from headwater.server.app import App, ServerSettings

    scratch = Scratch.__new__(Scratch)
    scratch.app = App(store, ServerSettings(page=False))
    return answered(scratch, path, query)


def agree(lake: LakeSource, store: Store, question: Question) -> int:
    """Hold the lake's answer to the server's; answers its status."""
    with Scratch(lake.records(select(lake, question.wanted))) as scratch:
        found = answered(scratch, question.path, question.query)
    expected = asked(store, question.path, question.query)
    # What lies near a name that is not there differs.
    assert found == expected or found[0] == expected[0] == 404, question
    return int(found[0])


def trace(name: str, at: int | None, field: str, *, down: bool) -> Question:
    direction = "down" if down else "up"
    during = None if at is None else (at, at)
    typed = f"{name}.{field}" if field else name
    query = {"node": _node(name, field), "direction": direction, "depth": "20"}
    if at is not None:
        query["at"] = iso(at)
    return Question(Wanted(typed, direction, moments=(during,)), "/api/v2/trace", query)


def difference(one: int, other: int) -> Question:
    start, end = sorted((one, other + 1))
    query = {"from": iso(start), "to": iso(end), "limit": "5000"}
    return Question(Wanted(period=(start, end)), "/api/v2/graph/diff", query)


def difference_around(name: str, one: int, other: int, depth: int) -> Question:
    start, end = sorted((one, other + 1))
    _, path, query = difference(one, other)
    wanted = Wanted(name, moments=((start, start), (end, end)), depth=depth)
    return Question(wanted, path, {**query, "depth": str(depth), "node": _node(name, "")})


def audit(name: str, one: int, other: int, field: str) -> Question:
    start, end = sorted((one, other + 1))
    query = {"from": iso(start), "to": iso(end), "depth": "20"}
    if field:
        query["column"] = field
    path = path_of("api", "v2", "datasets", NAMESPACE, name, "audit")
    return Question(Wanted(name, "both", moments=((start, end),), depth=20), path, query)


def map_around(node: str, at: int) -> Question:
    """Around a job, or of the whole estate."""
    query = {"at": iso(at), "depth": "2"} | ({"node": node} if node else {})
    wanted = Wanted(moments=((at, at),), depth=2, node=node, programs=True)
    return Question(wanted, "/api/v2/map", query)


def columns(name: str, at: int, field: str, depth: int) -> Question:
    node = _node(name, field)
    wanted = Wanted(node=node, direction="both", moments=((at, at),), depth=depth)
    return Question(wanted, "/api/v2/columns", {"node": node, "at": iso(at), "depth": str(depth)})


def _node(name: str, field: str) -> str:
    return f"datasetField:{NAMESPACE}:{name}:{field}" if field else f"dataset:{NAMESPACE}:{name}"
