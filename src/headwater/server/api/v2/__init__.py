"""Headwater's own API: the graph at any moment, the log by cursor, what the page asks, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.api.v2 import events, graph, metrics, page, runs, stream

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["routes"]


def routes(app: App) -> None:
    """Put the routes on the app's router."""
    for part in (events, graph, metrics, page, runs, stream):
        part.routes(app)
