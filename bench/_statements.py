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
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench._sample import DRAWS, cpu  # noqa: E402

from headwater.lab.files.jars import peer_jar  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = ("off", "headwater", "jar")
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
_JOINED = (
    "sales s JOIN days d ON s.day = d.day JOIN items i ON s.item = i.item"
    " JOIN stores o ON s.store = o.store"
)
_PEOPLE = (
    "sales s JOIN customers c ON s.customer = c.customer JOIN addresses a ON c.address = a.address"
)


def statements() -> list[str]:
    """Queries of the kinds that reports are made of."""
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
    return found


def play(mode: str, work: Path) -> dict[str, Any]:
    """Every statement once in this process, after a few that are not counted."""
    import headwater.spark

    spark = _session(work)
    for name, columns in TABLES.items():
        spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet")
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

    texts = statements()
    for number, text in enumerate(texts[:WARM]):
        spark.sql(f"CREATE TABLE warm_{number} USING parquet AS {text}")
    settle()
    process = context._gateway.proc.pid
    python, jvm, times = time.process_time(), cpu(process), []
    for number, text in enumerate(texts):
        began = time.perf_counter()
        spark.sql(f"CREATE TABLE out_{number} USING parquet AS {text}")
        times.append((time.perf_counter() - began) * 1000)
    settle()
    python, jvm = time.process_time() - python, cpu(process) - jvm
    spark.stop()
    return {"times": times, "python": python * 1000, "jvm": jvm * 1000}


def _session(work: Path) -> SparkSession:
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
    return spark


def measure(work: Path, rounds: int) -> list[dict[str, Any]]:
    """A row for each mode."""
    played: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    for turn in range(rounds):
        for mode in MODES[turn % 3 :] + MODES[: turn % 3]:
            folder = work / f"{mode}-{turn}"
            folder.mkdir()
            environment = {**os.environ, "HEADWATER_STATE_DIR": str(folder / "state")}
            ended = subprocess.run(
                [sys.executable, str(Path(__file__)), mode, str(folder)],
                env=environment, cwd=folder, stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
            played[mode].append(json.loads(ended.stdout.splitlines()[-1]))
        sys.stderr.write(f"round {turn + 1} of {rounds} of statements\n")
    return [row(mode, played["off"], found) for mode, found in played.items()]


def row(mode: str, off: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, Any]:
    """What one mode took, against what the same statement took without lineage in the same round."""
    count = len(found[0]["times"])

    def mean(kind: str, played: list[dict[str, Any]]) -> float:
        return statistics.fmean(one[kind] for one in played) / count

    pairs = [
        (without, took)
        for one, other in zip(off, found, strict=True)
        for without, took in zip(one["times"], other["times"], strict=True)
    ]
    ratio = sum(took for _, took in pairs) / sum(without for without, _ in pairs)
    more = mean("python", found) + mean("jvm", found) - mean("python", off) - mean("jvm", off)
    return {
        "mode": mode,
        "statements": len(pairs),
        "median ms": round(statistics.median(took for _, took in pairs), 1),
        "ratio": round(ratio, 3),
        "95 %": [] if mode == "off" else interval(pairs),
        "Python CPU ms a statement": round(mean("python", found), 1),
        "JVM CPU ms a statement": round(mean("jvm", found), 1),
        "CPU over off": None if mode == "off" else round(more, 1),
    }


def interval(pairs: list[tuple[float, float]]) -> list[float]:
    """The 95 % interval of the ratio, by drawing pairs of one statement anew."""
    chance = random.Random(7)
    found = []
    for _ in range(DRAWS):
        drawn = [chance.choice(pairs) for _ in pairs]
        found.append(sum(took for _, took in drawn) / sum(without for without, _ in drawn))
    found.sort()
    return [round(found[int(DRAWS * 0.025)], 3), round(found[int(DRAWS * 0.975)], 3)]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(play(sys.argv[1], Path(sys.argv[2]))) + "\n")
