"""Which names can be stored: those that fit into a key of PostgreSQL's indexes, on both stores, and so many.

Events are held to it before anything is written, so that one name that is too long is refused by
its field (422) and neither fails a commit that other events share nor is sent again for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.openlineage.events import FACET_MEMBERS, EventError, EventProblem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "NAMING_FACETS",
    "check_command",
    "further_datasets",
    "named_datasets",
    "too_long",
    "unfit_in_facet",
]

_INDEXED = ("namespace", "name", "clusterId")
NAMING_FACETS = {
    "columnLineage", "lineage", "symlinks", "lifecycleStateChange", "dataSource",
    "headwater_cluster",
}  # fmt: skip
"""The facets that name a dataset, a source or a cluster which becomes a row of its own."""
_COMMAND = ("namespace", "name", "tag", "field")


def too_long(text: str, limit: int) -> str | None:
    """What is wrong with a name of more than `limit` bytes, or None."""
    # A character has four bytes at most, so most names need not be encoded to be measured.
    if len(text) * 4 <= limit or (size := len(text.encode())) <= limit:
        return None
    return f"{size} bytes, more than the limit of {limit}"


def unfit_in_facet(facet: str, body: bytes, value: Any, limit: int) -> EventProblem | None:
    """The first name in a facet that cannot be stored, as a problem with its path in the facet.

    `body` is the canonical form of `value`.
    """
    if facet not in NAMING_FACETS:
        return None
    # Without an empty `name` or `namespace`, or a string that long, there is nothing to find. To
    # search for those is far cheaper than a walk.
    named = facet == "columnLineage" and body.find(b'e":""') >= 0
    if not named and not _has_long_string(body, limit):
        return None
    for path, text in _names(value, facet):
        if problem := too_long(text, limit):
            return EventProblem(path, problem)
        if named and not text:
            return EventProblem(path, "is empty")
    return None


def _has_long_string(body: bytes, limit: int) -> bool:
    """Whether JSON may hold a string of more than `limit` bytes; escaped quotes make it unsure."""
    if len(body) <= limit:
        return False
    if body.find(b"\\") >= 0:
        return True
    start = 0
    while len(body) - start > limit:
        quote = body.rfind(b'"', start, start + limit + 1)
        if quote < 0:
            return True
        start = quote + 1
    return False


def _names(value: Any, path: str) -> Iterator[tuple[str, str]]:
    stack = [(path, value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, dict):
            for key, child in item.items():
                if isinstance(child, str):
                    if key in _INDEXED:
                        yield f"{path}.{key}", child
                else:
                    stack.append((f"{path}.{key}", child))
        elif isinstance(item, list):
            stack += [(f"{path}[{i}]", child) for i, child in enumerate(item)]


def named_datasets(value: Any) -> set[tuple[str, str]]:
    """The datasets that a facet names, wherever in it."""
    found = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            space, name = item.get("namespace"), item.get("name")
            if isinstance(space, str) and isinstance(name, str):
                found.add((space, name))
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return found


def further_datasets(event: Any) -> int:
    """How many datasets the facets of an event name that are neither inputs nor outputs."""
    listed = [*(event.get("inputs") or ()), *(event.get("outputs") or ())]
    found: set[tuple[str, str]] = set()
    for part in (event.get("run"), event.get("job"), event.get("dataset"), *listed):
        for member in FACET_MEMBERS if part else ():
            facets = part.get(member) or {}
            for name in NAMING_FACETS & facets.keys():
                found |= named_datasets(facets[name])
    return len(found.difference((part["namespace"], part["name"]) for part in listed))


def check_command(command: Mapping[str, Any], limit: int) -> None:
    """Refuse a change made by hand whose names cannot be stored; raises EventError."""
    texts = [(key, command[key]) for key in _COMMAND if isinstance(command.get(key), str)]
    texts += [("alias", text) for text in command.get("alias") or ()]
    problems = [
        EventProblem(key, problem) for key, text in texts if (problem := too_long(text, limit))
    ]
    if problems:
        raise EventError(problems)
