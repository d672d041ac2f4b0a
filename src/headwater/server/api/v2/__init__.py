"""Headwater's own API: the graph at any moment, the log by cursor, what the page asks, metrics."""

from headwater.server.api.v2 import (
    aliases,
    difference,
    events,
    evidence,
    freshness,
    impact,
    metrics,
    names,
    page,
    purge,
    runs,
    schemas,
    stream,
    timeline,
    trace,
    why,
)

__all__ = ["MODULES"]

MODULES = (
    aliases,
    difference,
    events,
    metrics,
    names,
    *page.MODULES,
    purge,
    runs,
    stream,
    schemas,
    freshness,
    impact,
    timeline,
    trace,
    why,
    evidence,
)
