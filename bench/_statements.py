"""What lineage costs a batch statement: CREATE TABLE AS SELECT over empty tables of a shop.

Run as a program, this plays every statement once under one mode and prints what it took; `measure`
plays all modes, each round in processes of their own, in another order each time. The tables are
empty, so that a statement is mostly analysis, planning and commit, where lineage weighs most.
"""

# ruff: noqa: SLF001  (the JVM behind PySpark is what is measured; the texts are our own)

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench._modes import MODES  # noqa: E402
from bench._sample import DRAWS, cpu  # noqa: E402

from headwater.lab.files.jars import peer_jar  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

T = TypeVar("T")

WARM = 6
TABLES = {
    "sales": "sale bigint, item bigint, customer bigint, store bigint, day bigint, promotion bigint,"
    " quantity int, price decimal(9,2), cost decimal(9,2), tax decimal(9,2), discount decimal(9,2)",
    "returns": "sale bigint, item bigint, customer bigint, store bigint, day bigint, quantity int,"
    " refund decimal(9,2), fee decimal(9,2), reason string",
    "items": "item bigint, name string, brand string, category string, color string, size string,"
    " price decimal(9,2)",
    "customers": "customer bigint, first_name string, last_name string, born int, address bigint,"
    " email string",
    "addresses": "address bigint, street string, city string, county string, state string, zip string",
    "stores": "store bigint, name string, city string, state string, manager string",
    "days": "day bigint, date date, year int, month int, week int, weekday string, holiday boolean",
    "promotions": "promotion bigint, name string, channel string, cost decimal(9,2)",
}
CHANNELS = ("", "web_", "mail_")
for _channel in CHANNELS[1:]:
    TABLES |= {_channel + name: TABLES[name] for name in ("sales", "returns")}
_JOINED = (
    "sales s JOIN days d ON s.day = d.day JOIN items i ON s.item = i.item"
    " JOIN stores o ON s.store = o.store"
)
_PEOPLE = (
    "sales s JOIN customers c ON s.customer = c.customer JOIN addresses a ON c.address = a.address"
)


def statements() -> list[str]:
    """Queries of the kinds that reports are made of, for each channel, and one over all of them."""
    return [*(text for channel in CHANNELS for text in _of_channel(channel)), _over_channels()]


def _over_channels() -> str:
    sides = " UNION ALL ".join(
        f"SELECT '{channel}' channel, s.customer, s.price FROM {channel}sales s"
        for channel in CHANNELS
    )
    return (
        f"SELECT c.last_name, t.channel, sum(t.price) total FROM ({sides}) t JOIN customers c"
        " ON t.customer = c.customer GROUP BY CUBE (c.last_name, t.channel)"
    )


