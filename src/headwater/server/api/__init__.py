"""The HTTP API: Headwater's own under /api/v2, the Marquez-compatible one under /api/v1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.api import batch, health, openapi, v1, v2

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["routes"]


def routes(app: App) -> None:
    """Put every route on the app's router."""
    for part in (health, batch, openapi, v1, v2):
        part.routes(app)
