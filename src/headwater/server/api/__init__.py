"""The HTTP API: Headwater's own under /api/v2, the Marquez-compatible one under /api/v1.

A route is a handler with its declaration (see `headwater.server.routing`); a module with routes has
an `api` and stands in a list here, in `v1` or in `v2`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.api import batch, health, openapi, v1, v2

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["routes"]


def routes(app: App) -> None:
    """Put every route on the app's router."""
    for module in (health, batch, openapi, *v1.MODULES, *v2.MODULES):
        app.router.mount(app, module.api)
