"""The journals of this process, one for each place that events go to, and their watchdogs."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.journal import Journal
from headwater.emit.process.forks import ForkGuard
from headwater.emit.process.process_exit import PROCESS_EXIT, RunEnd
from headwater.emit.process.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Mapping

FLUSH_SECONDS = 5.0

# A signal may end the process while its main thread holds the lock.
_lock = ForkGuard()
_open: dict[str, tuple[Journal, Watchdog | None]] = {}


def journal(config: Mapping[str, Any] | None = None) -> Journal:
    """The journal of this process for these destinations, opened at the first use."""
    # Where openlineage-python sends to without a configuration is in the environment.
    named = [item for item in os.environ.items() if item[0].startswith("OPENLINEAGE_")]
    key = json.dumps([config or {}, [] if config else sorted(named)], sort_keys=True)
    with _lock:
        found = _open.get(key)
        if found is None or not found[0].of_this_process:
            opened = Journal(config)
            if not any(pair[0].of_this_process for pair in _open.values()):
                PROCESS_EXIT.watch(_finish)
            found = _open[key] = (opened, _watched(opened))
        return found[0]


def flush(seconds: float) -> bool:
    """Wait until every journal is empty, at most so long."""
    with _lock:
        journals = [pair[0] for pair in _open.values() if pair[0].of_this_process]
    deadline = time.monotonic() + seconds
    return all(one.flush(max(0.0, deadline - time.monotonic())) for one in journals)


@internal_errors.log_and_ignore("starting the watchdog")
def _watched(opened: Journal) -> Watchdog | None:
    if os.environ.get("HEADWATER_WATCHDOG", "").lower() in ("0", "false", "off"):
        return None
    return Watchdog(opened)


def _finish(_ending: RunEnd) -> None:
    with _lock:
        pairs = [pair for pair in _open.values() if pair[0].of_this_process]
        _open.clear()
    for pair in pairs:
        _close(*pair)


@internal_errors.log_and_ignore("closing a journal")
def _close(opened: Journal, watchdog: Watchdog | None) -> None:
    empty = opened.close(FLUSH_SECONDS)
    if watchdog is not None:
        watchdog.dismiss(empty)
