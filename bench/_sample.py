"""What a mode of the Spark benchmark showed: times, CPU and events, and how two of them compare."""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

DRAWS = 2000


class Block(msgspec.Struct):
    """One query under one mode: milliseconds of its batches, CPU seconds and events meanwhile."""

    times: list[float]
    batches: int
    python: float
    jvm: float
    events: int
    size: int
    around: int
    """Events of attaching, starting and stopping, which a query that runs on does not have."""

    @property
    def cpu(self) -> float:
        """Milliseconds of CPU a batch, of the driver's Python and its JVM."""
        return (self.python + self.jvm) / self.batches * 1000


def cpu(process: int) -> float:
    """The CPU seconds a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def others() -> float:
    """The CPU seconds of every thread but this one, which only waits for batches."""
    return time.process_time() - time.thread_time()


def median(blocks: list[Block]) -> float:
    return statistics.median(took for block in blocks for took in block.times)


def mean_cpu(blocks: list[Block]) -> float:
    return statistics.fmean(block.cpu for block in blocks)


def interval(
    base: list[Block], other: list[Block], compare: Callable[[list[Block], list[Block]], float]
) -> tuple[float, list[float]]:
    """How two modes compare, with the 95 % interval by drawing pairs of whole blocks anew."""
    chance = random.Random(7)
    pairs = list(zip(base, other, strict=True))
    found = []
    for _ in range(DRAWS):
        drawn = [chance.choice(pairs) for _ in pairs]
        found.append(compare([a for a, _ in drawn], [b for _, b in drawn]))
    found.sort()
    ends = [found[int(DRAWS * 0.025)], found[int(DRAWS * 0.975)]]
    return compare(base, other), ends


def rows(samples: dict[str, list[Block]]) -> list[dict[str, Any]]:
    """A row for each mode; the first is what the others are compared with."""
    base = next(iter(samples.values()))
    found = []
    for mode, blocks in samples.items():
        ratio, ends = interval(base, blocks, lambda a, b: median(b) / median(a))
        more, more_ends = interval(base, blocks, lambda a, b: mean_cpu(b) - mean_cpu(a))
        counted = sum(block.batches for block in blocks)
        off = blocks is base
        found.append(
            {
                "mode": mode,
                "batches": sum(len(block.times) for block in blocks),
                "median ms": round(median(blocks), 1),
                "ratio": round(ratio, 3),
                "95 %": [] if off else [round(end, 3) for end in ends],
                "Python CPU ms a batch": _mean(sum(b.python for b in blocks) * 1000, counted, 2),
                "JVM CPU ms a batch": _mean(sum(b.jvm for b in blocks) * 1000, counted, 1),
                "CPU over off": None if off else round(more, 1),
                "95 % of CPU": [] if off else [round(end, 1) for end in more_ends],
                "events a batch": _mean(sum(b.events for b in blocks), counted, 2),
                "KB a batch": _mean(sum(b.size for b in blocks) / 1000, counted, 1),
                "events a start": _mean(sum(b.around for b in blocks), len(blocks), 1),
            }
        )
    return found


def _mean(total: float, count: int, digits: int) -> float:
    return round(total / count, digits)
