"""Paths: which dataset lies at one, without the folders of partitions and the patterns of a glob."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.lineage.naming import DatasetName, NamingError, from_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TYPED = 10_000
_PARTITION = re.compile(r"/[^/=]+=[^/]*$")
_GLOB = re.compile(r"/[^/]*[*?{\[].*$")
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]*:(?://[^/]*)?")
_PART_FILE = re.compile(r"^(?:part-\d{5}|\d{6}_\d)")


def name_of(path: str) -> DatasetName | None:
    """The name of what lies at a path, or None when the path names nothing."""
    try:
        return from_uri(path)
    except NamingError:
        return None


def root(path: str) -> str:
    """A path without its partition folders and without a pattern."""
    path = _GLOB.sub("", path.rstrip("/")) or path
    while match := _PARTITION.search(path):
        path = path[: match.start()]
    return path


def in_partition(path: str) -> bool:
    """Whether a path is a partition's folder, a part of its dataset."""
    return _PARTITION.search(path.rstrip("/")) is not None


def is_part_file(path: str) -> bool:
    """Whether a path has the name of a file that Spark or Hive writes into a dataset's folder."""
    return bool(_PART_FILE.match(path.rpartition("/")[2]))


class TypedPaths:
    """The paths that a program gave to readers: Spark's plans show only what they were expanded to."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._exact: dict[str, None] = {}
        self._names: set[str] = set()
        """The last parts of relative paths, so that few paths are compared with all of them."""
        self._stems: dict[str, None] = {}
        """What stands before the first pattern of a glob."""
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """Remember a path; beyond a limit the oldest are forgotten."""
        stem = _GLOB.sub("", f"/{path}").removeprefix("/")
        kept = self._exact if stem == path else self._stems
        comparable = _comparable(stem)
        kept[comparable] = None
        if comparable[:1] != "/":
            self._names.add(comparable.rpartition("/")[2])
        if len(kept) > MAX_TYPED:
            kept.pop(next(iter(kept)))

    def has(self, path: str) -> bool:
        """Whether the program gave this very path."""
        found = _comparable(path)
        if found in self._exact:
            return True
        return found.rpartition("/")[2] in self._names and any(
            found.endswith(f"/{one}") for one in self._exact if one[:1] != "/"
        )

    def has_glob_of(self, path: str) -> bool:
        """Whether the program gave a pattern that the path may come from."""
        found = f"{_comparable(path)}/"
        return any(
            found.startswith(f"{stem}/")
            if stem[:1] == "/"
            else f"/{stem}/".replace("//", "/") in found
            for stem in self._stems
        )


def _comparable(path: str) -> str:
    """A path without scheme and host, which Spark adds to what was given."""
    return _SCHEME.sub("", path).rstrip("/").removeprefix("./")


TYPED = TypedPaths()
"""What the readers of this process were given."""
