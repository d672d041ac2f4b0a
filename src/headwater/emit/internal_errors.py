"""Errors inside Headwater itself: logged once, then ignored, since they must not stop the user's program."""

from __future__ import annotations

import functools
import logging
import traceback
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")
_reported: set[tuple[str, str]] = set()


def report(where: str, error: BaseException) -> None:
    """Log a fault the first time it is seen at this place."""
    key = (where, type(error).__name__)
    if key in _reported:
        return
    _reported.add(key)
    log = logging.getLogger("headwater")
    # A message is cut only when nothing in it is secret any more.
    text = redact(str(error)).partition("\n")[0][:300]
    log.warning("lineage: error while %s, ignored: %s: %s", where, key[1], text)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s: %s", where, redact("".join(traceback.format_exception(error))))


def log_and_ignore(where: str) -> Callable[[Callable[P, T]], Callable[P, T | None]]:
    """Make a function report its faults instead of raising them."""

    def wrap(function: Callable[P, T]) -> Callable[P, T | None]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001
                report(where, error)
                return None

        return call

    return wrap
