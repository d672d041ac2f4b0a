"""What a mode of the Spark benchmark showed: times, CPU and events, and how two of them compare."""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path
from typing import Any

import msgspec


class Sample(msgspec.Struct):
    """What one mode showed over all its blocks."""

    batches: list[list[float]] = []
    python: float = 0.0
    jvm: float = 0.0
    counted: int = 0
    events: int = 0
    size: int = 0


def cpu(process: int) -> float:
    """The CPU seconds a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def others() -> float:
    """The CPU seconds of every thread but this one, which only waits for batches."""
    return time.process_time() - time.thread_time()


def interval(base: Sample, other: Sample, draws: int = 2000) -> tuple[float, float, float]:
    """The ratio of medians with its 95 % interval, by drawing whole blocks anew."""
    chance = random.Random(7)

    def median(blocks: list[list[float]]) -> float:
        return statistics.median(x for one in blocks for x in one)

    pairs = list(zip(base.batches, other.batches, strict=False))
    found = []
    for _ in range(draws):
        drawn = [chance.choice(pairs) for _ in pairs]
        found.append(median([b for _, b in drawn]) / median([a for a, _ in drawn]))
    found.sort()
    low, high = found[int(draws * 0.025)], found[int(draws * 0.975)]
    return median(other.batches) / median(base.batches), low, high


def rows(samples: dict[str, Sample]) -> list[dict[str, Any]]:
    found = []
    for mode, sample in samples.items():
        flat = [x for one in sample.batches for x in one]
        ratio, low, high = interval(samples["off"], sample)
        found.append(
            {
                "mode": mode,
                "batches": len(flat),
                "median ms": round(statistics.median(flat), 1),
                "ratio": round(ratio, 3),
                "95 %": [round(low, 3), round(high, 3)],
                "Python CPU ms a batch": round(sample.python / sample.counted * 1000, 2),
                "JVM CPU ms a batch": round(sample.jvm / sample.counted * 1000, 1),
                "events a batch": round(sample.events / sample.counted, 2),
                "KB a batch": round(sample.size / sample.counted / 1000, 1),
            }
        )
    return found
