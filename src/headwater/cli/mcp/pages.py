"""Addresses of the page that depend on what was asked and answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from headwater.lineage.url_paths import path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["difference", "graph_of_trace", "impact", "of_dataset", "why"]

NEAR = 2
"""How many jobs far the graph goes by itself."""
DEPTHS = (2, 3, 4, 6, 10)
"""How many jobs far a person can choose to go there."""


def of_dataset(known: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    """The page of a dataset."""
    return path_of("datasets", known["namespace"], known["name"])


def graph_of_trace(known: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The graph as far as a tree goes, with the column lit whose tree it is."""
    levels = max(row["level"] for row in found["rows"])
    # Between two columns is a job; in a tree of jobs and datasets it is a level of its own.
    jobs = levels if known["field"] else (levels + 1) // 2
    depth = next((one for one in DEPTHS if one >= jobs), jobs)
    return _graph(known, depth=depth if depth > NEAR else "", at=known.get("at", ""))


def why(known: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The page of a dataset; of a column the graph, which has beside it what the column comes from."""
    return _graph(known) if known["field"] else of_dataset(known, found)


def impact(known: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The graph with the change lit, where it is a single one; else the page that asks for one."""
    changes = known.get("changes", ())
    if len(changes) != 1:
        return of_dataset(known, found)
    change = {"node": known["dataset"], **changes[0]}
    return _graph(known, impact=urlencode(change))


def difference(known: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    """The graph with what came and went."""
    span = {"from": known["from"], "to": known.get("to", "")}
    if "dataset" not in known:
        return _address(span)
    return _address({"node": known["dataset"], "depth": known.get("depth", 3), **span})


def _graph(known: Mapping[str, Any], **more: object) -> str:
    column = {"columns": "1", "column": known["field"]} if known["field"] else {}
    node = known["dataset"]
    return _address({"node": node, "select": node, **column, **more})


def _address(members: Mapping[str, object]) -> str:
    given = {name: value for name, value in members.items() if value != ""}
    return f"/graph?{urlencode(given, quote_via=quote, safe='')}"