def _of_channel(channel: str) -> list[str]:
    found: list[str] = []
    for group in ("i.brand", "i.category", "i.color", "o.state", "o.city"):
        found += [
            (
                f"SELECT {group} part, d.year, sum(s.price * s.quantity) total, count(*) many"
                f" FROM {_JOINED} WHERE d.month = 11 GROUP BY {group}, d.year ORDER BY total DESC"
            ),
            (
                f"SELECT part, total, rank() OVER (PARTITION BY year ORDER BY total DESC) place"
                f" FROM (SELECT {group} part, d.year, sum(s.price) total FROM {_JOINED}"
                f" GROUP BY {group}, d.year) t WHERE total > 100"
            ),
            (
                f"WITH sold AS (SELECT {group} part, s.item, sum(s.price) total FROM {_JOINED}"
                f" GROUP BY {group}, s.item), back AS (SELECT r.item, sum(r.refund) lost FROM returns r"
                f" GROUP BY r.item) SELECT sold.part, sum(sold.total) - sum(coalesce(back.lost, 0)) net"
                f" FROM sold LEFT JOIN back ON sold.item = back.item GROUP BY sold.part"
            ),
        ]
    for place in ("a.city", "a.state", "a.zip"):
        found += [
            (
                f"SELECT {place} place, c.born, avg(s.price) mean, stddev_samp(s.price) spread"
                f" FROM {_PEOPLE} WHERE s.quantity BETWEEN 1 AND 20 GROUP BY ROLLUP ({place}, c.born)"
            ),
            (
                f"SELECT c.customer, {place} place, c.last_name FROM {_PEOPLE} WHERE EXISTS (SELECT 1"
                f" FROM returns r WHERE r.sale = s.sale) AND {place} IN (SELECT o.city FROM stores o)"
            ),
            (
                f"SELECT {place} place, sum(CASE WHEN p.channel = 'mail' THEN s.price ELSE 0 END) mail,"
                f" sum(CASE WHEN p.channel = 'web' THEN s.price ELSE 0 END) web FROM {_PEOPLE}"
                f" JOIN promotions p ON s.promotion = p.promotion GROUP BY {place} HAVING count(*) > 3"
            ),
        ]
    for year in (2024, 2025, 2026):
        found += [
            (
                f"SELECT item, sum(amount) amount FROM (SELECT s.item, s.price amount FROM sales s JOIN"
                f" days d ON s.day = d.day WHERE d.year = {year} UNION ALL SELECT r.item, -r.refund FROM"
                f" returns r JOIN days d ON r.day = d.day WHERE d.year = {year}) t GROUP BY item"
            ),
            (
                f"SELECT d.week, sum(s.price) total, lag(sum(s.price)) OVER (ORDER BY d.week) before"
                f" FROM sales s JOIN days d ON s.day = d.day WHERE d.year = {year} GROUP BY d.week"
            ),
        ]
    for limit in (10, 50, 100, 500):
        found.append(
            f"SELECT s.customer, count(DISTINCT s.item) items, max(r.refund) most FROM sales s LEFT JOIN"
            f" returns r ON s.sale = r.sale AND s.item = r.item GROUP BY s.customer"
            f" HAVING sum(s.price) > (SELECT avg(price) * {limit} FROM sales)"
        )
    return [re.sub(r"\b(sales|returns)\b", rf"{channel}\1", text) for text in found]


def play(mode: str, work: Path, every: int) -> dict[str, Any]:
    """Every statement once in this process, after a few that are not counted."""
    import headwater.spark

    spark = session(work)
    context: Any = spark.sparkContext
    if mode == "headwater":
        headwater.spark.attach(spark)
    elif mode == "jar":
        agent = context._jvm.io.openlineage.spark.agent
        context._jsc.sc().addSparkListener(agent.OpenLineageSparkListener(context._jsc.sc().conf()))

    def settle() -> None:
        context._jsc.sc().listenerBus().waitUntilEmpty(30_000)
        if not headwater.spark.flush(30):
            raise TimeoutError("events do not arrive")

    texts = statements()[::every]
    for number, text in enumerate(texts[:WARM]):
        spark.sql(f"CREATE TABLE warm_{number} USING parquet AS {text}")
    settle()
    process = context._gateway.proc.pid
    threads = _lineage_threads(context, mode)
    before = threads()
    python, jvm, times = time.process_time(), cpu(process), []
    for number, text in enumerate(texts):
        began = time.perf_counter()
        spark.sql(f"CREATE TABLE out_{number} USING parquet AS {text}")
        times.append((time.perf_counter() - began) * 1000)
    settle()
    python, jvm = time.process_time() - python, cpu(process) - jvm
    asked = threads() - before
    spark.stop()
    return {
        "times": times,
        "python": python * 1000,
        "jvm": jvm * 1000,
        "threads": asked,
        "load": os.getloadavg()[0],
    }


def _lineage_threads(context: Any, mode: str) -> Callable[[], float]:
    """Milliseconds of CPU of the JVM's threads that work for lineage.

    These are Spark's listener bus, on which the jar runs and we are called back, and the thread that
    answers our worker. What the whole JVM takes varies by more than lineage does.
    """
    from headwater.spark.driver.attach import _Attached

    beans = context._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    numbers = [n for n in beans.getAllThreadIds()
               if str(beans.getThreadInfo(n).getThreadName()).startswith("spark-listener-group")]  # fmt: skip
    if mode == "headwater" and _Attached.classic is not None:
        current: list[int] = []
        ask = context._jvm.java.lang.Thread.currentThread
        _Attached.classic.worker.post(lambda: current.append(ask().getId()))
        _Attached.classic.worker.wait(30)
        numbers += current
    return lambda: sum(beans.getThreadCpuTime(n) for n in numbers) / 1e6


