"""Streams from and to tables, and batches merged into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from .base import api, customers, orders_path, step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..stage import Stage


@step(
    """
    orders -> files
    id <- orders.id
""",
    stream=True,
)
def stream_by_path(s: Stage) -> None:
    read = s.spark.readStream.format("delta").load(orders_path(s)).select("id")
    s.bounded(read.writeStream.format("delta")).start(s.path("files")).awaitTermination(90)


@step(
    """
    customers -> out
    id <- customers.id
    name <- customers.name TRANSFORMATION
""",
    stream=True,
)
def stream_by_table(s: Stage) -> None:
    customers(s)
    read = s.spark.readStream.table("customers").select("id", F.upper("name").alias("name"))
    s.bounded(read.writeStream.format("delta")).toTable(s.table("out")).awaitTermination(90)


@step(
    """
    customers -> files
    id <- customers.id
    kind <-
""",
    stream=True,
)
def stream_of_changes(s: Stage) -> None:
    s.sql(
        "create table {come} (id bigint) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')",
        come=s.table("customers"),
    )
    s.sql("insert into {come} values (1)", come=s.table("customers"))
    s.begin()
    changes = s.spark.readStream.option("readChangeFeed", "true").option("startingVersion", 0)
    read = changes.table(s.table("customers")).select("id", F.col("_change_type").alias("kind"))
    s.bounded(read.writeStream.format("delta")).start(s.path("files")).awaitTermination(90)


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
    s.sql("create table {out} (id bigint, total decimal(10,2)) using delta")
    s.begin()
    out = s.table("out")

    def upsert(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(f"""merge into {out} t using batch s on t.id = s.id
          when matched then update set total = t.total + s.price
          when not matched then insert (id, total) values (s.id, s.price)""")

    read = s.spark.readStream.format("delta").load(orders_path(s))
    read = read.where("city <> 'x'").select("id", "price")
    s.bounded(read.writeStream.foreachBatch(upsert)).start().awaitTermination(90)


@step(
    """
    orders, out -> out
    id <- orders.id
    total <- orders.price, orders.price TRANSFORMATION, out.total TRANSFORMATION
    rows <- out.id JOIN, orders.id JOIN
""",
    stream=True,
)
def merge_for_each_batch_by_the_api(s: Stage) -> None:
    s.sql("create table {out} (id bigint, total decimal(10,2)) using delta")
    s.begin()

    def upsert(batch: Any, _: int) -> None:
        table = api(s).forName(batch.sparkSession._jsparkSession, s.table("out"))
        merge = getattr(table, "as")("t").merge(batch.alias("s")._jdf, "t.id = s.id")
        merge = merge.whenMatched().updateExpr({"total": "t.total + s.price"})
        merge.whenNotMatched().insertExpr({"id": "s.id", "total": "s.price"}).execute()

    read = s.spark.readStream.format("delta").load(orders_path(s)).select("id", "price")
    s.bounded(read.writeStream.foreachBatch(upsert)).start().awaitTermination(90)
