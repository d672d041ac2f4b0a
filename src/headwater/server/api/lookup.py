"""What a path or a node id names: `dataset:ns:name`, `job:ns:name`, `datasetField:ns:name:field`.

Namespaces hold colons, and so may names, so every way to cut the id is looked up, all in few queries:
an id of nothing but colons must not cost one for each.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING
from uuid import UUID

from headwater.insight import beside
from headwater.lineage.openlineage.repairs import to_run_uuid
from headwater.server.api.facet_columns import field_names
from headwater.server.http import HttpError, HttpNotFoundError
from headwater.server.store.database import within
from headwater.server.store.read.timeline import members, schemas, schemas_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Dataset, Job, Node, Run
    from headwater.server.store.view import View

__all__ = [
    "column_node",
    "columns_of",
    "dataset_node",
    "had_column",
    "has_column",
    "job_node",
    "kind_of",
    "namespace_id",
    "nearest",
    "node_of",
    "the_dataset",
    "the_job",
    "the_run",
    "to_uuid",
]

LONGEST = 4_096
"""Characters of a node id in which a namespace, or the name behind it, is looked for."""
CUTS = 10_000
VERSIONS = 1_000
PAIRS = 2_000_000
"""Characters of a name times those of the names that it is compared with: 2,000 names of 30 letters."""
NO_NODE = (
    "not a node: one is written dataset:NAMESPACE:NAME, job:NAMESPACE:NAME"
    " or datasetField:NAMESPACE:NAME:COLUMN"
)
KEYS = "WITH k (space, name) AS ({in}) SELECT k.space, k.name FROM k"
# marquez-python appends `#` and a dataset version; columns are those of the current one.
_VERSION = re.compile(r"#[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")


def namespace_id(view: View, namespace: str) -> int:
    """The id of a namespace that is shown."""
    found = _namespace(view, namespace)
    if found is None:
        raise HttpError(404, f"Namespace '{namespace}' not found.")
    return found


def _namespace(view: View, namespace: str) -> int | None:
    rows = view.all("SELECT id FROM namespace WHERE name = ? AND hidden = 0", (namespace,))
    return int(rows[0][0]) if rows else None


def _check_namespace(view: View, namespace: str, kind: str, name: str) -> None:
    if _namespace(view, namespace) is None:
        raise HttpNotFoundError(f"Namespace '{namespace}' not found.", kind, name)


def the_dataset(view: View, namespace: str, name: str) -> Dataset:
    """The dataset of this name, or the one that it stands for."""
    found = view.dataset(namespace, name)
    # The namespace of an alias may hold nothing of its own.
    if found is None or found.space == namespace:
        _check_namespace(view, namespace, "dataset", name)
    if found is None or found.hidden:
        raise HttpNotFoundError(f"Dataset '{name}' not found.", "dataset", name)
    return found


def the_job(view: View, namespace: str, name: str) -> Job:
    """The job of this name, or the parent job it is merged into."""
    _check_namespace(view, namespace, "job", name)
    found = view.shown(namespace, name)
    if found is None:
        raise HttpNotFoundError(f"Job '{name}' not found.", "job", name)
    return found


def to_uuid(text: str) -> UUID:
    """A UUID from the path; anything else is not found."""
    try:
        return UUID(text)
    except ValueError:
        raise HttpError(404, f"'{text[:64]}' is not a UUID.") from None


def the_run(view: View, text: str) -> Run:
    """The run of this UUID, or of the name that stands for one."""
    found = view.run(to_run_uuid(text))
    if found is None or found.state.static:
        raise HttpError(404, f"Run '{text}' not found.")
    return found


def kind_of(node_id: str, otherwise: str = NO_NODE) -> tuple[str, str]:
    """The kind of a node id and what follows it; 404 with `otherwise` for what is none."""
    kind, _, rest = _VERSION.sub("", node_id).partition(":")
    if kind not in ("dataset", "job", "datasetField", "run") or not rest:
        raise HttpError(404, otherwise)
    return kind, rest


def _cuts(text: str) -> list[tuple[str, str]]:
    """Every way to cut `left:right` in two, the longest left side first."""
    cuts = [i for i, c in enumerate(text[:LONGEST]) if c == ":"]
    return [(text[:i], text[i + 1 :]) for i in reversed(cuts) if text[i + 1 :]]


def _splits(view: View, text: str) -> list[tuple[str, str]]:
    """Every way to cut `ns:name` in two with a namespace that is known, the longest first."""
    spaces = [text[:i] for i, c in enumerate(text[:LONGEST]) if c == ":"]
    known = {
        row[0]
        for sql in (
            "SELECT name FROM namespace WHERE name IN ({in})",
            "SELECT DISTINCT namespace FROM alias WHERE namespace IN ({in})",
        )
        for row in within(view.connection, sql, spaces)
    }
    return [(space, text[len(space) + 1 :]) for space in sorted(known, key=len, reverse=True)]


def _length(key: tuple[str, str]) -> tuple[int, int]:
    return len(key[0]) + len(key[1]), len(key[0])


def dataset_node(view: View, text: str) -> Dataset:
    """The dataset that `ns:name` names."""
    for namespace, name in _splits(view, text):
        found = view.dataset(namespace, name)
        if found is not None and not found.hidden:
            return found
    name = text.rpartition(":")[2]
    raise HttpNotFoundError(f"Dataset '{name[:200]}' not found.", "dataset", name)


def job_node(view: View, text: str) -> Job:
    """The job that `ns:name` names, or the parent job it is merged into."""
    for namespace, name in _splits(view, text):
        found = view.shown(namespace, name)
        if found is not None:
            return found
    name = text.rpartition(":")[2]
    raise HttpNotFoundError(f"Job '{name[:200]}' not found.", "job", name)


def column_node(view: View, text: str) -> tuple[Dataset, str]:
    """The dataset and the column that `ns:name:field` names: the longest dataset that is known."""
    pairs = [(space, name) for space, rest in _splits(view, text) for name, _ in _cuts(rest)]
    if len(pairs) > CUTS:
        raise HttpError(400, "the node id has too many colons to tell namespace, name and field")
    known = {
        (row[0], row[1])
        for join in (
            "namespace n ON n.name = k.space JOIN dataset d ON d.namespace = n.id AND d.name = k.name",
            "alias a ON a.namespace = k.space AND a.name = k.name",
        )
        for row in within(view.connection, f"{KEYS} JOIN {join}", pairs)
    }
    for namespace, name in sorted(known, key=_length, reverse=True):
        found = view.dataset(namespace, name)
        if found is not None and not found.hidden:
            return found, text[len(namespace) + len(name) + 2 :]
    raise HttpError(404, f"Dataset of the column '{text[:200]}' not found.")


def has_column(view: View, dataset: Dataset, name: str, at: int | None = None) -> bool | None:
    """Whether a dataset has a column, or had it at a moment.

    None while no producer has reported its columns.
    """
    known = columns_of(view, dataset, at)
    graph = view.column_graph(at)
    if name in known or any(beside(graph, (dataset.root, name))):
        return True
    return False if known or graph.outputs([dataset.root]) else None


def had_column(view: View, dataset: Dataset, name: str, since: int, until: int) -> bool | None:
    """Whether a dataset has a column now, or had it at some time in a period."""
    now = has_column(view, dataset, name)
    if now:
        return now
    versions = schemas(view, members(view, dataset.root), until, VERSIONS)
    later = [facet for time, facet in versions if time > since]
    numbers = [*later, *(facet for _, facet in versions[len(later) :][:1])]
    bodies = view.bodies(numbers)
    if any(name in field_names(number, bodies) for number in numbers):
        return True
    return any(beside(view.column_graph(until, since), (dataset.root, name))) or now


def columns_of(view: View, dataset: Dataset, at: int | None = None) -> set[str]:
    """The columns that the schema of a dataset names now or named at a moment, by dotted name."""
    if at is None:
        own = {d.id: d for d in (dataset, *view.datasets([dataset.root]).values())}
        numbers = [held[0] for d in own.values() if (held := d.state.facets.get("schema"))]
    else:
        numbers = list(schemas_at(view, [dataset.root], at).values())
    bodies = view.bodies(numbers)
    return set().union(*(field_names(number, bodies) for number in numbers))


def node_of(view: View, node_id: str) -> Node:
    """The job or the dataset of the graph that a node id names."""
    kind, rest = kind_of(node_id)
    if kind == "dataset":
        return dataset_node(view, rest).node
    if kind == "job":
        return job_node(view, rest).node
    raise HttpError(400, "node: must be a dataset or a job")


def nearest(wanted: str, known: Iterable[str]) -> list[str]:
    """Up to five names that are most like one; the first of them where none is.

    To compare two takes up to 0.1 µs for each character of one and each of the other, in which
    every other answer waits.
    """
    names, wanted = list(known), wanted[:200]
    left, compared = PAIRS // (len(wanted) or 1), []
    for name in names:
        if len(name) > 4 * len(wanted):  # too long to be like it
            continue
        left -= len(name)
        if left < 0:
            break
        compared.append(name)
    return difflib.get_close_matches(wanted, compared, n=5, cutoff=0.4) or names[:5]
