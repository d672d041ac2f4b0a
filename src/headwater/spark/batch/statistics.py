"""How much an execution read and wrote: rows, bytes and files, from the plan's own metrics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.spark.jvm import JvmSession
from headwater.spark.stores import formats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lineage.model import Dataset
    from headwater.lineage.naming import DatasetName
    from headwater.spark.jvm import Texts
    from headwater.spark.model import PlanLineage

_ROWS, _BYTES, _FILES = "numOutputRows", "numOutputBytes", "numFiles"
_METRIC = re.compile(r"(\w+) -> SQLMetric\(.*?, value: (-?\d+)\)")
_WRITTEN = ("output.isEmpty", "metrics.toString", "commitProgress.numOutputRows")
_SCANNED = ("simpleString(1000)", "metrics.toString")
MAX_COUNTED = 100


class ActionStatistics:
    """Rows, bytes and files for each dataset of an action."""

    def __init__(self) -> None:
        self.inputs: dict[DatasetName, dict[str, int]] = {}
        self.outputs: dict[DatasetName, dict[str, int]] = {}

    @internal_errors.log_and_ignore("counting rows")
    def read(self, spark: SparkSession, execution: Any, lineage: PlanLineage) -> None:
        """Take in an execution that is over."""
        session = JvmSession(spark)
        root, commands, leaves = session.counts(execution, MAX_COUNTED, _WRITTEN, _SCANNED)
        # A plan with columns is a query inside the command, or reports how the command went.
        if lineage.targets:
            self._commands(commands, lineage.targets)
        elif len(lineage.outputs) == 1 and root[0] == "true" and (found := _written(root)):
            self.outputs[lineage.outputs[0].id] = found
        if lineage.inputs:
            self._leaves(leaves, list(lineage.inputs))

    def _commands(self, commands: list[Texts], targets: tuple[DatasetName, ...]) -> None:
        """Count what each command of a multi-insert has written."""
        if len(commands) != len(targets):
            return
        for target, counted in zip(targets, commands, strict=True):
            sums = self.outputs.setdefault(target, {})
            for key, value in _written(counted).items():
                sums[key] = sums.get(key, 0) + value

    def _leaves(self, leaves: list[Texts], wanted: list[Dataset]) -> None:
        sums: dict[DatasetName, dict[str, int]] = {}
        for text, shown in leaves:
            if text.startswith("LocalTableScan") or formats.is_log_scan(text):
                # Rows of the driver's own, or a read of a table's log.
                continue
            metrics = _metrics(shown)
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


def _written(counted: Texts) -> dict[str, int]:
    """Rows, bytes and files that a command's node has counted, or the rows that its writer has."""
    _, shown, rows = counted
    metrics = _metrics(shown)
    found = {}
    for key, name in (("rowCount", _ROWS), ("size", _BYTES), ("fileCount", _FILES)):
        if metrics.get(name):
            found[key] = metrics[name]
    return found or ({"rowCount": int(rows)} if rows is not None else {})


def _metrics(shown: str | None) -> dict[str, int]:
    """The metrics of a node from their text, since each of them would take four calls."""
    return {name: int(value) for name, value in _METRIC.findall(shown or "")}


def _owner(text: str, wanted: list[Dataset]) -> Dataset | None:
    if len(wanted) == 1:
        return wanted[0]
    named = [one for one in wanted if any(part in text for part in _known_names(one))]
    return named[0] if len(named) == 1 else None


def _known_names(one: Dataset) -> list[str]:
    return [one.name, *(link.name for link in one.symlinks)]
