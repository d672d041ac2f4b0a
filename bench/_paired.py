"""What lineage adds to the time of a batch statement: each one without it and with it.

One session plays the statements of `_statements.py` in blocks of three, each block without lineage and with
it, the other one first each time. What else the machine does, and how warm the JVM is, is then nearly the
same for both; between processes it differs by more than lineage takes. Time is that of the statements
alone; CPU counts until the events of a block have arrived.
"""

# ruff: noqa: SLF001  (the JVM behind PySpark is what is measured)

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec
from bench._modes import lineage, settle
from bench._sample import cpu
from bench._statements import interval, session, statements

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MODES = ("off", "headwater")
BLOCK = 3
WARM_BLOCKS = 4


class Played(msgspec.Struct):
    """A block of statements under one mode: milliseconds of each, CPU seconds of all of them."""

    times: list[float]
    cpu: float


Pair = tuple[Played, Played]


def compare(work: Path, rounds: int, every: int) -> list[dict[str, Any]]:
    """A row for each mode; the first blocks of the first round are not counted."""
    os.environ["HEADWATER_STATE_DIR"] = str(work / "state")
    spark = session(work)
    texts = statements()[::every]
    blocks = [texts[first : first + BLOCK] for first in range(0, len(texts), BLOCK)]
    played: dict[str, list[Played]] = {mode: [] for mode in MODES}
    load = []
    for turn, block in enumerate([*blocks[:WARM_BLOCKS], *blocks * rounds]):
        for mode in MODES[:: 1 if turn % 2 else -1]:
            with lineage(spark, mode):
                settle(spark)
                found = _play(spark, block)
            if turn >= WARM_BLOCKS:
                played[mode].append(found)
        load.append(os.getloadavg()[0])
        sys.stderr.write(f"block {turn + 1} of {WARM_BLOCKS + len(blocks) * rounds}\n")
    spark.stop()
    return [
        {**row(mode, list(zip(played["off"], found, strict=True))),
         "load average": round(statistics.fmean(load), 1)}
        for mode, found in played.items()
    ]  # fmt: skip


def _play(spark: SparkSession, block: list[str]) -> Played:
    process = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    before, times = time.process_time() + cpu(process), []
    for number, text in enumerate(block):
        began = time.perf_counter()
        spark.sql(f"CREATE TABLE out_{number} USING parquet AS {text}")
        times.append((time.perf_counter() - began) * 1000)
    settle(spark)
    used = time.process_time() + cpu(process) - before
    for number in range(len(block)):
        spark.sql(f"DROP TABLE out_{number}")
    settle(spark)
    return Played(times, used)


def row(mode: str, pairs: list[Pair]) -> dict[str, Any]:
    """What one mode took, against what the same statements took without lineage just before or after."""
    compared = mode != "off"
    return {
        "mode": mode,
        "statements": sum(len(found.times) for _, found in pairs),
        "median ms": round(statistics.median(t for _, found in pairs for t in found.times), 1),
        "ratio": round(_ratio(pairs), 3),
        "95 %": interval(pairs, _ratio) if compared else [],
        "CPU over off": round(_more(pairs), 1) if compared else None,
        "95 % of CPU": interval(pairs, _more) if compared else [],
    }


def _ratio(pairs: list[Pair]) -> float:
    """The median of what each statement took, against the same one without lineage."""
    return statistics.median(
        took / without
        for off, found in pairs
        for without, took in zip(off.times, found.times, strict=True)
    )


def _more(pairs: list[Pair]) -> float:
    """Milliseconds of CPU that a statement takes more, by the median block."""
    return statistics.median(
        (found.cpu - off.cpu) * 1000 / len(found.times) for off, found in pairs
    )
