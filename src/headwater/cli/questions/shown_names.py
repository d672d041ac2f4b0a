"""What the jobs and datasets of one answer are called, so that no two of them look alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from headwater.cli.server.client import name_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["ShownNames", "column_ends", "dataset_id", "job_names"]


class ShownNames:
    """Names of nodes by their ids: without the namespace, unless another of the kind has the same."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self._often = Counter((_kind(node), name_in(node)) for node in set(nodes))

    def of(self, node: str, name: str = "") -> str:
        """The name of one node; `name` is its own, where the answer has it beside the id."""
        found = name_in(node)
        return node.partition(":")[2] if self._often[_kind(node), found] > 1 else name or found

    def path(self, nodes: Sequence[str]) -> str:
        """A way over jobs and datasets; of a name that both have, also which it is."""
        named = [(_kind(node), self.of(node)) for node in nodes]
        kinds: dict[str, set[str]] = {}
        for kind, name in named:
            kinds.setdefault(name, set()).add(kind)
        return " → ".join(
            f"{kind} {name}" if len(kinds[name]) > 1 else name for kind, name in named
        )


def job_names(jobs: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """What jobs are called, by namespace and name: with the namespace where two have one name."""
    known = {(str(job["namespace"]), str(job["name"])) for job in jobs}
    often = Counter(name for _, name in known)
    return {(space, name): f"{space}:{name}" if often[name] > 1 else name for space, name in known}


def dataset_id(named: Mapping[str, Any]) -> str:
    """The id of a dataset that an answer has by namespace and name."""
    return f"dataset:{named['namespace']}:{named['name']}"


def column_ends(edge: Mapping[str, Any]) -> tuple[str, str]:
    """The columns at the ends of an edge as they are typed; a server of an earlier release has only ids."""
    origin, destination = edge["origin"], edge["destination"]
    return edge.get("originName", origin), edge.get("destinationName", destination)


def _kind(node: str) -> str:
    return node.partition(":")[0]
