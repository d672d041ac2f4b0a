"""Questions over a graph, answered without any I/O."""

from headwater.insight.difference import Difference, Moment, difference
from headwater.insight.freshness import Cause, Freshness, Standing, Trouble, freshness

__all__ = [
    "Cause",
    "Difference",
    "Freshness",
    "Moment",
    "Standing",
    "Trouble",
    "difference",
    "freshness",
]
