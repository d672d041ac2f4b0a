"""A batch program that does one of each, well or badly."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812
from tests.integration.spark.programs import shapes

import headwater.spark

namespace, told = sys.argv[1], Path(sys.argv[2])
work = Path.cwd()
spark = shapes.session("Supplier Stats")
listeners = spark._jsparkSession.listenerManager()
others = len(listeners.listListeners())
headwater.spark.attach(spark)
assert headwater.spark.attach(spark) is spark
table = f"lab.{namespace}.supplier_stats"
orders = spark.createDataFrame([("acme", 1.5), ("globex", 2.0)], "supplier string, price double")

orders.write.mode("overwrite").parquet(str(work / "orders"))
source = spark.read.parquet(str(work / "orders"))
stats = source.groupBy("supplier").agg(F.sum("price").alias("total"))
stats.writeTo(table).using("iceberg").createOrReplace()
stats.writeTo(table).overwrite(F.lit(True))
stats.write.mode("overwrite").saveAsTable("saved")
spark.sql(f"insert into {table} select supplier, total from saved")
spark.sql(f"merge into {table} t using saved s on t.supplier = s.supplier"
          " when matched then update set t.total = s.total")  # fmt: skip
source.count()
spark.sql("select 1")


@F.udf("double")
def slow(price: float) -> float:
    time.sleep(2)
    return price


def watch() -> None:
    """Leave a mark if START is there before the write is over."""
    while running.is_set():
        if told.exists() and '"START"' in "".join(
            line for line in told.read_text().splitlines() if "slow_out" in line
        ):
            (work / "seen-while-running").touch()
            return
        time.sleep(0.05)


def evolving() -> None:
    """Append rows with columns that the tables do not have yet, so slowly that START comes before."""
    for name in ("evolving", "evolving_table"):
        spark.sql(
            f"create table lab.{namespace}.{name} (supplier string, price double) using iceberg"
            " tblproperties ('write.spark.accept-any-schema' = 'true')"
        )
    # As many columns as the table has, one of them by another name.
    more = source.limit(1).select("supplier", slow("price").alias("costs"))
    more.writeTo(f"lab.{namespace}.evolving").option("mergeSchema", "true").append()
    more = more.withColumn("note", F.lit("new"))
    writer = more.write.format("iceberg").option("merge-schema", "true").mode("append")
    writer.saveAsTable(f"lab.{namespace}.evolving_table")
    if spark.version >= "4.1":
        spark.sql(f"create table lab.{namespace}.merged using iceberg as select * from saved")
        spark.sql(
            f"merge with schema evolution into lab.{namespace}.merged t"
            " using (select supplier, total, 1L rank from saved) s on t.supplier = s.supplier"
            " when matched then update set * when not matched then insert *"
        )


evolving()
running = threading.Event()
running.set()
watcher = threading.Thread(target=watch)
watcher.start()
source.coalesce(1).select(slow("price")).write.mode("overwrite").parquet(str(work / "slow_out"))
running.clear()
watcher.join()


@F.udf("double")
def broken(_: float) -> float:
    raise ValueError("no price")


for attempt in (
    lambda: spark.sql("insert into nowhere.at_all select 1"),
    lambda: (
        source.select(broken("price")).write.mode("overwrite").parquet(str(work / "broken_out"))
    ),
    lambda: orders.write.parquet(str(work / "orders")),
):
    try:
        attempt()
    except Exception as error:  # noqa: BLE001
        print(type(error).__name__)

threads = [
    threading.Thread(
        target=lambda at=at: source.write.mode("overwrite").parquet(str(work / f"parallel_{at}"))
    )
    for at in range(3)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()


def unnamed(at: int) -> None:
    """Write without a word at the entry point that says where to, well or badly."""
    rows = source.select(broken("price")) if at == 1 else source
    writer = rows.write.mode("overwrite").option("path", str(work / f"unnamed_{at}"))
    together.wait()
    try:
        writer.save()
    except Exception as error:  # noqa: BLE001
        print(type(error).__name__)


together = threading.Barrier(3)
threads = [threading.Thread(target=unnamed, args=(at,)) for at in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

headwater.spark.flush(30)
headwater.spark.detach(spark)
assert len(listeners.listListeners()) == others
source.write.mode("overwrite").parquet(str(work / "unseen"))
