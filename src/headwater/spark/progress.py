"""What a streaming query says of each batch, as a facet and as samples of flow."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

from headwater.emit.event import facet

MOST_TOPICS = 100


class Source(NamedTuple):
    """One source in one progress report."""

    description: str
    topics: dict[str, dict[str, int]]
    rows: int
    rate: float
    lag: int | None


class Progress(NamedTuple):
    """One progress report of a query."""

    batch: int
    timestamp: str
    rows: int
    input_rate: float
    process_rate: float
    duration: int | None
    watermark: str
    state_rows: int | None
    sources: tuple[Source, ...]
    sink: str
    written: int | None

    @property
    def lag(self) -> int | None:
        """How many records the query is behind the ends of its topics."""
        known = [source.lag for source in self.sources if source.lag is not None]
        return sum(known) if known else None

    @property
    def topics(self) -> frozenset[str]:
        """The topics that records may come from."""
        return frozenset(topic for source in self.sources for topic in source.topics)

    @property
    def facet(self) -> dict[str, Any]:
        """The `headwater_streaming` facet."""
        offsets = [
            {
                "source": source.description,
                "topics": dict(list(source.topics.items())[:MOST_TOPICS]),
            }
            for source in self.sources
            if source.topics
        ]
        return facet(
            "headwater_streaming",
            batchId=self.batch,
            batchTime=self.timestamp,
            inputRows=self.rows,
            inputRowsPerSecond=self.input_rate,
            processedRowsPerSecond=self.process_rate,
            batchMillis=self.duration,
            watermark=self.watermark or None,
            stateRows=self.state_rows,
            outputRows=self.written,
            lag=self.lag,
            offsets=offsets or None,
        )


def read(text: str) -> Progress:
    """A progress report from Spark's JSON."""
    raw = msgspec.json.decode(text)
    states = raw.get("stateOperators") or []
    sink = raw.get("sink") or {}
    written = sink.get("numOutputRows")
    return Progress(
        batch=int(raw.get("batchId", -1)),
        timestamp=str(raw.get("timestamp", "")),
        rows=int(raw.get("numInputRows") or 0),
        input_rate=_number(raw.get("inputRowsPerSecond")),
        process_rate=_number(raw.get("processedRowsPerSecond")),
        duration=(raw.get("durationMs") or {}).get("triggerExecution"),
        watermark=str((raw.get("eventTime") or {}).get("watermark", "")),
        state_rows=sum(int(s.get("numRowsTotal") or 0) for s in states) if states else None,
        sources=tuple(_source(source) for source in raw.get("sources") or []),
        sink=str(sink.get("description", "")),
        written=int(written) if isinstance(written, (int, float)) and written >= 0 else None,
    )


def _source(raw: dict[str, Any]) -> Source:
    topics = _topics(raw.get("endOffset"), raw.get("latestOffset"))
    lags = [values["lag"] for values in topics.values() if "lag" in values]
    return Source(
        description=str(raw.get("description", ""))[:500],
        topics=topics,
        rows=int(raw.get("numInputRows") or 0),
        rate=_number(raw.get("inputRowsPerSecond")),
        lag=sum(lags) if lags else None,
    )


def _topics(end: Any, latest: Any) -> dict[str, dict[str, int]]:
    ends, last = _offsets(end), _offsets(latest)
    found: dict[str, dict[str, int]] = {}
    for topic, partitions in ends.items():
        values = {"partitions": len(partitions), "end": sum(partitions.values())}
        if topic in last:
            values["latest"] = sum(last[topic].values())
            behind = [max(0, last[topic].get(p, at) - at) for p, at in partitions.items()]
            values["lag"] = sum(behind)
        found[topic] = values
    return found


def _offsets(raw: Any) -> dict[str, dict[str, int]]:
    """Kafka's offsets by topic and partition; another source's offsets are nobody's business."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError:
            return {}
    if not isinstance(raw, dict):
        return {}
    found = {}
    for topic, partitions in raw.items():
        if isinstance(partitions, dict) and all(isinstance(v, int) for v in partitions.values()):
            found[str(topic)] = partitions
    return found


def _number(value: Any) -> float:
    # Spark writes NaN and Infinity as text, which JSON has no number for.
    if not isinstance(value, (int, float)) or value != value or abs(value) == float("inf"):  # noqa: PLR0124
        return 0.0
    return round(float(value), 3)
