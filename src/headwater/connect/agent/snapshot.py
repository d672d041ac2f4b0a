"""From Connect's answer about a connector to its state, lineage included."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.connect.debezium import naming as debezium
from headwater.connect.derive.refresh import fill_gaps
from headwater.connect.life.state import Condition, TrackedConnector, bare, digest, shown_config
from headwater.connect.model import Connector
from headwater.connect.services.endpoint import ConnectError
from headwater.connect.transforms import lineage_options
from headwater.lineage.moments import SECOND
from headwater.lineage.secrets import scrub, secret_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.agent.cluster_agent import ConnectorLineage
    from headwater.connect.agent.problems import Problems
    from headwater.connect.life.intervals import Intervals
    from headwater.connect.life.watched import WatchedConnector
    from headwater.connect.model import ConnectorStatus
    from headwater.connect.services.rest import ConnectorEntry, ConnectRest

log = logging.getLogger(__name__)

MAX_TRACE = 32_000
# Topics of a new run are asked for more often: those of a source show with its first records.
NEW_RUN = 60 * SECOND


class SnapshotReader:
    """Reads a connector's state from Connect and the services beside it."""

    def __init__(
        self,
        connect: ConnectRest,
        lineage: ConnectorLineage,
        problems: Problems,
        intervals: Intervals,
        clock: Callable[[], float],
    ) -> None:
        self._connect = connect
        self._lineage = lineage
        self._problems = problems
        self._intervals = intervals
        self._clock = clock

    def read(
        self, watched: WatchedConnector, entry: ConnectorEntry, seen: Condition
    ) -> TrackedConnector:
        """The connector as this answer shows it; its lineage is derived when that may have changed."""
        tracked, config = watched.tracked, entry.info.config
        mark = digest(config)
        changed = (
            mark != tracked.config_digest or tracked.derived is None or watched.lineage is None
        )
        after = replace(
            tracked,
            type=entry.info.type,
            config_shown=shown_config(config),
            config_digest=mark,
            group=config.get("consumer.override.group.id", ""),
            status=self._scrubbed(entry) if seen is Condition.FAILED else bare(entry.status),
        )
        reported = debezium.reports_itself(config) or bool(lineage_options(config))
        if changed and (seen in (Condition.RUNNING, Condition.FAILED) or reported):
            return self.derive(watched, after, entry, self.topics(tracked))
        return after

    def derive(
        self,
        watched: WatchedConnector,
        tracked: TrackedConnector,
        entry: ConnectorEntry,
        topics: tuple[str, ...],
    ) -> TrackedConnector:
        """Derive the lineage; what cannot be asked now keeps its last answer."""
        name, kind = tracked.name, entry.info.type
        role: Any = kind or None
        watched.asked_for_lineage(self._clock(), self._intervals.poll)
        try:
            lineage = self._lineage.derive(Connector(name, role, entry.info.config, topics))
        except Exception as error:  # noqa: BLE001
            # Its run is reported all the same, with the lineage that is known.
            self._problems.add_fault(name, error, "lineage")
            watched.forget_lineage()
            return replace(tracked, derived=tracked.derived or self._lineage.unknown(name))
        watched.derived(lineage)
        self._problems.clear(name, "lineage")
        derived = lineage.derived
        if (
            lineage.incomplete
            and tracked.derived
            and watched.tracked.config_digest == tracked.config_digest
        ):
            derived = fill_gaps(tracked.derived, derived)
        after = replace(tracked, topics=topics, derived=derived)
        conflict = self._lineage.claim_name(after)
        if conflict:
            self._problems.add(name, conflict, "name")
        else:
            self._problems.clear(name, "name")
        return after

    def topics(self, tracked: TrackedConnector) -> tuple[str, ...]:
        """The topics in use now, or those last known when Connect does not list them."""
        try:
            found = self._connect.topics(tracked.name)
        except ConnectError as error:
            log.debug("topics of connector %s not listed: %s", tracked.name, error.message)
            return tracked.topics
        return tracked.topics if found is None else found

    def changed_topics(self, watched: WatchedConnector, now: int) -> tuple[str, ...] | None:
        """The topics in use if they, a schema or a table changed; None if nothing did."""
        tracked = watched.tracked
        topics = self.topics(tracked)
        # What is not known yet may be known in any poll; what is known rarely changes.
        gaps = not topics or watched.lineage is None or watched.lineage.gaps
        soon = gaps or now - tracked.started < NEW_RUN
        wait = self._intervals.poll if soon else self._intervals.rotation
        watched.asked_for_lineage(now / SECOND, wait)
        if topics == tracked.topics and watched.lineage and not watched.lineage.outdated():
            return None
        return topics

    def _scrubbed(self, entry: ConnectorEntry) -> ConnectorStatus:
        """A status whose stack traces hold none of the connector's secrets, cut to a limit."""
        config = entry.info.config
        hidden = secret_values(config, self._connect.passwords(config.get("connector.class", "")))

        def clean(trace: str) -> str:
            return scrub(trace[:MAX_TRACE], hidden)

        status = entry.status
        tasks = tuple(replace(task, trace=clean(task.trace)) for task in status.tasks)
        return replace(status, trace=clean(status.trace), tasks=tasks)
