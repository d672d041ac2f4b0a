"""Node ids: `dataset:ns:name`, `job:ns:name`, `datasetField:ns:name:field`, `run:uuid`.

Namespaces hold colons, and so may names, so every split is tried against what exists.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.server.http import HttpError

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["column_node", "dataset_node", "job_node", "kind_of", "splits"]

# marquez-python appends `#` and a dataset version; columns are those of the current one.
_VERSION = re.compile(r"#[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")


def kind_of(node_id: str | None) -> tuple[str, str]:
    """The kind of a node id and what follows it."""
    kind, _, rest = _VERSION.sub("", node_id or "").partition(":")
    if kind not in ("dataset", "job", "datasetField", "run") or not rest:
        raise HttpError(404, "HTTP 404 Not Found")
    return kind, rest


def splits(text: str) -> list[tuple[str, str]]:
    """Every way to cut `ns:name` in two, the longest namespace first."""
    cuts = [i for i, c in enumerate(text) if c == ":"]
    return [(text[:i], text[i + 1 :]) for i in reversed(cuts) if text[i + 1 :]]


def dataset_node(view: View, text: str) -> Dataset:
    """The dataset that `ns:name` names."""
    for namespace, name in splits(text):
        found = view.dataset(namespace, name)
        if found is not None and not found.hidden:
            return found
    raise HttpError(404, f"Dataset '{text.rpartition(':')[2]}' not found.")


def job_node(view: View, text: str) -> Job:
    """The job that `ns:name` names, or that what it names is a part of."""
    for namespace, name in splits(text):
        found = view.shown(namespace, name)
        if found is not None:
            return found
    raise HttpError(404, f"Job '{text.rpartition(':')[2]}' not found.")


def column_node(view: View, text: str) -> tuple[Dataset, str]:
    """The dataset and the column that `ns:name:field` names."""
    for owner, field in splits(text):
        for namespace, name in splits(owner):
            found = view.dataset(namespace, name)
            if found is not None and not found.hidden:
                return found, field
    raise HttpError(404, "Could not find node")
