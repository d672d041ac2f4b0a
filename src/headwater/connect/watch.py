"""The agent as a process: every cluster in its own thread, one store, one writer at a time."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from headwater.connect.access import ConnectError
from headwater.connect.agent import Agent
from headwater.connect.catalog import Catalogs
from headwater.connect.client import Connect
from headwater.connect.flow import INTERVAL, Flow, Reporter
from headwater.connect.kafka import Kafka
from headwater.connect.memory import STATUS
from headwater.connect.registry import Registry
from headwater.connect.runs import Runs
from headwater.connect.telling import Teller
from headwater.connect.trouble import Troubles
from headwater.connect.world import LiveWorld
from headwater.emit import HeldError, Outbox, Sender, destinations
from headwater.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.clusters import Estate
    from headwater.connect.config import ClusterConfig
    from headwater.connect.state import Tracked

log = logging.getLogger(__name__)

LOOK = 1.0
LEAD_CHECK = 5.0


class Names:
    """Who uses which job name, so that two clusters do not speak of two jobs as one."""

    def __init__(self) -> None:
        self._owner: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def claim(self, tracked: Tracked) -> str | None:
        """Take a job's name for a cluster; says who has it when another has."""
        assert tracked.derived is not None
        job = (tracked.derived.namespace, tracked.derived.job_name)
        with self._lock:
            owner = self._owner.setdefault(job, tracked.cluster)
        if owner == tracked.cluster:
            return None
        return (
            f"cluster {owner} has a job {job[1]} in namespace {job[0]} too: both show as one; "
            "give each cluster a namespace of its own"
        )

    def release(self, cluster: str) -> None:
        """Give up the names of a cluster that is watched no more."""
        with self._lock:
            self._owner = {job: who for job, who in self._owner.items() if who != cluster}


class Watcher:
    """One cluster, watched in a thread of its own until told to stop."""

    def __init__(
        self, config: ClusterConfig, outbox: Outbox, names: Names, reporter: Reporter, runs: Runs
    ) -> None:
        self.config = config
        self.world = world_of(config)
        self.connect = Connect(config.access)
        self.flow = Flow(self.world.kafka) if self.world.kafka else None
        teller = Teller(config, self.world, self.flow)
        self.agent = Agent(
            config.name,
            self.connect,
            outbox,
            derive=teller.derive,
            nothing=teller.nothing,
            event=teller.event,
            times=config.times,
            claim=names.claim,
            on_root=teller.on_root,
            around=lambda: self.world.problems,
            runs=runs,
        )
        self.lost = False
        self._reporter = reporter
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._watch, name=config.name, daemon=True)]
        if self.flow:
            self._threads.append(
                threading.Thread(target=self._measure, name=f"{config.name} flow", daemon=True)
            )

    def start(self) -> None:
        """Begin to watch."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Watch no more; runs stay open, for whoever watches next."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=15)
        self.connect.close()
        self.world.close()

    def _watch(self) -> None:
        log.info("watching %s (%s)", self.config.name, self.connect.shown)
        failed = False
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.agent.tick()
                failed = False
            except HeldError as error:
                log.warning("%s", error.message)
                self.lost = True
                return
            except Exception as error:
                if not failed:
                    log.warning("%s: %s: %s", self.config.name, type(error).__name__, error)
                    log.debug("tick", exc_info=True)
                failed = True
            self._stop.wait(max(0.05, self.agent.wait - (time.monotonic() - began)))
        self.agent.outbox.forget_connection()

    def _measure(self) -> None:
        assert self.flow is not None
        while not self._stop.wait(INTERVAL):
            try:
                self._reporter.post(self.flow.measure(self.agent.tracked))
            except Exception:
                log.debug("flow of %s", self.config.name, exc_info=True)


def world_of(config: ClusterConfig) -> LiveWorld:
    """What can be asked about a cluster's topics, schemas and tables."""
    return LiveWorld(
        kafka=Kafka(config.kafka) if config.kafka else None,
        registry=Registry(config.registry) if config.registry else None,
        catalogs=Catalogs(),
        sample=config.sample,
        defaults=config.defaults,
    )


class Watch:
    """All clusters of an estate."""

    def __init__(
        self, estate: Estate, state: str, *, reload: Callable[[], Estate | None] = lambda: None
    ) -> None:
        self.estate = estate
        self.outbox = Outbox(state)
        self.stop = threading.Event()
        self._reload = reload
        self._watchers: dict[str, Watcher] = {}
        self._unfit: dict[str, ConnectError | UsageError] = {}
        self._names = Names()
        self._runs = Runs(())

    def run(self) -> None:
        """Watch until told to stop; wait in the wings while another process watches."""
        while not self.stop.is_set():
            targets = destinations(self.estate.transport)
            if not self.outbox.lead():
                log.warning("another agent writes to %s: standing by", self.outbox.shown)
                if not self.outbox.wait_to_lead(self.stop):
                    break
                log.warning("taking over")
            sender = Sender(self.outbox, targets)
            sender.start()
            for target in targets:
                log.info("events go to %s", target.shown)
            servers = [target.server for target in targets if target.server]
            reporter, self._runs = Reporter(servers), Runs(servers)
            try:
                self._lead(reporter)
            finally:
                self._stop_watchers()
                sender.stop(flush=5.0 if self.stop.is_set() else 0.0)
                reporter.close()
                self._runs.close()
                self.outbox.close()
                self.outbox.forget_connection()

    def _lead(self, reporter: Reporter) -> None:
        self._adjust(self.estate, reporter)
        if self._unfit and not self._watchers:
            raise next(iter(self._unfit.values()))
        checked = time.monotonic()
        while not self.stop.wait(LOOK):
            if any(watcher.lost for watcher in self._watchers.values()):
                return
            if time.monotonic() - checked > LEAD_CHECK:
                checked = time.monotonic()
                try:
                    with self.outbox.transaction():
                        pass
                except HeldError as error:
                    log.warning("%s", error.message)
                    return
            changed = self._reload()
            if changed is not None:
                self.estate = changed
                self._unfit = {}
            self._adjust(self.estate, reporter)

    def _adjust(self, estate: Estate, reporter: Reporter) -> None:
        """Watch what the estate names, and nothing else; what has not changed goes on."""
        wanted = {cluster.name: cluster for cluster in estate.clusters}
        for name, watcher in list(self._watchers.items()):
            if wanted.get(name) != watcher.config:
                log.info("%s: no longer watched as it was", name)
                watcher.stop()
                self._names.release(name)
                del self._watchers[name]
        for name, config in wanted.items():
            if name not in self._watchers:
                self._begin(config, reporter)

    def _begin(self, config: ClusterConfig, reporter: Reporter) -> None:
        """Watch one more cluster; one with a certificate that cannot be read, say, waits."""
        name = config.name
        troubles = Troubles(name)
        try:
            watcher = Watcher(config, self.outbox, self._names, reporter, self._runs)
        except (ConnectError, UsageError) as error:
            if name not in self._unfit:
                troubles.add("", error.message)
                with suppress(HeldError), self.outbox.transaction() as step:
                    step.put(f"{STATUS}{name}", msgspec.json.encode(troubles.all()))
            self._unfit[name] = error
            return
        self._unfit.pop(name, None)
        self._watchers[name] = watcher
        watcher.start()

    def _stop_watchers(self) -> None:
        for name, watcher in self._watchers.items():
            watcher.stop()
            self._names.release(name)
        self._watchers = {}
