"""Names of jobs that a person knows again: application, what is done, to what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.spark.config import Settings
    from headwater.spark.model import Dataset, PlanLineage

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ODD = re.compile(r"[^A-Za-z0-9]+")
_TAILS = ("_command", "_exec", "_statement")


def snake(text: str) -> str:
    """`OverwriteByExpression` and `Supplier stats` as `overwrite_by_expression`, `supplier_stats`."""
    return _ODD.sub("_", _CAMEL.sub("_", text)).strip("_").lower()


def operation(node: str) -> str:
    """A word for a plan by the name of its root."""
    word = snake(node)
    for tail in _TAILS:
        word = word.removesuffix(tail)
    return word or "action"


def short(dataset: Dataset) -> str:
    """The last words of a dataset's name: `default_orders` for a table, the folder for files."""
    for link in dataset.symlinks:
        if link.type == "TABLE":
            return _ODD.sub("_", ".".join(link.name.split(".")[-2:])).strip("_")
    if dataset.type == "TOPIC":
        return _ODD.sub("_", dataset.name).strip("_")
    parts = [part for part in dataset.name.split("/") if part]
    return _ODD.sub("_", "_".join(parts[-2:] if len(parts) > 1 else parts)).strip("_")


def job(settings: Settings, lineage: PlanLineage, word: str = "") -> str:
    """The job of an action: `supplier_stats.overwrite_by_expression.default_supplier_stats`."""
    done = operation(lineage.operation or word)
    target = next(iter(lineage.outputs or lineage.inputs), None)
    if target is None or not settings.append_dataset:
        return plain(settings, done)
    return plain(settings, done, short(target))


def plain(settings: Settings, *words: str) -> str:
    """A job's name from words that are known."""
    tail = ["_".join(word.split(".")) if settings.replace_dots else word for word in words if word]
    return ".".join([snake(settings.app_name) or "spark", *tail])
