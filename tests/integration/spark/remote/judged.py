"""Events judged by the truth of a case: exact, said to be unknown, or wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.naming import DatasetName

from ..cases.truth import Truth, differences

if TYPE_CHECKING:
    from collections.abc import Iterable

EXACT, UNKNOWN, WRONG = "exact", "unknown", "wrong"


def told(event: dict[str, Any], names: dict[DatasetName, str], output: str) -> Truth:
    """What one event says of an output, in the words of a truth."""

    def short(one: dict[str, Any]) -> str:
        name = DatasetName(one["namespace"], one["name"])
        return names.get(name, f"{name.namespace} {name.name}")

    def facts(sources: Iterable[dict[str, Any]]) -> frozenset[str]:
        return frozenset(
            f"{short(one)}.{one['field']} {way['subtype']}" + (" masked" if way["masking"] else "")
            for one in sources
            for way in one["transformations"]
        )

    made = Truth(
        inputs=frozenset(map(short, event.get("inputs", []))),
        outputs=frozenset(map(short, event.get("outputs", []))),
        operation=event["job"]["name"].split(".")[1] if "." in event["job"]["name"] else "",
    )
    for one in event.get("outputs", []):
        if short(one) != output:
            continue
        facets = one["facets"]
        change = facets.get("lifecycleStateChange", {})
        made.change = change.get("lifecycleStateChange", "")
        if one.get("outputFacets", {}).get("headwater_overwrite", {}).get("partial"):
            made.change += " in part"
        lineage = facets.get("columnLineage")
        if lineage is None:
            made.unknown = frozenset({"everything"})
            continue
        fields = lineage["fields"].items()
        made.columns = {name: facts(value["inputFields"]) for name, value in fields}
        made.rows = facts(lineage.get("dataset") or [])
        made.unknown = frozenset(facets.get("headwater_columns", {}).get("unknown", []))
    made.versions = {
        short(one): one["facets"]["version"]["datasetVersion"]
        for one in (*event.get("inputs", []), *event.get("outputs", []))
        if "version" in one["facets"]
    }
    return made


def judge(truth: Truth, seen: Truth, problems: list[str]) -> tuple[str, list[str]]:
    """How an event stands to the truth, and where they differ.

    What is said must be true. What is not said must be said to be unknown: by a column's own word,
    or by a sentence about the plan.
    """
    lines = differences(truth, seen)
    if not lines:
        return EXACT, []
    false = [
        *sorted(seen.inputs - truth.inputs),
        *sorted(seen.outputs - truth.outputs),
        *(name for name, facts in seen.columns.items() if facts != truth.columns.get(name)),
        *sorted(seen.rows - truth.rows),
    ]
    if false or not problems:
        return WRONG, [*lines, *false]
    return UNKNOWN, lines


def problems(event: dict[str, Any]) -> list[str]:
    """What an event says that it does not know."""
    found = event["run"]["facets"].get("headwater_problems", {})
    return list(found.get("problems", []))
