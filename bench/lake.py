"""What the lineage lake costs, and how that grows: the program's own functions on Spark, on this machine.

Records of an estate lie in files, as a broker would hand them over, so the broker's own cost is apart. They
are appended batch by batch; then again in another namespace with the derived tables computed behind
each batch, every job touched each time. Then a past moment is traced and a day compared, without
Spark. CPU is that of the driver, its JVM and the Python workers together. Sizes are events of 8.4 KB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from _server_events import COMPONENT, events, job
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from headwater.lab.files.jars import pipeline_jars
from headwater.lab.services.streams import programs
from headwater.lake import tables
from headwater.lake.answers import Scratch, Wanted, select
from headwater.lake.iceberg import IcebergLake
from headwater.server.store import open_store

sys.path.insert(0, str(programs()))
import lake as program
import lake_derive
from lake_store import Lake

NAMESPACE = "bench"
DAYS = 10
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()),
     ("arrived", pa.int64()), ("value", pa.binary()), ("headers", HEADERS)]
)  # fmt: skip


def session(folder: Path, cores: int) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench-lake")
    for key, value in {
        "spark.jars": ",".join(str(jar) for jar in pipeline_jars() if "iceberg" in jar.name),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.bench": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.bench.type": "hadoop",
        "spark.sql.catalog.bench.warehouse": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "tmp"),
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def cpu() -> float:
    """Seconds of CPU that this process and all below it have used."""
    own = psutil.Process()
    found = 0.0
    for one in (own, *own.children(recursive=True)):
        times = one.cpu_times()
        found += times.user + times.system + times.children_user + times.children_system
    return found


def records(count: int) -> list[tuple[int, bytes]]:
    """Moments of arrival in microseconds, and bodies: each job runs once a day."""
    jobs = max(COMPONENT, count // 3 // DAYS)
    made: list[tuple[int, bytes]] = []
    for day in range(DAYS):
        at = START + timedelta(days=day)
        micros = int((at + timedelta(hours=6)).timestamp() * 1_000_000)
        for number in range(jobs):
            made += [(micros + number, body) for body in events(NAMESPACE, number, at)]
            if len(made) >= count:
                return made
    return made


def write(folder: Path, made: list[tuple[int, bytes]], batch: int) -> list[Path]:
    """The records in files, a batch each."""
    found = []
    folder.mkdir()
    for first in range(0, len(made), batch):
        some = made[first : first + batch]
        rows = {
            "topic": ["bench"] * len(some),
            "partition": [0] * len(some),
            "offset": list(range(first, first + len(some))),
            "arrived": [at for at, _ in some],
            "value": [body for _, body in some],
            "headers": [None] * len(some),
        }
        found.append(folder / f"{first:09d}.parquet")
        pq.write_table(pa.table(rows, schema=SCHEMA), found[-1], compression="zstd")
    return found


def newest(table: Path) -> Any:
    files = (table / "metadata").glob("v*.metadata.json")
    return StaticTable.from_metadata(
        str(max(files, key=lambda p: int(p.name[1:].partition(".")[0])))
    )


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def timed(lake: IcebergLake, wanted: Wanted, path: str, query: dict[str, str]) -> float:
    began = time.perf_counter()
    with Scratch(lake.records(select(lake, wanted))) as scratch:
        scratch.get(path, query).raise_for_status()
    return time.perf_counter() - began


def measure(spark: SparkSession, folder: Path, count: int, batch: int) -> dict[str, float]:
    made = records(count)
    count = len(made)
    files = write(folder / f"records{count}", made, batch)
    raw = sum(len(body) for _, body in made)
    found: dict[str, float] = {"events": count}
    for name, derives in (("appended", False), ("derived", True)):
        lake = Lake(spark, "bench", f"{name}{count}")
        lake.create()
        before, began = cpu(), time.perf_counter()
        for file in files:
            program.ingest(lake, spark.read.parquet(str(file)))
            if derives:
                lake_derive.derive(lake)
        found[f"{name} cpu"] = (cpu() - before) / count * 1_000
        found[f"{name} rate"] = count / (time.perf_counter() - began)
    space = folder / "warehouse" / f"derived{count}"
    found["raw"] = raw / count
    found["lake"] = size(space / "events") / count
    found["derived"] = sum(size(space / table.name) for table in tables.DERIVED) / count
    server = folder / f"server{count}.db"
    store = open_store(f"sqlite:///{server}")
    for first in range(0, count, 500):
        store.append([body for _, body in made[first : first + 500]])
    store.close()
    found["store"] = sum(p.stat().st_size for p in folder.glob(f"{server.name}*")) / count

    lake = IcebergLake({table.name: newest(space / table.name) for table in tables.TABLES})
    past = START + timedelta(days=DAYS // 2)
    moment = int(past.timestamp() * 1_000_000)
    target = job(NAMESPACE, COMPONENT - 1).output
    found["trace"] = timed(
        lake, Wanted(target, "up", moments=(moment,)), "/api/v2/trace",
        {"node": f"dataset:postgres://{NAMESPACE}:5432:{target}", "at": past.isoformat()},
    )  # fmt: skip
    day = 86_400_000_000
    found["diff"] = timed(
        lake, Wanted(period=(moment, moment + day)), "/api/v2/graph/diff",
        {"from": past.isoformat(), "to": (past + timedelta(days=1)).isoformat()},
    )  # fmt: skip
    return found


ROWS = (
    ("append alone, CPU an event", "appended cpu", "{:.2f} ms"),
    ("append alone, events a second", "appended rate", "{:,.0f}"),
    ("with derived tables, CPU an event", "derived cpu", "{:.2f} ms"),
    ("with derived tables, events a second", "derived rate", "{:,.0f}"),
    ("raw JSON, bytes an event", "raw", "{:,.0f}"),
    ("table events, bytes an event", "lake", "{:,.0f}"),
    ("derived tables, bytes an event", "derived", "{:,.0f}"),
    ("the server's store, bytes an event", "store", "{:,.0f}"),
    ("trace at a past moment", "trace", "{:.2f} s"),
    ("difference of one day", "diff", "{:.2f} s"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=int, help="events of each run  [20000 60000]")
    parser.add_argument("--batch", type=int, default=10_000, help="events of a batch  [10000]")
    parser.add_argument("--cores", type=int, default=2, help="cores that Spark has  [2]")
    options = parser.parse_args()
    sizes = options.sizes or [20_000, 60_000]
    with tempfile.TemporaryDirectory(prefix="headwater-lake-") as folder:
        spark = session(Path(folder), options.cores)
        spark.sparkContext.setLogLevel("ERROR")
        # Spark's classes are loaded and its code is made before anything counts.
        measure(spark, Path(folder), COMPONENT * 3, options.batch)
        found = [measure(spark, Path(folder), count, options.batch) for count in sizes]
        spark.stop()
    counts = [f"{one['events']:,.0f} events" for one in found]
    table = Table(title=f"lineage lake, batches of {options.batch:,}, {options.cores} cores")
    table.add_column("measure")
    for column in (*counts, "growth"):
        table.add_column(column, justify="right")
    more = found[-1]["events"] / found[0]["events"]
    for title, key, shape in ROWS:
        growth = found[-1][key] / found[0][key] if found[0][key] else 0.0
        table.add_row(title, *(shape.format(one[key]) for one in found), f"x{growth:.2f}")
    table.caption = f"events: x{more:.1f}"
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
