"""Truth written by hand, a line a fact:

orders, customers -> out          what is read, what is written
total <- orders.price AGGREGATION     IDENTITY where nothing is said; `masked` behind it
n <-                              a column that comes from no column
rows <- orders.city FILTER        what decides about rows
unknown: a b                      columns nobody can tell the sources of
operation: append
change: OVERWRITE                 what happens to the output as a whole, or `in part`
version: orders = 123             which snapshot was asked for
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.spark.job_names import operation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.model import ColumnSource
    from headwater.lineage.naming import DatasetName
    from headwater.spark.model import PlanLineage

Facts = dict[str, frozenset[str]]
_WAYS = re.compile(r"[A-Z_]+(?: masked)?|masked")


@dataclass
class Truth:
    """What a job's lineage is."""

    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    columns: Facts = field(default_factory=dict)
    rows: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    operation: str = ""
    change: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def read(text: str) -> Truth:
    """The truth that a text tells."""
    truth = Truth()
    for line in filter(None, map(str.strip, text.splitlines())):
        if "<-" in line:
            name, _, told = (part.strip() for part in line.partition("<-"))
            facts = frozenset(_fact(item) for item in told.split(",") if item.strip())
            if name == "rows":
                truth.rows |= facts
            else:
                truth.columns[name] = truth.columns.get(name, frozenset()) | facts
        elif "->" in line:
            left, _, right = line.partition("->")
            truth.inputs, truth.outputs = _names(left), _names(right)
        elif line.startswith("unknown:"):
            truth.unknown = frozenset(line.removeprefix("unknown:").split())
        elif line.startswith("version:"):
            name, _, version = line.removeprefix("version:").partition("=")
            truth.versions[name.strip()] = version.strip()
        else:
            key, _, value = line.partition(":")
            assert key in ("operation", "change"), line
            setattr(truth, key, value.strip())
    return truth


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _fact(text: str) -> str:
    source, _, ways = text.strip().partition(" ")
    return f"{source} {ways.strip() or 'IDENTITY'}"


def found(lineage: PlanLineage, names: dict[DatasetName, str], output: str) -> Truth:
    """What was found out about one output, in the same words."""
    truth = Truth(
        inputs=frozenset(_short(dataset.id, names) for dataset in lineage.inputs),
        outputs=frozenset(_short(dataset.id, names) for dataset in lineage.outputs),
        operation=lineage.operation,
    )
    for dataset in lineage.outputs:
        if _short(dataset.id, names) != output:
            continue
        truth.change = dataset.change.change if dataset.change else ""
        if dataset.change is not None and dataset.change.partial:
            truth.change += " in part"
        told = lineage.columns.get(dataset.id)
        if told is None:
            truth.unknown = frozenset({"everything"})
            continue
        truth.columns = {name: _facts(sources, names) for name, sources in told.fields.items()}
        truth.rows = _facts(told.dataset, names)
        truth.unknown = frozenset(told.unknown)
    truth.versions = {
        _short(dataset.id, names): dataset.version
        for dataset in (*lineage.inputs, *lineage.outputs)
        if dataset.version
    }
    return truth


def writers(truth: Truth, seen: Iterable[Truth]) -> list[Truth]:
    """Of what each run told, that of the runs which do what the truth is about: it must be one.

    What a case prepares is told apart by its outputs, by its operation, or by reading nothing.
    """
    named = operation(truth.operation) if truth.operation else ""
    return [
        one
        for one in seen
        if one.outputs & truth.outputs
        and (one.inputs or not truth.inputs)
        and (not named or not one.operation or one.operation == named)
    ]


def _facts(sources: tuple[ColumnSource, ...], names: dict[DatasetName, str]) -> frozenset[str]:
    return frozenset(
        f"{_short(source.dataset, names)}.{source.field} {way.subtype}"
        + (" masked" if way.masking else "")
        for source in sources
        for way in source.transformations
    )


def _short(name: DatasetName, names: dict[DatasetName, str]) -> str:
    return names.get(name, f"{name.namespace} {name.name}")


def differences(told: Truth, seen: Truth) -> list[str]:
    """Where what was found is not the truth, a line each."""
    lines: list[str] = []
    for part in ("inputs", "outputs", "rows", "unknown"):
        lines += _differ(part, getattr(told, part), getattr(seen, part))
    for name in sorted(told.columns.keys() | seen.columns.keys()):
        if name not in seen.columns:
            lines.append(f"{name}: missing, should be {sorted(told.columns[name])}")
        elif name not in told.columns:
            lines.append(f"{name}: too much, found {sorted(seen.columns[name])}")
        else:
            lines += _differ(name, told.columns[name], seen.columns[name])
    for key in ("operation", "change"):
        if getattr(told, key) and getattr(told, key) != getattr(seen, key):
            lines.append(f"{key}: should be {getattr(told, key)}, found {getattr(seen, key)}")
    if told.versions != seen.versions:
        lines.append(f"versions: should be {told.versions}, found {seen.versions}")
    return lines


def _differ(part: str, should: frozenset[str], is_: frozenset[str]) -> list[str]:
    lines = []
    if should - is_:
        lines.append(f"{part}: missing {sorted(should - is_)}")
    if is_ - should:
        lines.append(f"{part}: too much {sorted(is_ - should)}")
    return lines
