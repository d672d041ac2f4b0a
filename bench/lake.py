"""What the lineage lake costs, and how that grows: the program's own functions on Spark, on this machine.

The events are recorded ones of the demo and its Spark jobs, varied to any number (`_corpus.py`), and lie in
files, as a broker would hand them over, so the broker's own cost is apart. Each size is loaded in pieces and its
derived tables are computed once (bulk): what two sizes differ by is the cost of an event, the rest what a batch costs
in any case. With --stream, batches are appended one after the other for so long, every job touched each time, and
the derived tables computed behind each. Then a past moment is traced and a day compared, without Spark. CPU is that
of the driver, its JVM and the Python workers together. The copies of the estate report once a day for ten days, and
where that takes more than --copies, for more days. With --write each size is kept when it is done, so that sizes can be
measured in different runs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from _corpus import DAY, START, Corpus
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from headwater.lab.files.jars import pipeline_jars
from headwater.lab.services.pipeline_streams import programs
from headwater.lake import tables
from headwater.lake.answers import Scratch, Wanted, select
from headwater.lake.iceberg import IcebergLake
from headwater.server.store import open_store

sys.path.insert(0, str(programs()))
sys.path.insert(0, str(Path(__file__).parents[1]))
import lake as program
import lake_analyse
import lake_derive
from bench._lake_results import keep, kept, loads, said
from lake_store import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    Records: TypeAlias = Iterator[tuple[int, bytes]]

CORPUS = Corpus()
DAYS = 10
WARM = 3_000
TARGET = "supplier_stats.by_day"
"""The recorded job whose output is traced."""
STORED = 100_000
"""Events up to which the server's store is filled too, for its size."""
STREAMED = 20
"""Batches that are made at most."""
PIECE = 250_000
"""Events that lie in files at a time."""
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


def write(folder: Path, made: Records, batch: int, first: int = 0) -> tuple[list[Path], int]:
    """The records in files, a batch each, and how many bytes they are."""
    found: list[Path] = []
    size = 0
    folder.mkdir()
    while some := list(itertools.islice(made, batch)):
        size += sum(len(body) for _, body in some)
        rows = {
            "topic": ["bench"] * len(some),
            "partition": [0] * len(some),
            "offset": list(range(first, first + len(some))),
            "arrived": [at for at, _ in some],
            "value": [body for _, body in some],
            "headers": [None] * len(some),
        }
        first += len(some)
        found.append(folder / f"{first:09d}.parquet")
        pq.write_table(pa.table(rows, schema=SCHEMA), found[-1], compression="zstd")
    return found, size


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


def stream(spark: SparkSession, folder: Path, batch: int, seconds: float) -> dict[str, float]:
    """Batches one after the other, with derived tables, for so long."""
    count = STREAMED * batch
    made = CORPUS.events(count, CORPUS.copies(count, count, DAYS))
    files, _ = write(folder / "stream", made, batch)
    lake = Lake(spark, "bench", "stream")
    lake.create()
    started, count, spent = time.perf_counter(), 0, []
    for file in files:
        before = cpu()
        program.ingest(lake, spark.read.parquet(str(file)))
        lake_derive.derive(lake)
        count += batch
        spent.append((cpu() - before) / batch * 1_000)
        if time.perf_counter() - started > seconds:
            break
    return {"events": count, "first": spent[0], "last": spent[-1], "all": sum(spent) / len(spent)}


def stored(file: Path, count: int, copies: int) -> float:
    """Bytes an event that the server's own store takes."""
    store = open_store(f"sqlite:///{file}")
    made = CORPUS.events(count, copies)
    while some := list(itertools.islice(made, 500)):
        store.append([body for _, body in some])
    store.close()
    return sum(path.stat().st_size for path in file.parent.glob(f"{file.name}*")) / count


def load(
    spark: SparkSession, lake: Lake, folder: Path, count: int, batch: int, copies: int
) -> tuple[float, int]:
    """Append the events, piece by piece; answers seconds of CPU and bytes of JSON."""
    made = CORPUS.events(count, copies)
    spent, raw = 0.0, 0
    for first in range(0, count, PIECE):
        files, written = write(folder, itertools.islice(made, PIECE), batch, first)
        raw += written
        before = cpu()
        program.ingest(lake, spark.read.parquet(*map(str, files)))
        spent += cpu() - before
        shutil.rmtree(folder)
    return spent, raw


