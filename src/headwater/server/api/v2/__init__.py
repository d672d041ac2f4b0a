"""Headwater's own API: the graph at any moment, the log by cursor, what the page asks, metrics."""

from headwater.server.api.v2 import (
    aliases,
    difference,
    events,
    evidence,
    freshness,
    metrics,
    page,
    purge,
    runs,
    schemas,
    stream,
    timeline,
)

__all__ = ["MODULES"]

MODULES = (
    aliases,
    difference,
    events,
    metrics,
    *page.MODULES,
    purge,
    runs,
    stream,
    schemas,
    freshness,
    timeline,
    evidence,
)
