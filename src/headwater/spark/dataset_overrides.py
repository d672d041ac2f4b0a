"""Names of datasets from configuration: `spark.headwater.datasets.NAME.namespace` and `.name`.

NAME is a topic's name, a table's as its catalog has it (`default.orders`), or a dataset's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.model import ColumnSource, Dataset, Lineage
    from headwater.lineage.naming import DatasetName

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


def renamed(lineage: Lineage, renames: Renames) -> Lineage:
    """The lineage with its datasets under the names they are to have, also where columns come from.

    Their other names go, and the cluster's: by them a server would know them for the same.
    """
    if not renames:
        return lineage
    names = {one.id: dataset(one, renames).id for one in (*lineage.inputs, *lineage.outputs)}
    return msgspec.structs.replace(
        lineage,
        inputs=tuple(dataset(one, renames) for one in lineage.inputs),
        outputs=tuple(_output(dataset(one, renames), names) for one in lineage.outputs),
        edges=lineage.edges
        and tuple(
            msgspec.structs.replace(edge, input=names[edge.input], output=names[edge.output])
            for edge in lineage.edges
        ),
    )


def dataset(one: Dataset, renames: Renames) -> Dataset:
    """A dataset under the name it is to have."""
    names = _names(one) if renames else ()
    change = next((renames[name] for name in names if name in renames), None)
    if change is None:
        return one
    return msgspec.structs.replace(one, **change, symlinks=(), cluster_id="", bootstrap=())


def _output(one: Dataset, names: Mapping[DatasetName, DatasetName]) -> Dataset:
    if one.columns is None:
        return one

    def moved(sources: tuple[ColumnSource, ...]) -> tuple[ColumnSource, ...]:
        return tuple(
            msgspec.structs.replace(source, dataset=names.get(source.dataset, source.dataset))
            for source in sources
        )

    columns = msgspec.structs.replace(
        one.columns,
        fields={name: moved(sources) for name, sources in one.columns.fields.items()},
        dataset=moved(one.columns.dataset),
    )
    return msgspec.structs.replace(one, columns=columns)


def _names(one: Dataset) -> list[str]:
    links = [link.name for link in one.symlinks]
    return [one.name, *links, *(".".join(link.split(".")[-2:]) for link in links)]
