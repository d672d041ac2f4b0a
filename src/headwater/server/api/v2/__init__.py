"""Headwater's own API: the graph at any moment, the log by cursor, what the page asks, metrics."""

from headwater.server.api.v2 import (
    about,
    alerts,
    aliases,
    analysis,
    events,
    log_head,
    metrics,
    names,
    page,
    purge,
    questions,
    runs,
    schemas,
    stream,
    timeline,
)

__all__ = ["MODULES"]

MODULES = (
    about,
    alerts,
    aliases,
    analysis,
    events,
    log_head,
    metrics,
    names,
    *page.MODULES,
    purge,
    *questions.MODULES,
    runs,
    schemas,
    stream,
    timeline,
)
