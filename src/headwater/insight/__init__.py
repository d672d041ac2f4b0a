"""Questions over a graph, answered without any I/O.

Each takes a `headwater.lineage.graph.Graph`, which a store or a test provides, and gives plain
values: how to show them is left to the API, the page and the command line.
"""

from headwater.insight.difference import Difference, Moment, difference
from headwater.insight.freshness import (
    Cause,
    Freshness,
    JobGraph,
    JobProblem,
    JobStatus,
    freshness,
    trouble_of,
)
from headwater.insight.neighbourhood import (
    Link,
    Neighbourhood,
    Reach,
    around,
    beside,
    between,
    flow,
    hidden,
    paired,
    reach,
    spanned,
)
from headwater.insight.trace import ColumnJobs, carriers, trace

__all__ = [
    "Cause",
    "ColumnJobs",
    "Difference",
    "Freshness",
    "JobGraph",
    "JobProblem",
    "JobStatus",
    "Link",
    "Moment",
    "Neighbourhood",
    "Reach",
    "around",
    "beside",
    "between",
    "carriers",
    "difference",
    "flow",
    "freshness",
    "hidden",
    "paired",
    "reach",
    "spanned",
    "trace",
    "trouble_of",
]
