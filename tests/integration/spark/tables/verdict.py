"""What the events of one step say against its truth, a line for each difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.naming import DatasetName

from ..cases.truth import differences, read
from ..drivers import TERMINAL
from ..remote.judged import told
from .stage import NOTHING

if TYPE_CHECKING:
    from .stage import Step


def wrong(step: Step, events: list[dict[str, Any]], played: dict[str, Any]) -> list[str]:
    """Every way in which a step was not told exactly."""
    lines = _expected(step, played["error"])
    runs: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        runs.setdefault(event["run"]["runId"], []).append(event)
    jobs = [f"{told[-1]['job']['name']} {told[-1]['eventType']}" for told in runs.values()]
    if step.truth == NOTHING:
        return lines + [f"told, but there is nothing to tell: {job}" for job in jobs]
    if len(runs) != 1:
        return [*lines, f"one run should be told, there are {len(runs)}: {jobs}"]
    (run,) = runs.values()
    types = [event["eventType"] for event in run]
    if types[0] != "START" or types[-1] != step.end or sum(t in TERMINAL for t in types) != 1:
        lines.append(f"its life: {types}")
    last = run[-1]
    streams = last["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
    if streams != step.stream:
        lines.append(f"{last['job']['facets']['jobType']}")
    truth = read(step.truth.format(**played["words"]) if played["words"] else step.truth)
    names = {_name(place): short for place, short in played["names"].items()}
    for output in sorted(truth.outputs) or [""]:
        lines += differences(truth, told(last, names, output))
    problems = last["run"]["facets"].get("headwater_problems", {}).get("problems", [])
    return lines + [f"problem: {problem}" for problem in problems if lines]


def _name(place: str) -> DatasetName:
    namespace, _, name = place.rpartition(" ")
    return DatasetName(namespace or "file", name)


def _expected(step: Step, error: str) -> list[str]:
    if error and step.end != "FAIL":
        return [f"the step itself failed: {error}"]
    return [] if error or step.end != "FAIL" else ["the step should have failed"]
