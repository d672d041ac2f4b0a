"""The application of a Spark Connect client: one session and its actions and queries."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import PROCESS_EXIT, RunEnd, of_exception
from headwater.spark.driver import config
from headwater.spark.driver.application import GRACE_SECONDS, Application
from headwater.spark.driver.worker import Worker
from headwater.spark.log_filter import OwnErrorsFilter
from headwater.spark.remote import messages
from headwater.spark.remote.actions import ConnectActions
from headwater.spark.remote.calls import ClientCalls, ClientHooks
from headwater.spark.remote.queries import ConnectQueries
from headwater.spark.remote.server_client import OWN, ConnectServer, own_requests

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_SECONDS = 10.0
NAMES_SECONDS = 1.0
# Spark shortens the text of a plan by default; these settings change its length and nothing else.
PLAN_TEXT_SETTINGS = {
    "spark.sql.debug.maxToStringFields": "5000",
    "spark.sql.maxMetadataStringLength": "20000",
}


class ConnectApplication(Application):
    """The application of one client.

    `names` counts how often the meaning of names may have changed; `definitions` are the views and
    functions that the client has registered. Requests to the server are made on a thread of their
    own, so that neither the program nor the worker waits for them.
    """

    def __init__(self, spark: Any, settings: config.SparkSettings, conf: dict[str, str]) -> None:
        super().__init__(settings, conf, str(spark.version))
        self.spark = spark
        self.server = ConnectServer(spark)
        self._requests = Worker("headwater-spark-requests")
        self.definitions: list[Any] = []
        self.names = 0
        self.queries: ConnectQueries = ConnectQueries(self)
        self.actions: ConnectActions = ConnectActions(self)
        self._settings_before = self._show_whole_plans()
        calls = ClientCalls(self)
        self._hooks = ClientHooks(spark, calls.command, calls.read, self._close)
        self._filter = OwnErrorsFilter(lambda: OWN.depth > 0)
        self.begin()

    @property
    def over(self) -> bool:
        """Whether this application emits nothing more."""
        return self._over or self._closing is not None

    def ask(self, task: Callable[..., Any], *args: Any, droppable: bool = False) -> None:
        """Run a task that makes requests to the server, on their own thread."""
        self._requests.post(task, *args, droppable=droppable)

    def names_change(self) -> None:
        """Wait for commands that are being read: a name is about to change its meaning."""
        self._requests.wait(NAMES_SECONDS)
        self.names += 1

    def _close(self, _: Any, call: Callable[[], Any]) -> Any:
        internal_errors.log_and_ignore("ending open runs before the session stops")(
            self._before_close
        )()
        return call()

    def _before_close(self) -> None:
        if self._over or self._closing is not None:
            return
        error = sys.exc_info()[1]
        ending = PROCESS_EXIT.now if PROCESS_EXIT.signalled else of_exception(error)
        self._catch_up()
        self.end_children(ending)
        self.queries.unregister()

    def finish(self, ending: RunEnd) -> None:
        """End everything; called once, as the process ends."""
        if self._over:
            return
        if self._closing is None:
            self._catch_up()
        self.worker.post(self.end_now, self.ending(ending))
        self._ended.wait(GRACE_SECONDS)

    def _catch_up(self) -> None:
        """Wait until what has happened is known, the ends of queries included."""
        deadline = time.monotonic() + EXIT_SECONDS
        self.queries.poll_all()
        # A response may make the worker send one more request.
        for one in (self._requests, self.worker, self._requests):
            one.wait(max(0.0, deadline - time.monotonic()))

    def close(self, ending: RunEnd) -> None:
        """Unwrap the client and end everything: detached, or replaced by another application."""
        self._hooks.undo()
        self.finish(ending)
        if self._closing is None:
            self.queries.unregister()
            internal_errors.log_and_ignore("restoring settings")(self._restore_settings)()
        self._filter.close()
        self._requests.stop()
        self.worker.stop()

    def flush(self, seconds: float) -> bool:
        """Wait until what has happened so far is emitted and received."""
        deadline = time.monotonic() + seconds

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        emitted = self._requests.wait(left()) and self.worker.wait(left())
        return emitted and self.journal.flush(left())

    def poll(self, age: float) -> None:
        self.queries.poll(age)
        self.actions.poll(age)
        self.heartbeat(age)

    def _show_whole_plans(self) -> dict[str, str | None]:
        before: dict[str, str | None] = {}
        for key, value in PLAN_TEXT_SETTINGS.items():
            try:
                with own_requests():
                    before[key] = self.spark.conf.get(key, None)
                    self.spark.conf.set(key, value)
            except Exception as error:  # noqa: BLE001
                internal_errors.report("raising the length limit of explain texts", error)
        return before

    def _restore_settings(self) -> None:
        with own_requests():
            for key, value in self._settings_before.items():
                if value is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, value)


def attached(spark: Any, namespace: str | None, app_name: str | None) -> ConnectApplication | None:
    """An application for a session, or None when its settings disable lineage."""
    conf = configured(spark)
    settings = config.read(conf, namespace=namespace, app_name=app_name)
    return ConnectApplication(spark, settings, conf) if settings.enabled else None


def configured(spark: Any) -> dict[str, str]:
    """The settings of a session, as far as the server shows them."""
    try:
        with own_requests():
            return messages.settings(spark.client)
    except Exception:  # noqa: BLE001
        return {}
