"""Job names: `application.operation.dataset`, the same in every run of a program."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.lineage.model import Dataset
    from headwater.spark.driver.config import SparkSettings
    from headwater.spark.model import PlanLineage

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ODD = re.compile(r"[^A-Za-z0-9]+")
_MAX_WRAPPED = 10
_TAILS = ("_command", "_exec", "_statement")


def snake(text: str) -> str:
    """`OverwriteByExpression` and `Supplier stats` as `overwrite_by_expression`, `supplier_stats`."""
    return _ODD.sub("_", _CAMEL.sub("_", text)).strip("_").lower()


def operation(node: str) -> str:
    """The operation of a plan, by the name of its root node."""
    name = snake(node)
    for tail in _TAILS:
        name = name.removesuffix(tail)
    return name or "action"


def short(dataset: Dataset) -> str:
    """The last parts of a dataset's name: `default_orders` for a table, the folder for files."""
    for link in dataset.symlinks:
        if link.type == "TABLE":
            return _ODD.sub("_", ".".join(link.name.split(".")[-2:])).strip("_")
    if dataset.type == "TOPIC":
        return _ODD.sub("_", dataset.name).strip("_")
    parts = [part for part in dataset.name.split("/") if part]
    return _ODD.sub("_", "_".join(parts[-2:] if len(parts) > 1 else parts)).strip("_")


def of_function(function: Any) -> str:
    """The name of a function that is the same in every run: `write`, `Sink.write`; a lambda has none."""
    for _ in range(_MAX_WRAPPED):
        function = function.func if isinstance(function, partial) else function
        function = getattr(function, "__wrapped__", function)
    name = getattr(function, "__qualname__", "") or type(function).__qualname__
    name = name.rpartition("<locals>.")[2]
    return "" if "<" in name else name


def job(settings: SparkSettings, lineage: PlanLineage, operation_name: str = "") -> str:
    """The job of an action: `supplier_stats.overwrite_by_expression.default_supplier_stats`."""
    done = operation(lineage.operation or operation_name)
    target = next(iter(lineage.outputs or lineage.inputs), None)
    if target is None or not settings.append_dataset:
        return plain(settings, done)
    return plain(settings, done, short(target))


def plain(settings: SparkSettings, *parts: str) -> str:
    """A job name from its parts."""
    tail = ["_".join(part.split(".")) if settings.replace_dots else part for part in parts if part]
    return ".".join([snake(settings.app_name) or "spark", *tail])
