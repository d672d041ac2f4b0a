"""Progress reports of streaming queries: read from Spark's JSON, written as a facet."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import msgspec

MAX_TOPICS = 100

Offsets = dict[str, dict[str, int]]


class SourceProgress(NamedTuple):
    """One source in one progress report; `start` and `end` are offsets by topic and partition."""

    description: str
    topics: dict[str, dict[str, int]]
    rows: int
    rate: float
    lag: int | None
    start: Offsets | None
    end: Offsets


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
    sources: tuple[SourceProgress, ...]
    sink: str
    written: int | None

    @property
    def lag(self) -> int | None:
        """How many records the query is behind the ends of its topics."""
        known = [source.lag for source in self.sources if source.lag is not None]
        return sum(known) if known else None

    @property
    def write_rate(self) -> float | None:
        """Rows a second that the sink got, over the time that the input's rate is over.

        That is from the trigger before to this one, waiting included. A batch that only writes, such as
        one that closes windows, does not say how long it was: None.
        """
        if not self.written:
            return None if self.written is None else 0.0
        if not self.rows or not self.input_rate:
            return None
        return round(self.written * self.input_rate / self.rows, 3)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that records may come from."""
        return frozenset(topic for source in self.sources for topic in source.topics)

    @property
    def facet(self) -> dict[str, Any]:
        """The content of the `headwater_streaming` facet."""
        listed = [
            {
                "source": source.description,
                "topics": dict(list(source.topics.items())[:MAX_TOPICS]),
            }
            for source in self.sources
            if source.topics
        ]
        found = {
            "batchId": self.batch,
            "batchTime": self.timestamp,
            "inputRows": self.rows,
            "inputRowsPerSecond": self.input_rate,
            "processedRowsPerSecond": self.process_rate,
            "batchMillis": self.duration,
            "watermark": self.watermark or None,
            "stateRows": self.state_rows,
            "outputRows": self.written,
            "lag": self.lag,
            "offsets": listed or None,
        }
        return {key: value for key, value in found.items() if value is not None}


def read(text: str) -> Progress:
    """A progress report from Spark's JSON."""
    return _progress(msgspec.json.decode(text))


def read_all(text: str) -> list[Progress]:
    """Several progress reports from a JSON array."""
    return [_progress(raw) for raw in msgspec.json.decode(text)]


def _progress(raw: dict[str, Any]) -> Progress:
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


def _source(raw: dict[str, Any]) -> SourceProgress:
    topics = _topics(raw.get("endOffset"), raw.get("latestOffset"))
    lags = [values["lag"] for values in topics.values() if "lag" in values]
    return SourceProgress(
        description=str(raw.get("description", ""))[:500],
        topics=topics,
        rows=int(raw.get("numInputRows") or 0),
        rate=_number(raw.get("inputRowsPerSecond")),
        lag=sum(lags) if lags else None,
        start=offsets(raw.get("startOffset")) or None,
        end=offsets(raw.get("endOffset")),
    )


def _topics(end: Any, latest: Any) -> dict[str, dict[str, int]]:
    ends, last = offsets(end), offsets(latest)
    found: dict[str, dict[str, int]] = {}
    for topic, partitions in ends.items():
        values = {"partitions": len(partitions), "end": sum(partitions.values())}
        if topic in last:
            values["latest"] = sum(last[topic].values())
            behind = [max(0, last[topic].get(p, at) - at) for p, at in partitions.items()]
            values["lag"] = sum(behind)
        found[topic] = values
    return found


def offsets(raw: Any) -> Offsets:
    """Kafka's offsets by topic and partition; the offsets of other sources have no common form."""
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
