"""The agent process: each cluster in a thread of its own, one store, one writer at a time."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from headwater.connect.agent.cluster_agent import ClusterAgent
from headwater.connect.agent.cluster_lineage import ClusterLineage, JobNames
from headwater.connect.agent.connector_states import STATUS
from headwater.connect.agent.flow import INTERVAL, FlowMeter
from headwater.connect.agent.problems import Problems
from headwater.connect.groups.producers import ProducerWatcher
from headwater.connect.groups.watcher import GroupWatcher
from headwater.connect.services.endpoint import ConnectError
from headwater.connect.services.iceberg_catalog import Catalogs
from headwater.connect.services.kafka import KafkaAdmin
from headwater.connect.services.lineage_server import LineageServers
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.connect.services.registry import SchemaRegistry
from headwater.connect.services.rest import ConnectRest
from headwater.emit import Outbox, OutboxInUseError, Sender, destinations
from headwater.emit.flow import FlowReporter
from headwater.errors import UsageError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.connect.agent.clusters_file import AgentConfig
    from headwater.connect.config import ClusterConfig
    from headwater.connect.groups.life import ClientKind
    from headwater.connect.life.state import TrackedConnector
    from headwater.emit import Destination

log = logging.getLogger(__name__)

RELOAD_CHECK = 1.0
LEAD_CHECK = 5.0


class ClusterThread:
    """One cluster, polled in a thread of its own until it is stopped."""

    def __init__(
        self,
        config: ClusterConfig,
        outbox: Outbox,
        names: JobNames,
        reporter: FlowReporter,
        lookup: LineageServers,
        peers: Callable[[], Iterable[ClusterThread]],
    ) -> None:
        """`peers` are all clusters of this process: their connectors' groups are not reported."""
        self.config = config
        self.metadata = live_metadata_of(config)
        self.connect = ConnectRest(config.endpoint)
        self.flow = FlowMeter(self.metadata.kafka) if self.metadata.kafka else None
        self.agent = ClusterAgent(
            config.name,
            self.connect,
            outbox,
            ClusterLineage(config, self.metadata, self.flow, names),
            intervals=config.times,
            lookup=lookup,
        )
        self._peers = peers
        self.watchers: list[GroupWatcher | ProducerWatcher] = []
        if kafka := self.metadata.kafka:
            if config.consumer_groups:
                self.watchers.append(
                    GroupWatcher(
                        config, kafka, outbox, self._connectors, named_groups=lookup.named_groups
                    )
                )
            if config.producers:
                self.watchers.append(ProducerWatcher(config, kafka, outbox, self._connectors))
        self.began = time.time()
        self.polls = self.failed_polls = 0
        self.polled_at = self.poll_seconds = 0.0
        """When Connect last answered, and how long the last poll took."""
        self.lost = False
        """Whether another process writes to the outbox now."""
        self._reporter = reporter
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._poll, name=config.name, daemon=True)]
        if self.flow:
            self._threads.append(
                threading.Thread(target=self._measure, name=f"{config.name} flow", daemon=True)
            )
        for watcher in self.watchers:
            name = f"{config.name} {watcher.kind.title}s"
            self._threads.append(
                threading.Thread(target=self._watch, args=(watcher,), name=name, daemon=True)
            )

    def start(self) -> None:
        """Begin to poll."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Poll no more; runs stay open, for the agent that polls next."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=15)
        self.agent.stop()
        self.connect.close()
        self.metadata.close()

    def _poll(self) -> None:
        log.info("polling cluster %s at %s", self.config.name, self.connect.shown)
        failed = False
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.agent.poll()
                failed = False
            except OutboxInUseError as error:
                log.warning("%s", error.message)
                self.lost = True
                return
            except Exception as error:
                if not failed:
                    log.warning(
                        "cluster %s: a poll failed and is repeated: %s: %s",
                        self.config.name, type(error).__name__, redact(str(error)),
                    )  # fmt: skip
                    log.debug("cluster %s", self.config.name, exc_info=True)
                failed = True
            self._count(failed=failed or self.agent.is_failing, began=began)
            self._stop.wait(max(0.05, self.agent.poll_delay - (time.monotonic() - began)))
        self.agent.outbox.forget_connection()

    def _count(self, *, failed: bool, began: float) -> None:
        self.poll_seconds = time.monotonic() - began
        if failed:
            self.failed_polls += 1
        else:
            self.polls += 1
            self.polled_at = time.time()

    def _measure(self) -> None:
        assert self.flow is not None
        while not self._stop.wait(INTERVAL):
            try:
                self._reporter.post(self.flow.measure(self.agent.tracked))
            except Exception:
                log.debug("cluster %s: flow not measured", self.config.name, exc_info=True)

    def _watch(self, watcher: GroupWatcher | ProducerWatcher) -> None:
        began, failed = time.monotonic(), False
        while not self._stop.wait(watcher.interval):
            # Until Connect has answered, every group of a connector would be unattributed.
            waits = time.monotonic() - began < self.config.times.grace
            if not self.reports(watcher.kind) or (waits and not self.agent.has_polled):
                continue
            try:
                self._reporter.post(watcher.round())
                failed = False
            except OutboxInUseError:
                break  # the polls log it
            except Exception as error:
                if not failed:
                    log.warning(
                        "cluster %s: %ss not read, asked again: %s: %s",
                        self.config.name, watcher.kind.title, type(error).__name__, redact(str(error)),
                    )  # fmt: skip
                    log.debug("cluster %s", self.config.name, exc_info=True)
                failed = True
        self.agent.outbox.forget_connection()

    def _connectors(self) -> list[TrackedConnector]:
        return [tracked for peer in self._peers() for tracked in peer.agent.tracked]

    def kafka_id(self, kind: ClientKind) -> str:
        """The id of the Kafka cluster whose clients of a kind it may report; empty: not known."""
        watches = any(watcher.kind is kind for watcher in self.watchers)
        cluster = self.metadata.kafka.cluster if self.metadata.kafka and watches else None
        return cluster.id if cluster else ""

    def reports(self, kind: ClientKind) -> bool:
        """Whether it reports its Kafka's clients of a kind: one of those on the same cluster does."""
        own = self.kafka_id(kind)
        names = [peer.config.name for peer in self._peers() if own and peer.kafka_id(kind) == own]
        return not names or self.config.name == min(names)


