"""Writes of whole rows: by path and by table, by frames and in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from .base import COLUMNS, KEYED, customers, filled, orders, step, view, written

if TYPE_CHECKING:
    from ..stage import Stage


@step("""
    orders -> files
    id <- orders.id
    city <- orders.city TRANSFORMATION
    rows <- orders.price FILTER
    operation: save_into_data_source
""")
def upsert_by_path(s: Stage) -> None:
    made = orders(s).where("price > 1").select("id", F.upper("city").alias("city"))
    options = {"hoodie.metadata.enable": "true"}
    written(made, "files", "insert", **options).mode("append").save(s.path("files"))
    s.begin()
    written(made, "files", "upsert", **options).mode("append").save(s.path("files"))


@step("""
    orders -> files
    id <- orders.id
    city <- orders.city
    operation: save_into_data_source
""")
def insert_by_path(s: Stage) -> None:
    made = orders(s).select("id", "city")
    writer = written(
        made, "files", "insert", **{"hoodie.datasource.write.partitionpath.field": "city"}
    )
    writer.mode("append").save(s.path("files"))


@step("""
    orders -> files
    id <- orders.id
    n <- orders.price AGGREGATION
    rows <- orders.id GROUP_BY
    operation: save_into_data_source
    change: OVERWRITE
""")
def bulk_insert_by_path(s: Stage) -> None:
    made = orders(s).groupBy("id").agg(F.sum("price").alias("n"))
    written(made, "files", "bulk_insert").mode("overwrite").save(s.path("files"))


@step("""
    orders -> files
    id <- orders.id
    operation: save_into_data_source
    change: OVERWRITE
""")
def insert_overwrite_by_path(s: Stage) -> None:
    written(orders(s).select("id"), "files", "insert").mode("append").save(s.path("files"))
    s.begin()
    writer = written(orders(s).select("id"), "files", "insert_overwrite_table")
    writer.mode("append").save(s.path("files"))


@step("""
    orders -> files
    id <- orders.id
    total <- orders.price TRANSFORMATION
    operation: save_into_data_source
""")
def upsert_merge_on_read(s: Stage) -> None:
    made = orders(s).select("id", (F.col("price") + 1).alias("total"))
    options = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    written(made, "files", "insert", **options).mode("append").save(s.path("files"))
    s.begin()
    written(made, "files", "upsert", **options).mode("append").save(s.path("files"))


@step("""
    orders -> out
    id <- orders.id
    n <- orders.price TRANSFORMATION
    change: CREATE
""")
def save_as_table(s: Stage) -> None:
    made = orders(s).select("id", (F.col("price") + 1).alias("n"))
    written(made, s.table("out"), "bulk_insert").saveAsTable(s.table("out"))


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    note <- orders.city
""")
def insert_into_by_position(s: Stage) -> None:
    filled(s)
    orders(s).select("id", "price", "city").write.insertInto(s.table("out"))


@step("""
    orders, customers -> out
    id <- orders.id
    name <- customers.name
    rows <- orders.customer JOIN, customers.id JOIN
    change: CREATE
""")
def create_table_as_select(s: Stage) -> None:
    customers(s)
    view(s)
    s.sql(
        """create table {out} using hudi tblproperties (primaryKey = 'id') as
      select o.id, c.name from orders o join customers c on o.customer = c.id"""
    )


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price TRANSFORMATION
    note <-
""")
def insert_into(s: Stage) -> None:
    filled(s)
    view(s)
    s.sql("insert into {out} select id, price * 2, 'x' from orders")


@step("""
    -> out
    id <-
    total <-
    note <-
""")
def insert_values(s: Stage) -> None:
    filled(s)
    s.sql("insert into {out} values (3, 1.0, 'c')")


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    note <- orders.city
    change: OVERWRITE
""")
def insert_overwrite(s: Stage) -> None:
    filled(s)
    view(s)
    s.sql("insert overwrite {out} select id, price, city from orders")


@step("""
    orders -> out
    id <- orders.id
    note <- orders.city
    total <-
""")
def insert_into_a_partition(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS + KEYED + " partitioned by (note)")
    s.begin()
    view(s)
    s.sql("insert into {out} (id, total, note) select id, null, city from orders")


@step("""
    out -> files
    id <- out.id
    note <- out.note
""")
def table_read_by_its_path(s: Stage) -> None:
    filled(s)
    place = f"{s.folder}/warehouse/{s.table('out')}"
    read = s.spark.read.format("hudi").load(place).select("id", "note")
    read.write.parquet(s.path("files"))


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    note <- orders.city
    operation: save_into_data_source
""")
def table_written_by_its_path(s: Stage) -> None:
    filled(s)
    place = f"{s.folder}/warehouse/{s.table('out')}"
    made = orders(s).select("id", F.col("price").alias("total"), F.col("city").alias("note"))
    written(made, s.table("out"), "upsert").mode("append").save(place)