def session(work: Path) -> SparkSession:
    """A session of one thread with the empty tables."""
    from pyspark.sql import SparkSession

    builder: Any = (
        SparkSession.builder.master("local[1]")
        .appName("statements")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.extraClassPath", str(peer_jar()))
        .config("spark.openlineage.transport.type", "file")
        .config("spark.openlineage.transport.location", str(work / "events.ndjson"))
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
    )
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    for name, columns in TABLES.items():
        spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet")
    return spark


def measure(work: Path, rounds: int, every: int = 1) -> list[dict[str, Any]]:
    """A row for each mode; of the statements each, or every second or third alone."""
    played: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    for turn in range(rounds):
        for mode in MODES[turn % 3 :] + MODES[: turn % 3]:
            folder = work / f"{mode}-{turn}"
            folder.mkdir()
            environment = {**os.environ, "HEADWATER_STATE_DIR": str(folder / "state")}
            ended = subprocess.run(
                [sys.executable, str(Path(__file__)), mode, str(folder), str(every)],
                env=environment, cwd=folder, stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
            played[mode].append(json.loads(ended.stdout.splitlines()[-1]))
        sys.stderr.write(f"round {turn + 1} of {rounds} of statements\n")
    return [row(mode, played["off"], found) for mode, found in played.items()]


def row(mode: str, off: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, Any]:
    """What one mode took, against what the same statements took without lineage.

    Times are those of each statement's fastest round, since a busy machine only adds to them.
    """
    count = len(found[0]["times"])
    pairs = list(zip(_fastest(off), _fastest(found), strict=True))
    rounds = list(zip(off, found, strict=True))
    compared = mode != "off"
    return {
        "mode": mode,
        "statements": count * len(found),
        "load average": round(statistics.fmean(one["load"] for one in found), 1),
        "fastest round, median ms": round(statistics.median(took for _, took in pairs), 1),
        "ratio": round(_ratio(pairs), 3),
        "95 %": interval(pairs, _ratio) if compared else [],
        "Python CPU ms a statement": round(_cpu(found, "python"), 1),
        "JVM CPU ms a statement": round(_cpu(found, "jvm"), 1),
        "CPU of lineage's threads": round(_more(rounds, "python", "threads"), 1)
        if compared
        else None,
        "95 % of it": interval(rounds, lambda drawn: _more(drawn, "python", "threads"))
        if compared
        else [],
        "CPU over off": round(_more(rounds, "python", "jvm"), 1) if compared else None,
    }


def _fastest(played: list[dict[str, Any]]) -> list[float]:
    return [min(times) for times in zip(*(one["times"] for one in played), strict=True)]


def _ratio(pairs: list[tuple[float, float]]) -> float:
    return sum(took for _, took in pairs) / sum(without for without, _ in pairs)


def _cpu(played: list[dict[str, Any]], kind: str) -> float:
    """Milliseconds of CPU a statement."""
    return statistics.fmean(one[kind] for one in played) / len(played[0]["times"])


def _more(rounds: list[tuple[dict[str, Any], dict[str, Any]]], *kinds: str) -> float:
    """Milliseconds of CPU a statement that the second mode of each round took more."""
    off, found = ([pair[place] for pair in rounds] for place in (0, 1))
    return sum(_cpu(found, kind) - _cpu(off, kind) for kind in kinds)


def interval(given: list[T], compare: Callable[[list[T]], float]) -> list[float]:
    """The 95 % interval of a comparison, by drawing what is compared anew."""
    chance = random.Random(7)
    found = sorted(compare(chance.choices(given, k=len(given))) for _ in range(DRAWS))
    return [round(found[int(DRAWS * 0.025)], 3), round(found[int(DRAWS * 0.975)], 3)]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(play(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))) + "\n")
