"""Attach a Spark session so that it reports its lineage, detach it, and flush what is not sent yet.

Spark Classic (a driver with a JVM) and Spark Connect (a client without one) each have at most one
attached application in a process.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.emit import internal_errors, journals
from headwater.emit.process import process_exit
from headwater.emit.process.process_exit import COMPLETE, PROCESS_EXIT
from headwater.spark.driver import config
from headwater.spark.driver.bridge import trace_of
from headwater.spark.driver.classic import ClassicApplication
from headwater.spark.driver.wrapped_methods import WrappedMethods
from headwater.spark.error_text import without_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.driver.wrapped_methods import EntryPoint
    from headwater.spark.remote.application import ConnectApplication

S = TypeVar("S")


class _Attached:
    """The applications of this process that are attached."""

    classic: ClassicApplication | None = None
    connect: ConnectApplication | None = None
    wrapped: WrappedMethods | None = None


_lock = threading.RLock()


def attach(spark: S, *, namespace: str | None = None, app_name: str | None = None) -> S:
    """Make a session report its lineage; returns the session. A second time is harmless."""
    _attach(spark, namespace, app_name)
    return spark


@internal_errors.log_and_ignore("attaching to Spark")
def _attach(spark: Any, namespace: str | None, app_name: str | None) -> None:
    with _lock:
        if is_connect(spark):
            _attach_connect(spark, namespace, app_name)
        else:
            _attach_classic(spark, namespace, app_name)


def _attach_classic(spark: Any, namespace: str | None, app_name: str | None) -> None:
    current = _Attached.classic
    if current is not None and (current.over or current.bridge.context is not spark.sparkContext):
        current.close(COMPLETE)
        PROCESS_EXIT.forget(current.finish)
        current = None
    if current is None:
        conf = dict(spark.sparkContext.getConf().getAll())
        settings = config.read(conf, namespace=namespace, app_name=app_name)
        if not settings.enabled:
            return
        current = _Attached.classic = ClassicApplication(spark, settings)
        process_exit.TRACES[:] = [trace_of]
        process_exit.MESSAGE_FILTERS[:] = [without_plan]
        PROCESS_EXIT.watch(current.finish)
    if _Attached.wrapped is None:
        _Attached.wrapped = WrappedMethods(_around)
    current.listen(spark)


def _attach_connect(spark: Any, namespace: str | None, app_name: str | None) -> None:
    from headwater.spark.remote.application import attached

    current = _Attached.connect
    if current is not None and current.spark is spark and not current.over:
        return
    if current is not None:
        PROCESS_EXIT.forget(current.finish)
        current.close(COMPLETE)
    current = _Attached.connect = attached(spark, namespace, app_name)
    if current is not None:
        process_exit.MESSAGE_FILTERS[:] = [without_plan]
        PROCESS_EXIT.watch(current.finish)


def detach(spark: Any) -> None:
    """Stop reporting: the application ends COMPLETE, queries that still run end ABORT."""
    with _lock:
        current = _attached_to(spark)
        if current is None:
            return
        if current is _Attached.connect:
            _Attached.connect = None
        else:
            _Attached.classic = None
            if _Attached.wrapped is not None:
                _Attached.wrapped.restore()
                _Attached.wrapped = None
        PROCESS_EXIT.forget(current.finish)
        internal_errors.log_and_ignore("detaching from Spark")(current.close)(COMPLETE)


def _attached_to(spark: Any) -> ClassicApplication | ConnectApplication | None:
    if is_connect(spark):
        connect = _Attached.connect
        return connect if connect is not None and connect.spark is spark else None
    classic = _Attached.classic
    context = getattr(spark, "_sc", None)
    return classic if classic is not None and context is classic.bridge.context else None


def flush(timeout: float = 10.0) -> bool:
    """Wait until everything that has happened is emitted and received; False when time is up."""
    flushed = True
    for current in (_Attached.classic, _Attached.connect):
        if current is not None:
            flushed = (
                bool(internal_errors.log_and_ignore("flushing")(current.flush)(timeout)) and flushed
            )
    return flushed and journals.flush(timeout)


def is_connect(spark: Any) -> bool:
    """Whether a session is a client of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _around(entry: EntryPoint, owner: Any, call: Callable[[], Any]) -> Any:
    current = _Attached.classic
    return call() if current is None else current.calls.around(entry, owner, call)
