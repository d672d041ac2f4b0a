"""Headwater's own API: the graph at any moment, the log by cursor, what the page asks, metrics."""

from headwater.server.api.v2 import (
    alerts,
    aliases,
    audit,
    difference,
    events,
    evidence,
    freshness,
    impact,
    log_head,
    metrics,
    names,
    page,
    purge,
    runs,
    schemas,
    stream,
    tags,
    timeline,
    trace,
    why,
)

__all__ = ["MODULES"]

MODULES = (
    alerts,
    aliases,
    audit,
    difference,
    events,
    log_head,
    metrics,
    names,
    *page.MODULES,
    purge,
    runs,
    stream,
    schemas,
    freshness,
    impact,
    tags,
    timeline,
    trace,
    why,
    evidence,
)
