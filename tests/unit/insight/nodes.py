"""Jobs and datasets by name, as nodes of graphs made up in tests."""

from __future__ import annotations

from typing import NamedTuple


class Node(NamedTuple):
    kind: str
    name: str


def job(name: str) -> Node:
    return Node("job", name)


def dataset(name: str) -> Node:
    return Node("dataset", name)
