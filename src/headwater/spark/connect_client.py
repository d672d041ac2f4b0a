"""Spark Connect: a client without a JVM is attached by what it sends to its server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from headwater.emit import ends, once
from headwater.emit.ends import COMPLETE, ENDS
from headwater.spark.faults import without_plan

if TYPE_CHECKING:
    from headwater.spark.remote.application import RemoteApplication


class _Attached:
    """The client of this process, if one is attached."""

    application: RemoteApplication | None = None


_lock = threading.RLock()


def is_remote(spark: Any) -> bool:
    """Whether a session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def attach(spark: Any, namespace: str | None, app_name: str | None) -> None:
    """Make a client report its lineage; a second time changes nothing."""
    from headwater.spark.remote.application import attached

    with _lock:
        current = _Attached.application
        if current is not None and current.spark is spark and not current.over:
            return
        if current is not None:
            ENDS.forget(current.finish)
            current.close(COMPLETE)
        current = _Attached.application = attached(spark, namespace, app_name)
        if current is not None:
            ends.WORDINGS[:] = [without_plan]
            ENDS.watch(current.finish)


def detach(spark: Any) -> None:
    """Stop reporting of a client."""
    with _lock:
        current = _Attached.application
        if current is None or current.spark is not spark:
            return
        _Attached.application = None
        ENDS.forget(current.finish)
        once.quiet("detaching from Spark Connect")(current.close)(COMPLETE)


def flush(timeout: float) -> bool:
    """Wait until everything that has happened is told and has arrived; False when time is up."""
    current = _Attached.application
    return bool(once.quiet("flushing")(current.flush)(timeout)) if current is not None else True
