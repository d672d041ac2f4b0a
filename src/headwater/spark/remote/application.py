"""A Spark Connect session as an application: the parent of every action and query of the client."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.emit.ends import ENDS, Ending, of_exception
from headwater.spark import config
from headwater.spark.remote import hooks, messages
from headwater.spark.remote.actions import Actions
from headwater.spark.remote.sent import Calls
from headwater.spark.remote.streams import Queries
from headwater.spark.remote.world import Hush, Server, asking
from headwater.spark.root import GRACE_SECONDS, Root
from headwater.spark.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_SECONDS = 10.0
NAMES_SECONDS = 1.0
# A plan's text is cut off by default; these say how much of it is shown, and nothing else.
SHOWN = {"spark.sql.debug.maxToStringFields": "5000", "spark.sql.maxMetadataStringLength": "20000"}


class RemoteApplication(Root):
    """What is told of one client; `names` counts how often the meaning of names may have changed."""

    def __init__(self, spark: Any, settings: config.Settings, conf: dict[str, str]) -> None:
        super().__init__(settings, conf, str(spark.version))
        self.spark = spark
        self.server = Server(spark)
        self._asker = Worker("headwater-spark-asks")
        self.pool: list[Any] = []
        self.names = 0
        self.queries: Queries = Queries(self)
        self.actions: Actions = Actions(self)
        self._shown = self._show()
        calls = Calls(self)
        self._hooks = hooks.Hooks(spark, calls.command, calls.read, self._close)
        self._hush = Hush()
        self._hush.__enter__()
        self.begin()

    @property
    def over(self) -> bool:
        """Whether this application has nothing more to say."""
        return self._over or self._closing is not None

    def ask(self, task: Callable[..., Any], *args: Any, droppable: bool = False) -> None:
        """Do something that needs the server, apart from the program and from what is told."""
        self._asker.post(task, *args, droppable=droppable)

    def names_change(self) -> None:
        """What is being read must not meet the new meaning of a name."""
        self._asker.wait(NAMES_SECONDS)
        self.names += 1

    def _close(self, _: Any, call: Callable[[], Any]) -> Any:
        once.quiet("telling what is left before the session stops")(self._before_close)()
        return call()

    def _before_close(self) -> None:
        if self._over or self._closing is not None:
            return
        error = sys.exc_info()[1]
        ending = ENDS.now if ENDS.signalled else of_exception(error)
        self._catch_up()
        self.end_parts(ending)
        self.queries.deafen()

    def finish(self, ending: Ending) -> None:
        """Say how everything ends; called once, as the process ends."""
        if self._over:
            return
        if self._closing is None:
            self._catch_up()
        self.worker.post(self.end_now, self.ending(ending))
        self._said.wait(GRACE_SECONDS)

    def _catch_up(self) -> None:
        """Wait for what has happened to be known, the ends of queries that are over included."""
        deadline = time.monotonic() + EXIT_SECONDS
        self.queries.ask_all()
        # An answer may make the worker ask once more.
        for one in (self._asker, self.worker, self._asker):
            one.wait(max(0.0, deadline - time.monotonic()))

    def close(self, ending: Ending) -> None:
        """Hear nothing more and say how it ended: detached, or replaced by another application."""
        self._hooks.undo()
        self.finish(ending)
        if self._closing is None:
            self.queries.deafen()
            once.quiet("putting settings back")(self._unshow)()
        self._hush.__exit__()
        self._asker.stop()
        self.worker.stop()

    def flush(self, seconds: float) -> bool:
        """Wait until what has happened so far is told and has arrived."""
        deadline = time.monotonic() + seconds

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        told = self._asker.wait(left()) and self.worker.wait(left())
        return told and self.journal.flush(left())

    def look(self, age: float) -> None:
        self.queries.look(age)
        self.actions.look(age)
        self.beat(age)

    def _show(self) -> dict[str, str | None]:
        before: dict[str, str | None] = {}
        for key, value in SHOWN.items():
            try:
                with asking():
                    before[key] = self.spark.conf.get(key, None)
                    self.spark.conf.set(key, value)
            except Exception as error:  # noqa: BLE001
                once.report("asking for whole plans", error)
        return before

    def _unshow(self) -> None:
        with asking():
            for key, value in self._shown.items():
                if value is None:
                    self.spark.conf.unset(key)
                else:
                    self.spark.conf.set(key, value)


def attached(spark: Any, namespace: str | None, app_name: str | None) -> RemoteApplication | None:
    """An application for a session, or None when its settings say that nothing is told."""
    conf = configured(spark)
    settings = config.read(conf, namespace=namespace, app_name=app_name)
    return RemoteApplication(spark, settings, conf) if settings.enabled else None


def configured(spark: Any) -> dict[str, str]:
    """The settings of a session, as far as the server shows them."""
    try:
        with asking():
            return messages.settings(spark.client)
    except Exception:  # noqa: BLE001
        return {}
