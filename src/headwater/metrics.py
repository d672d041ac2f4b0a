"""Figures of a service in Prometheus's text format."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["CONTENT_TYPE", "Histogram", "Metric", "exposition", "gauge", "labelled", "total"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One figure with its samples: the end of its name, its labels, its value."""

    name: str
    kind: str
    about: str
    samples: list[tuple[str, Mapping[str, str], float]]


def gauge(name: str, about: str, value: float) -> Metric:
    """A figure that goes up and down."""
    return Metric(name, "gauge", about, [("", {}, value)])


def total(name: str, about: str, value: float) -> Metric:
    """A figure that only grows."""
    return Metric(name, "counter", about, [("", {}, value)])


def labelled(
    name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]
) -> Metric:
    """A figure with a sample for each set of labels."""
    return Metric(name, kind, about, [("", labels, value) for labels, value in samples])


class Histogram:
    """Counts observations by upper bounds."""

    def __init__(self, *bounds: float) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one."""
        self._sum += value
        self._counts[bisect_left(self._bounds, value)] += 1

    def samples(self, labels: Mapping[str, str]) -> list[tuple[str, Mapping[str, str], float]]:
        """The samples of this histogram, cumulated as Prometheus wants them."""
        found: list[tuple[str, Mapping[str, str], float]] = []
        count = 0
        for bound, some in zip((*self._bounds, float("inf")), list(self._counts), strict=True):
            count += some
            found.append(("_bucket", {**labels, "le": _number(bound)}, count))
        return [*found, ("_sum", labels, self._sum), ("_count", labels, count)]


def exposition(metrics: Iterable[Metric]) -> str:
    """The text that a scrape gets."""
    lines = []
    for metric in metrics:
        lines += [
            f"# HELP {metric.name} {metric.about}",
            f"# TYPE {metric.name} {metric.kind}",
        ]
        for end, labels, value in metric.samples:
            text = ",".join(f'{key}="{_escaped(one)}"' for key, one in labels.items())
            lines.append(f"{metric.name}{end}{f'{{{text}}}' if text else ''} {_number(value)}")
    return "\n".join([*lines, ""])


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(round(value, 6))