def measure(spark: SparkSession, folder: Path, count: int, batch: int, most: int) -> dict[str, Any]:
    copies = CORPUS.copies(count, most, DAYS)
    days = -(-count // (copies * len(CORPUS.bodies)))
    lake = Lake(spark, "bench", f"bulk{count}")
    lake.create()
    appended, raw = load(spark, lake, folder / f"records{count}", count, batch, copies)
    before = cpu()
    lake_derive.derive(lake)
    derived = cpu() - before
    space = folder / "warehouse" / f"bulk{count}"
    found: dict[str, Any] = {
        "events": count, "copies": copies, "days": days, "append": appended * 1_000,
        "derive": derived * 1_000, "append cpu": appended * 1_000 / count,
        "derived cpu": (appended + derived) * 1_000 / count, "raw": raw / count,
        "lake": size(space / "events") / count,
        "derived": sum(size(space / table.name) for table in tables.DERIVED) / count,
        "store": stored(folder / f"server{count}.db", count, copies) if count <= STORED else 0,
    }  # fmt: skip

    read = IcebergLake({table.name: newest(space / table.name) for table in tables.TABLES})
    past = START + days // 2 * DAY
    moment = int(past.timestamp() * 1_000_000)
    node = CORPUS.output(TARGET, copies - 1)
    found["trace"] = timed(
        read, Wanted(node=node, direction="up", moments=((moment, moment),)), "/api/v2/trace",
        {"node": node, "at": past.isoformat()},
    )  # fmt: skip
    found["diff"] = timed(
        read, Wanted(period=(moment, moment + 86_400_000_000)), "/api/v2/graph/diff",
        {"from": past.isoformat(), "to": (past + DAY).isoformat()},
    )  # fmt: skip
    found["load average"] = os.getloadavg()[1]
    return found


PER_JOB = 20
DOMAIN = 50


def estate(lake: Lake, edges: int, domain: int) -> None:
    """The derived tables of jobs that make a table each, of two before it and column by column.

    Jobs of one domain are joined; the first of each reads a source that no other domain has.
    """
    spark = lake.spark
    jobs = spark.range(edges // PER_JOB).selectExpr(
        "id", f"id DIV {domain} AS d", f"id % {domain} AS i"
    )
    name = "concat('domain', d, '.', {})"
    source, own = name.format("'source'"), name.format("concat('t', i)")
    before = name.format("concat('t', i - {})")
    shown = jobs.selectExpr(
        "id", "concat('job:bench:', d, '-', i) AS node", "'bench' AS job_namespace",
        "concat(d, '-', i) AS job_name", f"{own} AS own",
        f"if(i < 1, {source}, {before.format(1)}) AS near",
        f"if(i < 7, {source}, {before.format(7)}) AS far",
    )  # fmt: skip
    valid = "timestamp'2026-01-01' AS valid_from, CAST(NULL AS timestamp) AS valid_to"
    job = "node, job_namespace, job_name, 's3://bench' AS dataset_namespace"
    sides = "stack(3, near, 'input', far, 'input', own, 'output') AS (dataset_name, direction)"
    held = shown.selectExpr(job, sides, valid).distinct()
    columns = spark.range(edges).selectExpr(f"id DIV {PER_JOB} AS id", f"id % {PER_JOB} AS c")
    maps = columns.join(shown, "id").selectExpr(
        job, "'s3://bench' AS source_namespace", "if(c % 2 = 0, near, far) AS source_name",
        "concat('column', c) AS source_field", "own AS dataset_name",
        "concat('column', c) AS field", valid, "'[]' AS transformations",
    )  # fmt: skip
    named = held.selectExpr(
        "node", "dataset_namespace", "dataset_name", "timestamp'2026-01-01' AS first"
    )
    for table, rows in (
        (tables.EDGES, held), (tables.COLUMN_EDGES, maps), (tables.DATASETS, named.distinct()),
    ):  # fmt: skip
        rows.select(*table.names).writeTo(lake.name(table)).append()


def analysed(spark: SparkSession, edges: int, domain: int) -> dict[str, float]:
    """What it takes to analyse an estate of so many column edges."""
    lake = Lake(spark, "bench", f"analysed{edges}_{domain}")
    lake.create()
    estate(lake, edges, domain)
    before, began = cpu(), time.perf_counter()
    done = lake_analyse.analyse(lake, 30 * 86_400)
    return {
        "edges": edges,
        "datasets": done["analysis_datasets"],
        "columns": done["analysis_columns"],
        "seconds": time.perf_counter() - began,
        "cpu": cpu() - before,
    }


def print_analysed(spark: SparkSession, sizes: list[int], domain: int, cores: int) -> None:
    analysed(spark, DOMAIN * PER_JOB, DOMAIN)
    table = Table(title=f"lake analyse, components of {domain:,} jobs, {cores} cores")
    titles = ("column edges", "datasets", "columns", "time", "CPU", "CPU an edge", "against linear")
    for column in titles:
        table.add_column(column, justify="right")
    last: dict[str, float] | None = None
    for size in sizes:
        one = analysed(spark, size, domain)
        growth = ""
        if last is not None:
            growth = f"x{one['seconds'] / last['seconds'] / (one['edges'] / last['edges']):.2f}"
        table.add_row(
            *(f"{one[name]:,.0f}" for name in ("edges", "datasets", "columns")),
            f"{one['seconds']:.1f} s", f"{one['cpu']:.1f} s",
            f"{one['cpu'] / one['edges'] * 1e6:.1f} µs", growth,
        )  # fmt: skip
        last = one
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    text = "events of each load, or column edges  [3000 9000 27000, or 300000 1000000]"
    parser.add_argument("sizes", nargs="*", type=int, help=text)
    parser.add_argument("--stream", type=float, default=0, help="seconds to stream  [0]")
    parser.add_argument("--batch", type=int, default=3_000, help="events of its batches  [3000]")
    text = "copies of the recorded estate at most: more events are more days  [1000]"
    parser.add_argument("--copies", type=int, default=1_000, help=text)
    text = "measure `lake analyse` instead; sizes are column edges"
    parser.add_argument("--analyse", action="store_true", help=text)
    parser.add_argument("--domain", type=int, default=DOMAIN, help="jobs of a component  [50]")
    parser.add_argument("--cores", type=int, default=2, help="cores that Spark has  [2]")
    parser.add_argument("--write", action="store_true", help="keep the loads for the docs")
    options = parser.parse_args()
    sizes = options.sizes or ([300_000, 1_000_000] if options.analyse else [3_000, 9_000, 27_000])
    found: dict[str, Any] = {"corpus": CORPUS.size, "loads": {}}
    streamed: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-lake-") as folder:
        spark = session(Path(folder), options.cores)
        spark.sparkContext.setLogLevel("ERROR")
        if options.analyse:
            print_analysed(spark, sizes, options.domain, options.cores)
            spark.stop()
            return
        # Spark's classes are loaded and its code is made before anything counts.
        measure(spark, Path(folder), WARM - 1, options.batch, options.copies)
        for count in sizes:
            one = measure(spark, Path(folder), count, options.batch, options.copies)
            found["loads"][str(count)] = one
            if options.write:
                keep(corpus=CORPUS.size, loads={str(count): one})
        if options.stream:
            streamed = stream(spark, Path(folder), options.batch, options.stream)
        spark.stop()
    if options.write:
        found = kept()
    head, rows = loads(found)
    table = Table(title=f"lineage lake, {options.cores} cores")
    for column in head:
        table.add_column(column, justify="left" if column == head[0] else "right")
    for row in rows:
        table.add_row(*row)
    console = Console(width=110)
    console.print(table)
    for line in said(found):
        console.print(line)
    if streamed:
        console.print(
            f"streamed with derived tables, batches of {options.batch:,}: {streamed['events']:,.0f} events,"
            f" {streamed['all']:.2f} ms of CPU an event ({streamed['first']:.2f} the first batch,"
            f" {streamed['last']:.2f} the last)"
        )


if __name__ == "__main__":
    main()
