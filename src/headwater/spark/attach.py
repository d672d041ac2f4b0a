"""One line that makes a session report its lineage, and one that makes it stop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.emit import ends, once, session
from headwater.emit.ends import COMPLETE, ENDS
from headwater.spark import config, connect_client
from headwater.spark.application import Application
from headwater.spark.bridge import trace_of
from headwater.spark.entries import Patches
from headwater.spark.faults import without_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.entries import Entry

S = TypeVar("S")


class _Attached:
    """The application of this process, if one is attached."""

    application: Application | None = None
    patches: Patches | None = None


_lock = threading.RLock()


def attach(spark: S, *, namespace: str | None = None, app_name: str | None = None) -> S:
    """Make a session report its lineage; returns the session. A second time is harmless."""
    _attach(spark, namespace, app_name)
    return spark


@once.quiet("attaching to Spark")
def _attach(spark: Any, namespace: str | None, app_name: str | None) -> None:
    if connect_client.is_remote(spark):
        connect_client.attach(spark, namespace, app_name)
        return
    with _lock:
        current = _Attached.application
        if current is not None and (
            current.over or current.bridge.context is not spark.sparkContext
        ):
            current.close(COMPLETE)
            ENDS.forget(current.finish)
            current = None
        if current is None:
            conf = dict(spark.sparkContext.getConf().getAll())
            settings = config.read(conf, namespace=namespace, app_name=app_name)
            if not settings.enabled:
                return
            current = _Attached.application = Application(spark, settings)
            ends.TRACES[:] = [trace_of]
            ends.WORDINGS[:] = [without_plan]
            ENDS.watch(current.finish)
        if _Attached.patches is None:
            _Attached.patches = Patches(_around)
        current.listen(spark)


def detach(spark: Any) -> None:
    """Stop reporting; what is open is said to be complete as far as this program is concerned."""
    if connect_client.is_remote(spark):
        connect_client.detach(spark)
        return
    with _lock:
        current = _Attached.application
        if current is None or getattr(spark, "_sc", None) is not current.bridge.context:
            return
        _Attached.application = None
        if _Attached.patches is not None:
            _Attached.patches.undo()
            _Attached.patches = None
        ENDS.forget(current.finish)
        once.quiet("detaching from Spark")(current.close)(COMPLETE)


def flush(timeout: float = 10.0) -> bool:
    """Wait until everything that has happened is told and has arrived; False when time is up."""
    current = _Attached.application
    told = once.quiet("flushing")(current.flush)(timeout) if current is not None else True
    told = connect_client.flush(timeout) and told
    return bool(told) and session.flush(timeout)


def _around(entry: Entry, owner: Any, call: Callable[[], Any]) -> Any:
    current = _Attached.application
    return call() if current is None else current.calls.around(entry, owner, call)
