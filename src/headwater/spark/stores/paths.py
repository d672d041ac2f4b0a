"""Files: many paths become the few folders that a person would name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.lineage.naming import DatasetName, NamingError, from_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 10
_PARTITION = re.compile(r"/[^/=]+=[^/]*$")
_LOG = re.compile(r"/(?:_delta_log|\.hoodie)(?:[/\[\]]|$)")
_GLOB = re.compile(r"/[^/]*[*?{\[].*$")


def name_of(path: str) -> DatasetName | None:
    """The name of what lies at a path, or None when the path says nothing."""
    try:
        return from_uri(path)
    except NamingError:
        return None


def is_log(path: str) -> bool:
    """Whether a path leads into a table's own log."""
    return _LOG.search(path) is not None


def roots(paths: Iterable[str]) -> list[DatasetName]:
    """The datasets behind paths: partitions and patterns cut off, too many gathered in one.

    The log in which Delta or Hudi keeps account of a table is no dataset.
    """
    found: dict[DatasetName, None] = {}
    for path in paths:
        if is_log(path):
            continue
        if (name := name_of(root(path))) is not None:
            found[name] = None
    names = list(found)
    if len(names) <= MOST:
        return names
    gathered: dict[DatasetName, None] = {}
    for namespace in dict.fromkeys(name.namespace for name in names):
        inside = [name.name for name in names if name.namespace == namespace]
        gathered[DatasetName(namespace, common(inside))] = None
    return list(gathered)


def root(path: str) -> str:
    """A path without its partition folders and without a pattern."""
    path = _GLOB.sub("", path.rstrip("/")) or path
    while match := _PARTITION.search(path):
        path = path[: match.start()]
    return path


def common(paths: list[str]) -> str:
    """The deepest folder that holds all of them."""
    parts = [path.split("/") for path in paths]
    shared: list[str] = []
    for step in zip(*parts, strict=False):
        if len(set(step)) > 1:
            break
        shared.append(step[0])
    return "/".join(shared) or "/"
