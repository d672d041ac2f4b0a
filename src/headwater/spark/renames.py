"""Datasets that a job is told to call otherwise: `spark.headwater.datasets.NAME.namespace` and `.name`.

NAME is a topic's name, a table's as its catalog has it (`default.orders`), or a dataset's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.lineage.naming import DatasetName, redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.spark.model import Dataset, PlanLineage

PREFIX = "spark.headwater.datasets."

Renames = dict[str, dict[str, str]]
"""By the name of a dataset, what its `namespace` or `name` is to be."""


def read(conf: Mapping[str, str]) -> Renames:
    """The names that Spark's conf gives; credentials in them are masked."""
    found: Renames = {}
    for key, value in conf.items():
        name, _, part = key.removeprefix(PREFIX).rpartition(".")
        if key.startswith(PREFIX) and name and part in ("namespace", "name") and value:
            found.setdefault(name, {})[part] = redact(value)
    return found


def told(one: Dataset, renames: Renames) -> Dataset:
    """A dataset by the name it is to have.

    Its other names, and the cluster's, go: by them a server would know it for the same one.
    """
    words = _words(one) if renames else ()
    change = next((renames[word] for word in words if word in renames), None)
    if change is None:
        return one
    return msgspec.structs.replace(one, **change, symlinks=(), cluster_id="", bootstrap=())


def names(lineage: PlanLineage, renames: Renames) -> dict[DatasetName, DatasetName]:
    """Every dataset of a plan that has another name to be told by."""
    both = [(one.id, told(one, renames).id) for one in (*lineage.inputs, *lineage.outputs)]
    return {before: after for before, after in both if before != after}


def _words(one: Dataset) -> list[str]:
    links = [link.name for link in one.symlinks]
    return [one.name, *links, *(".".join(link.split(".")[-2:]) for link in links)]
