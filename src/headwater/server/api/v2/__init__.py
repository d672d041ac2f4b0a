"""Headwater's own API: the graph at any moment, the log by cursor, what the page asks, metrics."""

from headwater.server.api.v2 import (
    abort_run,
    alerts,
    aliases,
    analysis,
    consumer_groups,
    descriptions,
    events,
    log_head,
    metrics,
    names,
    page,
    purge,
    questions,
    schemas,
    stream,
    timeline,
)

__all__ = ["MODULES"]

MODULES = (
    descriptions,
    alerts,
    aliases,
    analysis,
    consumer_groups,
    events,
    log_head,
    metrics,
    names,
    *page.MODULES,
    purge,
    *questions.MODULES,
    abort_run,
    schemas,
    stream,
    timeline,
)
