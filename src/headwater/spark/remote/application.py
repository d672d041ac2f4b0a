"""A Spark Connect session as an application: the parent of every action and query of the client."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import event, once, session
from headwater.emit.ends import ENDS, Ending, of_exception
from headwater.emit.life import Life, new_run_id
from headwater.emit.parent import Ancestors, RunRef
from headwater.lineage.events import EventType
from headwater.spark import config, facets, names
from headwater.spark.flow import SECONDS as FLOW_SECONDS
from headwater.spark.flow import Flow
from headwater.spark.remote import hooks
from headwater.spark.remote.actions import Actions
from headwater.spark.remote.sent import Calls
from headwater.spark.remote.streams import Queries
from headwater.spark.remote.world import Hush, Server, asking
from headwater.spark.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_SECONDS = 10.0
GRACE_SECONDS = 5.0
LOOK_SECONDS = 1.0
NAMES_SECONDS = 1.0
# A plan's text is cut off by default; these say how much of it is shown, and nothing else.
SHOWN = {"spark.sql.debug.maxToStringFields": "5000", "spark.sql.maxMetadataStringLength": "20000"}


class RemoteApplication:
    """What is told of one client; `names` counts how often the meaning of names may have changed."""

    def __init__(self, spark: Any, settings: config.Settings, conf: dict[str, str]) -> None:
        self.spark = spark
        self.settings = settings
        self.server = Server(spark)
        self.journal = session.journal(settings.transport or None)
        self.worker = Worker("headwater-spark")
        self._asker = Worker("headwater-spark-asks")
        self.flow = Flow(self.journal)
        self.pool: list[Any] = []
        self.names = 0
        self._over = False
        self._closing: tuple[float, Ending] | None = None
        self._said = threading.Event()
        self._about_runs = facets.of_run(settings, conf, str(spark.version))
        ref = RunRef(settings.namespace, names.plain(settings), new_run_id())
        above = settings.ancestors
        self._below = above.below(ref) if above else Ancestors(ref, ref)
        self.life = Life(
            self.journal,
            ref,
            run_facets={**({"parent": above.facet} if above else {}), **self._about_runs},
            job_facets=facets.of_job(settings, "BATCH", "APPLICATION"),
        )
        self._silent = not settings.allows_job(ref.name)
        self.queries = Queries(self)
        self.actions = Actions(self)
        self._shown = self._show()
        calls = Calls(self)
        self._hooks = hooks.Hooks(spark, calls.command, calls.read, self._close)
        self._hush = Hush()
        self._hush.__enter__()
        self.worker.every(lambda: LOOK_SECONDS, self._watch)
        self.worker.every(lambda: FLOW_SECONDS, lambda: self.flow.post(self.queries.open))  # type: ignore[arg-type]
        if not self._silent:
            self.worker.post(self.life.start, event.now())

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

    def child(self, name: str, processing: str, kind: str) -> Life | None:
        """A run below this application, or None when a filter keeps it out."""
        if not self.settings.allows_job(name):
            return None
        return Life(
            self.journal,
            RunRef(self.settings.namespace, name, new_run_id()),
            run_facets={"parent": self._below.facet, **self._about_runs},
            job_facets=facets.of_job(self.settings, processing, kind),
        )

    def _close(self, _: Any, call: Callable[[], Any]) -> Any:
        once.quiet("telling what is left before the session stops")(self._before_close)()
        return call()

    def _before_close(self) -> None:
        if self._over or self._closing is not None:
            return
        error = sys.exc_info()[1]
        ending = ENDS.now if ENDS.signalled else of_exception(error)
        self._asker.wait(EXIT_SECONDS)
        self.worker.wait(GRACE_SECONDS)
        self.worker.post(self.actions.end_all, ending)
        self.worker.post(self.queries.end_all, ending)
        self.worker.wait(GRACE_SECONDS)
        self.queries.deafen()
        # The program may still fail after this; the application's own end waits for it a little.
        self._closing = (time.monotonic(), ending)

    def finish(self, ending: Ending) -> None:
        """Say how everything ends; called once, as the process ends."""
        if self._over:
            return
        if self._closing is not None and ending.type is EventType.COMPLETE:
            ending = self._closing[1]
        elif self._closing is None:
            self._asker.wait(EXIT_SECONDS)
        self.worker.post(self._finish_now, ending)
        self._said.wait(GRACE_SECONDS)

    def _finish_now(self, ending: Ending) -> None:
        if self._over:
            return
        self.actions.end_all(ending)
        self.queries.end_all(ending)
        self._over = True
        self.life.end(ending)
        self._said.set()

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

    def _watch(self) -> None:
        if self._over:
            return
        if self._closing is not None:
            if time.monotonic() - self._closing[0] > GRACE_SECONDS:
                self._finish_now(self._closing[1])
            return
        age = self.settings.heartbeat
        self.queries.look(age)
        self.actions.look(age)
        if not self._silent and event.now() - self.life.told >= age:
            self.life.running()

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
            return dict(spark.conf.getAll)
    except Exception:  # noqa: BLE001
        return {}
