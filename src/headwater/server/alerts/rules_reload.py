"""Reads the file of alert rules again when it changes; a file that is broken leaves the old rules."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError
from headwater.server.alerts.rules import read_rules

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.server.app import App

__all__ = ["follow_rules"]

log = logging.getLogger("headwater.server")

Stamp = tuple[int, int, int] | None
WARNING = (
    "alerts: the file of rules was changed and cannot be used; the rules before still hold, the log"
    " says what is wrong"
)


async def follow_rules(app: App) -> None:
    """Check the file as often as rules are evaluated, until the server ends."""
    alerts = app.alerts
    if alerts is None or (path := alerts.rules.file) is None:
        return
    held = seen = await asyncio.to_thread(_stamp, path)
    while True:
        await asyncio.sleep(app.settings.alerts_every)
        before, seen = seen, await asyncio.to_thread(_stamp, path)
        # One that was changed a moment ago may not be written to its end.
        if seen == held or seen != before:
            continue
        held = seen
        try:
            alerts.use(await asyncio.to_thread(read_rules, path))
        except HeadwaterError as error:
            log.warning("alert rules not reloaded, the previous ones stay in use: %s", error)
            app.warnings["alerts"] = WARNING
        else:
            app.warnings.pop("alerts", None)
            log.info("alert rules reloaded from %s: %s", path, ", ".join(alerts.rules.rules))


def _stamp(path: Path) -> Stamp:
    """What changes when a file is rewritten or replaced; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
