"""How much an execution read and wrote: rows, bytes and files, from the plan's own metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.spark.stores.paths import is_log
from headwater.spark.stores.tables import LAYERS

if TYPE_CHECKING:
    from headwater.lineage.naming import DatasetName
    from headwater.spark.model import Dataset, PlanLineage

_ROWS, _BYTES, _FILES = "numOutputRows", "numOutputBytes", "numFiles"
MOST_LEAVES = 32


class Counts:
    """What was counted for each dataset of an action."""

    def __init__(self) -> None:
        self.inputs: dict[DatasetName, dict[str, int]] = {}
        self.outputs: dict[DatasetName, dict[str, int]] = {}

    @once.quiet("counting rows")
    def read(self, execution: Any, lineage: PlanLineage) -> None:
        """Take in an execution that is over."""
        plan = _executed(execution.executedPlan())
        # What has columns to show is a query inside the command, or says how the command went.
        if len(lineage.outputs) == 1 and plan.output().isEmpty():
            found = _written(plan)
            if found:
                self.outputs[lineage.outputs[0].id] = found
        self._leaves(plan, lineage)

    def _leaves(self, plan: Any, lineage: PlanLineage) -> None:
        wanted = list(lineage.inputs)
        if not wanted:
            return
        leaves = plan.collectLeaves()
        sums: dict[DatasetName, dict[str, int]] = {}
        for at in range(min(leaves.size(), MOST_LEAVES)):
            leaf = leaves.apply(at)
            text = str(leaf.simpleString(1000))
            if text.startswith("LocalTableScan") or "DeltaLog" in text or is_log(text):
                # Rows of the driver's own, or a look into a table's log, whose path may be cut short.
                continue
            metrics = _metrics(leaf)
            owner = _owner(text, wanted)
            if owner is None or _ROWS not in metrics:
                continue
            if owner.storage_layer in LAYERS and not (metrics[_ROWS] and _FILES in metrics):
                # Some of their own scans do not count, and not every one is of the table.
                continue
            count = {"rowCount": metrics[_ROWS]}
            if "filesSize" in metrics:
                count["size"] = metrics["filesSize"]
            if _FILES in metrics:
                count["fileCount"] = metrics[_FILES]
            before = sums.setdefault(owner.id, {})
            for key, value in count.items():
                before[key] = before.get(key, 0) + value
        for name, count in sums.items():
            # A command that goes over its tables in several steps reads the same rows again.
            most = self.inputs.setdefault(name, {})
            most.update({key: max(value, most.get(key, 0)) for key, value in count.items()})


def _executed(plan: Any) -> Any:
    """The plan that really ran, below the covers of commands and adaptive execution."""
    for _ in range(4):
        name = str(plan.nodeName())
        if name == "CommandResult":
            plan = plan.commandPhysicalPlan()
        elif name.startswith("AdaptiveSparkPlan"):
            plan = plan.executedPlan()
        else:
            break
    return plan


def _written(plan: Any) -> dict[str, int]:
    metrics = _metrics(plan)
    found = {}
    for key, name in (("rowCount", _ROWS), ("size", _BYTES), ("fileCount", _FILES)):
        if metrics.get(name):
            found[key] = metrics[name]
    if found:
        return found
    return _committed(plan)


def _committed(plan: Any) -> dict[str, int]:
    try:
        progress = plan.commitProgress()
        return {"rowCount": int(progress.get().numOutputRows())} if progress.isDefined() else {}
    except Exception:  # noqa: BLE001  (only writes of the second kind have it)
        return {}


def _metrics(node: Any) -> dict[str, int]:
    found = {}
    metrics = node.metrics()
    for name in (_ROWS, _BYTES, _FILES, "filesSize"):
        metric = metrics.get(name)
        if metric.isDefined():
            found[name] = int(metric.get().value())
    return found


def _owner(text: str, wanted: list[Dataset]) -> Dataset | None:
    if len(wanted) == 1:
        return wanted[0]
    named = [one for one in wanted if any(part in text for part in _words(one))]
    return named[0] if len(named) == 1 else None


def _words(one: Dataset) -> list[str]:
    return [one.name, *(link.name for link in one.symlinks)]
