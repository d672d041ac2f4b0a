"""What a run read and wrote: each dataset once, under however many names it was reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.server.store.entities import unslot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.server.store.entities import Held, Run

__all__ = ["DatasetUse", "run_uses"]


class DatasetUse(NamedTuple):
    """A run's use of a dataset, by one of its names."""

    dataset: int
    direction: int
    version: int | None
    facets: dict[str, Held]


def run_uses(run: Run, roots: Mapping[int, int]) -> list[DatasetUse]:
    """The uses of a run, in the order of the first reports; `roots` maps each name to its dataset.

    Names that are not in it may not be seen. A dataset with several names goes by its own, else by the
    first; what was reported under the others is added to it.
    """
    found: dict[tuple[int, int], DatasetUse] = {}
    for key, io in run.state.io.items():
        dataset, direction = unslot(key)
        if dataset not in roots:
            continue
        place = (roots[dataset], direction)
        use = DatasetUse(dataset, direction, io.version, io.facets)
        other = found.get(place)
        if other is not None:
            first, second = (use, other) if dataset == place[0] else (other, use)
            use = first._replace(facets=second.facets | first.facets)
        found[place] = use
    return list(found.values())
