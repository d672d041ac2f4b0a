"""Why an event is emitted, for the agent's log: what differs from what was reported before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.life.state import Condition
from headwater.lineage.lifecycle import TERMINAL
from headwater.lineage.naming import DatasetName
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.life.steps import Emission
    from headwater.connect.model import Derived
    from headwater.lineage.model import Dataset

MAX_NAMES = 3
_ENDS = {
    Condition.PAUSED: "it is paused",
    Condition.STOPPED: "it is stopped",
    Condition.DELETED: "it is deleted",
    Condition.RESTARTING: "it restarts",
    Condition.RUNNING: "it was restarted",
    Condition.LOST: "no status within the grace time",
}


def reason(before: TrackedConnector, after: TrackedConnector, emission: Emission) -> str:
    """Why an event of a step is emitted, given the connector before and after the step."""
    if emission.task:
        return f"task {emission.task} left it under way"
    renamed = before.job not in (None, after.job)
    if emission.type in TERMINAL:
        if renamed:
            return "its job has another name now"
        if emission.type is EventType.FAIL:
            failed = [str(task.id) for task in after.status.tasks if task.state == "FAILED"]
            return f"task {', '.join(failed)} failed" if failed else "the connector failed"
        return _ENDS.get(after.condition, f"its status is {after.condition.value}")
    if emission.type is EventType.START:
        if before.last_event is None or renamed:
            return "it runs"
        return f"it runs again after {before.last_event.value}"
    return "; ".join(_changes(before, emission.tracked)) or "heartbeat"


def _changes(before: TrackedConnector, now: TrackedConnector) -> list[str]:
    """What an event under way reports that the last one did not."""
    found = []
    if before.config_digest != now.config_digest:
        found.append("its configuration changed")
    tasks = [len(one.status.tasks) for one in (before, now)]
    if tasks[0] != tasks[1]:
        found.append(f"{tasks[1]} task{'s' * (tasks[1] != 1)} instead of {tasks[0]}")
    elif before.status.workers != now.status.workers:
        found.append("its tasks are on other workers")
    found += _named("topics in use: {}", set(now.topics) - set(before.topics))
    if before.derived is not None and now.derived is not None:
        found += _lineage_changes(before.derived, now.derived)
    return found


def _lineage_changes(before: Derived, now: Derived) -> list[str]:
    old, new = _datasets(before), _datasets(now)
    both = [(old[key], new[key]) for key in new if key in old]
    came = {key: one for key, one in new.items() if key not in old}
    went = {key: one for key, one in old.items() if key not in new}
    found = []
    for key, one in tuple(came.items()):
        # A table is known by its name in the catalog until it is made, then by its location.
        links = {DatasetName(link.namespace, link.name) for link in one.symlinks}
        if former := links & went.keys():
            found += _named(f"dataset {{}} is {one.name} now", (went.pop(n).name for n in former))
            del came[key]
    found += _named("new dataset {}", (one.name for one in came.values()))
    found += _named("dataset {} is gone", (one.name for one in went.values()))
    known = (b.name for a, b in both if a.schema is None and b.schema is not None)
    found += _named("columns of {} are known now", known)
    changed = (b.name for a, b in both if a.schema is not None and a.schema != b.schema)
    found += _named("columns of {} changed", changed)
    if not found and before.version != now.version:
        found.append("its lineage changed")
    return found


def _datasets(derived: Derived) -> dict[DatasetName, Dataset]:
    return {one.id: one for one in (*derived.lineage.inputs, *derived.lineage.outputs)}


def _named(text: str, names: Iterable[str]) -> list[str]:
    listed = sorted(set(names))
    if not listed:
        return []
    more = f" and {len(listed) - MAX_NAMES} more" if len(listed) > MAX_NAMES else ""
    return [text.format(", ".join(listed[:MAX_NAMES]) + more)]
