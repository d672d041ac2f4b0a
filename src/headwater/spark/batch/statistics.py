"""How much an execution read and wrote: rows, bytes and files, from the plan's own metrics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.emit import faults
from headwater.spark.jvm import attempt
from headwater.spark.stores import formats

if TYPE_CHECKING:
    from headwater.lineage.model import Dataset
    from headwater.lineage.naming import DatasetName
    from headwater.spark.model import PlanLineage

_ROWS, _BYTES, _FILES = "numOutputRows", "numOutputBytes", "numFiles"
_METRIC = re.compile(r"(\w+) -> SQLMetric\(.*?, value: (-?\d+)\)")
MAX_LEAVES = 32


class ActionStatistics:
    """Rows, bytes and files for each dataset of an action."""

    def __init__(self) -> None:
        self.inputs: dict[DatasetName, dict[str, int]] = {}
        self.outputs: dict[DatasetName, dict[str, int]] = {}

    @faults.log_and_ignore("counting rows")
    def read(self, execution: Any, lineage: PlanLineage) -> None:
        """Take in an execution that is over."""
        plan = _executed(execution.executedPlan())
        # A plan with columns is a query inside the command, or reports how the command went.
        if lineage.targets:
            self._commands(plan, lineage.targets)
        elif len(lineage.outputs) == 1 and plan.output().isEmpty():
            found = _written(plan)
            if found:
                self.outputs[lineage.outputs[0].id] = found
        self._leaves(plan, lineage)

    def _commands(self, plan: Any, targets: tuple[DatasetName, ...]) -> None:
        """Count what each command of a multi-insert has written."""
        commands = plan.children()
        if commands.size() != len(targets):
            return
        for place, target in enumerate(targets):
            sums = self.outputs.setdefault(target, {})
            for key, value in _written(commands.apply(place)).items():
                sums[key] = sums.get(key, 0) + value

    def _leaves(self, plan: Any, lineage: PlanLineage) -> None:
        wanted = list(lineage.inputs)
        if not wanted:
            return
        leaves = plan.collectLeaves()
        sums: dict[DatasetName, dict[str, int]] = {}
        for at in range(min(leaves.size(), MAX_LEAVES)):
            leaf = leaves.apply(at)
            text = str(leaf.simpleString(1000))
            if text.startswith("LocalTableScan") or formats.is_log_scan(text):
                # Rows of the driver's own, or a read of a table's log.
                continue
            metrics = _metrics(leaf)
            owner = _owner(text, wanted)
            if owner is None or _ROWS not in metrics:
                continue
            layer = formats.by_name(owner.storage_layer)
            trusted = layer is None or layer.counts_rows_of_scans
            if not trusted and not (metrics[_ROWS] and _FILES in metrics):
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
            largest = self.inputs.setdefault(name, {})
            largest.update({key: max(value, largest.get(key, 0)) for key, value in count.items()})


def _executed(plan: Any) -> Any:
    """The plan that really ran, below commands and adaptive execution."""
    for _ in range(6):
        name = str(plan.nodeName())
        if name == "CommandResult":
            plan = plan.commandPhysicalPlan()
        elif name.startswith("AdaptiveSparkPlan"):
            plan = plan.executedPlan()
        elif name.startswith("ResultQueryStage"):  # since Spark 4.0, around the last stage
            plan = plan.plan()
        else:
            break
    return plan


def _written(plan: Any) -> dict[str, int]:
    """Rows, bytes and files that a command's node has counted."""
    metrics = _metrics(plan)
    found = {}
    for key, name in (("rowCount", _ROWS), ("size", _BYTES), ("fileCount", _FILES)):
        if metrics.get(name):
            found[key] = metrics[name]
    # Only writes of the data source V2 API have a progress; asking others throws in the JVM.
    if found or str(plan.nodeName()).startswith("Execute "):
        return found
    progress = attempt(plan, "commitProgress")
    if progress is None or not progress.isDefined():
        return {}
    return {"rowCount": int(progress.get().numOutputRows())}


def _metrics(node: Any) -> dict[str, int]:
    """The metrics of a node, in two calls: as a text, since each metric would take four."""
    return {name: int(value) for name, value in _METRIC.findall(str(node.metrics().toString()))}


def _owner(text: str, wanted: list[Dataset]) -> Dataset | None:
    if len(wanted) == 1:
        return wanted[0]
    named = [one for one in wanted if any(part in text for part in _known_names(one))]
    return named[0] if len(named) == 1 else None


def _known_names(one: Dataset) -> list[str]:
    return [one.name, *(link.name for link in one.symlinks)]
