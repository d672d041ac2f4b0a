"""Streams from and to tables, and batches written to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from .base import COLUMNS, KEYED, SMALL, orders_path, step, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..stage import Stage


def streamed(s: Stage, frame: DataFrame, name: str) -> Any:
    writer = s.bounded(frame.writeStream.format("hudi").options(**SMALL))
    writer = writer.option("hoodie.table.name", name)
    writer = writer.option("hoodie.datasource.write.recordkey.field", "id")
    return writer.outputMode("append")


@step(
    """
    orders -> files
    id <- orders.id
    city <- orders.city TRANSFORMATION
    rows <- orders.price FILTER
""",
    stream=True,
)
def stream_by_path(s: Stage) -> None:
    read = s.spark.readStream.format("hudi").load(orders_path(s)).where("price > 0")
    made = read.select("id", F.upper("city").alias("city"))
    streamed(s, made, "files").start(s.path("files")).awaitTermination(90)


@step(
    """
    orders, out -> out
    id <- orders.id
    total <- orders.price, orders.price TRANSFORMATION, out.total TRANSFORMATION
    rows <- out.id JOIN, orders.id JOIN, orders.city FILTER
""",
    stream=True,
)
def merge_for_each_batch(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + KEYED)
    s.begin()
    out = s.table("out")

    def upsert(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(f"""merge into {out} t using batch s on t.id = s.id
          when matched then update set total = t.total + s.price
          when not matched then insert (id, total) values (s.id, s.price)""")

    read = s.spark.readStream.format("hudi").load(orders_path(s))
    read = read.where("city <> 'x'").select("id", "price")
    s.bounded(read.writeStream.foreachBatch(upsert)).start().awaitTermination(90)


@step(
    """
    orders -> files
    id <- orders.id
    price <- orders.price
""",
    stream=True,
)
def upsert_for_each_batch(s: Stage) -> None:
    place = s.path("files")

    def upsert(batch: DataFrame, _: int) -> None:
        written(batch, "files", "upsert").mode("append").save(place)

    read = s.spark.readStream.format("hudi").load(orders_path(s)).select("id", "price")
    s.bounded(read.writeStream.foreachBatch(upsert)).start().awaitTermination(90)
