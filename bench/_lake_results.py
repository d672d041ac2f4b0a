"""What `bench/lake.py` keeps of its loads, each with when it was measured, and the table that shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results/lake.json"
ROWS = (
    ("copies of the estate", "copies", "{:,.0f}"),
    ("days", "days", "{:,.0f}"),
    ("append alone, CPU an event", "append cpu", "{:.2f} ms"),
    ("with derived tables, CPU an event", "derived cpu", "{:.2f} ms"),
    ("raw JSON, bytes an event", "raw", "{:,.0f}"),
    ("`events`, bytes an event", "lake", "{:,.0f}"),
    ("derived tables, bytes an event", "derived", "{:,.0f}"),
    ("the server's store, bytes an event", "store", "{:,.0f}"),
    ("trace at a past moment", "trace", "{:.2f} s"),
    ("difference of one day", "diff", "{:.2f} s"),
    ("load average", "load average", "{:.1f}"),
    ("cores", "cores", "{:,.0f}"),
    ("measured", "date", "{}"),
    ("commit", "commit", "{}"),
)
GROWN = 10
"""The rows that may grow with the events: those before the state of the machine."""


def kept() -> dict[str, Any]:
    """What was measured so far."""
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def keep(**parts: Any) -> None:
    """Add what was measured; of a part with sizes, the sizes that were measured again are replaced."""
    found = kept()
    for name, part in parts.items():
        found[name] = {**found.get(name, {}), **part}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def loads(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """The loads side by side, by size: the head and the rows of a table."""
    found = sorted(results["loads"].values(), key=lambda one: one["events"])
    head = ["measure", *(f"{one['events']:,.0f} events" for one in found), "growth"]
    rows = []
    for number, (title, key, shape) in enumerate(ROWS):
        values = [one.get(key) for one in found]
        growth = ""
        if 1 < number < GROWN and len(found) > 1 and values[0] and values[-1]:
            growth = f"x{values[-1] / values[0]:.2f}"
        cells = [shape.format(value) if value else "" for value in values]
        rows.append([title, *cells, growth])
    return head, rows


def said(results: dict[str, Any]) -> list[str]:
    """What the loads say besides: of what they are made, and what an event costs apart from a batch."""
    corpus = results["corpus"]
    what = f"{corpus['templates']} recorded events of the demo and its Spark jobs"
    found = [f"{what} ({corpus['bytes']:,} bytes), varied in names, runs and times"]
    by_size = sorted(results["loads"].values(), key=lambda one: one["events"])
    first, last = by_size[0], by_size[-1]
    if first is not last:
        for title, key in (("append", "append"), ("derived tables", "derive")):
            each = (last[key] - first[key]) / (last["events"] - first["events"])
            fixed = (first[key] - each * first["events"]) / 1_000
            found.append(
                f"{title}: {each:.2f} ms of CPU an event, and {fixed:.1f} s a batch in any case"
            )
    return found
