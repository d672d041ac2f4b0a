"""What `bench/lake.py` keeps of its loads, each with when it was measured, and the table that shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench._results import stamp

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
)
GROWN = 10
"""The rows that may grow with the events: those before the load of the machine."""


def kept() -> dict[str, Any]:
    """What was measured so far."""
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def keep(corpus: dict[str, Any], loads: dict[str, Any]) -> None:
    """Add loads, by size; those of another corpus go."""
    found = kept()
    same = found.get("corpus") == corpus
    made = {
        "measured": {**(found["measured"] if same else {}), **dict.fromkeys(loads, stamp())},
        "corpus": corpus,
        "loads": {**(found["loads"] if same else {}), **loads},
    }
    RESULTS.write_text(json.dumps(made, indent=1) + "\n")


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
    first, last = _ends(results)
    if first is not last:
        sums = (("append alone", ("append",)), ("with derived tables", ("append", "derive")))
        for title, keys in sums:
            each = sum(_each(first, last, key) for key in keys)
            fixed = (sum(first[key] for key in keys) - each * first["events"]) / 1_000
            found.append(
                f"{title}: {each:.2f} ms of CPU an event ({1_000 / each:,.0f} events a second and core),"
                f" and {fixed:.1f} s a batch in any case"
            )
    return found


def cluster(results: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Cores for some rates, between what sizes differ by and all of what the largest load took."""
    first, last = _ends(results)
    append, derive = _each(first, last, "append"), _each(first, last, "derive")
    spans = ((append, last["append cpu"]), (append + derive, last["derived cpu"]))
    titles = ("append alone", "with derived tables")
    head = ["events a day", "a second"]
    head += [
        f"{title}, {min(span):.2f} to {max(span):.2f} ms"
        for title, span in zip(titles, spans, strict=True)
    ]
    head.append(f"`events`, {last['lake']:,.0f} bytes an event")
    rows = []
    for title, count in (("1 million", 1e6), ("100 million", 1e8), ("1 billion", 1e9)):
        cores = [
            " to ".join(f"{count * each / 86_400_000:.2g}" for each in sorted(span)) + " cores"
            for span in spans
        ]
        size = f"{count * last['lake'] / 1e9:,.1f} GB a day"
        rows.append([title, f"{count / 86_400:,.0f}", *cores, size])
    return head, rows


def _ends(results: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    by_size = sorted(results["loads"].values(), key=lambda one: one["events"])
    return by_size[0], by_size[-1]


def _each(first: dict[str, Any], last: dict[str, Any], key: str) -> float:
    """Milliseconds of CPU that an event more takes; of one load alone, what an event took."""
    if first is last:
        return float(last[key] / last["events"])
    return float((last[key] - first[key]) / (last["events"] - first["events"]))
