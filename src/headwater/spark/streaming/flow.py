"""Flow samples (records/s, lag) of streaming queries, posted every ten seconds and never retried."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from headwater.emit.run_emitter import given_seconds
from headwater.lineage.writer import stamp
from headwater.spark import dataset_overrides

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.emit.journal import Journal
    from headwater.spark.streaming.runs import QueryRun

SECONDS = given_seconds("HEADWATER_FLOW_SECONDS", 10.0)
TIMEOUT = 2.0
PAUSE_SECONDS = 300.0


class FlowSamples:
    """Posts samples to `/api/v2/flow` of every HTTP destination that has it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._client: Any = None
        self._paused: dict[str, float] = {}

    def post(self, queries: Iterable[QueryRun]) -> None:
        """Send a sample of each query that has made progress."""
        samples = [sample for query in queries for sample in samples_of(query)]
        if not samples:
            return
        for destination in self._journal.destinations:
            server = destination.server
            if server is None or self._paused.get(destination.name, 0.0) > time.monotonic():
                continue
            url, headers = server
            if not self._send(url, dict(headers), samples):
                self._paused[destination.name] = time.monotonic() + PAUSE_SECONDS

    def _send(self, url: str, headers: dict[str, str], samples: list[dict[str, Any]]) -> bool:
        import httpx

        if self._client is None:
            self._client = httpx.Client(timeout=TIMEOUT)
        try:
            answer = self._client.post(
                f"{url.rstrip('/')}/api/v2/flow", json={"samples": samples}, headers=headers
            )
        except httpx.HTTPError:
            return True
        # Another backend does not have the path; it gets the figures in heartbeats.
        return bool(answer.status_code < 400 or answer.status_code >= 500)


def samples_of(query: QueryRun) -> list[dict[str, Any]]:
    """What one query reads and writes, dataset by dataset."""
    progress = query.progress
    if progress is None or query.life is None or query.life.over:
        return []
    moment = stamp(datetime.now(timezone.utc))

    def sample(one: Any, direction: str, **figures: Any) -> dict[str, Any]:
        reported = dataset_overrides.dataset(one, query.settings.renames)
        named = {"namespace": reported.namespace, "name": reported.name}
        known = {key: value for key, value in figures.items() if value is not None}
        run = {"run": query.ref.run_id, "dataset": named, "direction": direction}
        return {**run, "time": moment, **known}

    found = []
    by_topic = {topic: source for source in progress.sources for topic in source.topics}
    for one in query.lineage.inputs:
        source = by_topic.get(one.name)
        if source is not None:
            share = len(source.topics) == 1
            found.append(
                sample(
                    one,
                    "input",
                    recordsPerSecond=source.rate if share else None,
                    lag=source.topics[one.name].get("lag"),
                )
            )
    outputs = query.lineage.outputs
    if len(outputs) == 1 and progress.written is not None:
        seconds = (progress.duration or 0) / 1000
        rate = round(progress.written / seconds, 3) if seconds else 0.0
        found.append(sample(outputs[0], "output", recordsPerSecond=rate))
    return found