def live_metadata_of(config: ClusterConfig) -> LiveMetadata:
    """The services that know a cluster's topics, schemas and tables."""
    return LiveMetadata(
        kafka=KafkaAdmin(config.kafka) if config.kafka else None,
        registry=SchemaRegistry(config.registry) if config.registry else None,
        catalogs=Catalogs(),
        sample=config.sample,
        defaults=config.defaults,
    )


class AgentProcess:
    """Polls all clusters of an estate while this process is the writer of its outbox."""

    def __init__(
        self,
        estate: AgentConfig,
        state: str,
        *,
        reload: Callable[[], AgentConfig | None] = lambda: None,
    ) -> None:
        self.estate = estate
        self.outbox = Outbox(state)
        self.stop = threading.Event()
        self._reload = reload
        self._threads: dict[str, ClusterThread] = {}
        self._rejected: dict[str, ConnectError | UsageError] = {}
        self._names = JobNames()
        self._lookup = LineageServers(())
        self.destinations: tuple[str, ...] = ()
        """The names of the destinations that events go to."""

    @property
    def threads(self) -> list[ClusterThread]:
        """The clusters that are polled."""
        return list(self._threads.values())

    @property
    def rejected(self) -> dict[str, str]:
        """The clusters that cannot be polled, and why."""
        return {name: error.message for name, error in self._rejected.copy().items()}

    def run(self) -> None:
        """Poll until stopped; stand by while another process is the writer."""
        while not self.stop.is_set():
            targets = destinations(self.estate.transport)
            if not self.outbox.lead():
                log.warning(
                    "another agent writes to %s: standing by until it ends", self.outbox.shown
                )
                if not self.outbox.wait_to_lead(self.stop):
                    break
                log.warning("the other agent has ended: taking over %s", self.outbox.shown)
            self._register(targets)
            sender = Sender(self.outbox, targets)
            sender.start()
            for target in targets:
                log.info("events go to %s", target.shown)
            servers = [target.server for target in targets if target.server]
            reporter, self._lookup = FlowReporter(targets), LineageServers(servers)
            try:
                self._lead(reporter)
            finally:
                self._stop_threads()
                sender.stop(flush=5.0 if self.stop.is_set() else 0.0)
                reporter.close()
                self._lookup.close()
                self.outbox.close()
                self.outbox.forget_connection()

    def _register(self, targets: list[Destination]) -> None:
        """Send to these destinations from now on; what waits for another stays for that one."""
        self.outbox.register({target.name: target.shown for target in targets})
        self.destinations = tuple(target.name for target in targets)
        known = self.outbox.destinations()
        for name, count in self.outbox.waiting().items():
            if name not in {target.name for target in targets}:
                log.warning(
                    "%d events wait in %s for %s, which is not configured any more: they are sent "
                    "when it is again, see `headwater outbox list`",
                    count, self.outbox.shown, known.get(name) or name or "an unknown destination",
                )  # fmt: skip

    def _lead(self, reporter: FlowReporter) -> None:
        self._adjust(self.estate, reporter)
        self._forget_others()
        if self._rejected and not self._threads:
            raise next(iter(self._rejected.values()))
        checked = time.monotonic()
        while not self.stop.wait(RELOAD_CHECK):
            if any(thread.lost for thread in self._threads.values()):
                return
            if time.monotonic() - checked > LEAD_CHECK:
                checked = time.monotonic()
                try:
                    with self.outbox.transaction():
                        pass
                except OutboxInUseError as error:
                    log.warning("%s", error.message)
                    return
            changed = self._reload()
            if changed is not None:
                self.estate = changed
                self._rejected = {}
            self._adjust(self.estate, reporter)
            if changed is not None:
                self._forget_others()

    def _adjust(self, estate: AgentConfig, reporter: FlowReporter) -> None:
        """Poll the clusters of the estate and no others; what has not changed goes on."""
        wanted = {cluster.name: cluster for cluster in estate.clusters}
        for name, thread in list(self._threads.items()):
            if wanted.get(name) != thread.config:
                log.info("cluster %s: its configuration changed or it was removed", name)
                thread.stop()
                self._names.release(name)
                del self._threads[name]
        for name, config in wanted.items():
            if name not in self._threads:
                self._begin(config, reporter)

    def _forget_others(self) -> None:
        """Forget the problems of clusters that are no longer watched."""
        wanted = {cluster.name for cluster in self.estate.clusters}
        others = [k for k in self.outbox.state(STATUS) if k.removeprefix(STATUS) not in wanted]
        if others:
            with suppress(OutboxInUseError), self.outbox.transaction() as step:
                for key in others:
                    step.remove(key)

    def _begin(self, config: ClusterConfig, reporter: FlowReporter) -> None:
        """Poll one more cluster; one with a certificate that cannot be read, say, waits."""
        name = config.name
        problems = Problems(name)
        try:
            thread = ClusterThread(
                config,
                self.outbox,
                self._names,
                reporter,
                self._lookup,
                lambda: list(self._threads.values()),
            )
        except (ConnectError, UsageError) as error:
            if name not in self._rejected:
                problems.add("", error.message)
                with suppress(OutboxInUseError), self.outbox.transaction() as step:
                    step.put(f"{STATUS}{name}", msgspec.json.encode(problems.all()))
            self._rejected[name] = error
            return
        self._rejected.pop(name, None)
        self._threads[name] = thread
        thread.start()

    def _stop_threads(self) -> None:
        for name, thread in self._threads.items():
            thread.stop()
            self._names.release(name)
        self._threads = {}
