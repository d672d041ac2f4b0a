"""Writes of whole rows: by path and by table, by frames and in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from .base import api, customers, filled, orders, orders_path, step

if TYPE_CHECKING:
    from ..stage import Stage


@step("""
    orders -> files
    id <- orders.id
    city <- orders.city TRANSFORMATION
    rows <- orders.price FILTER
    operation: save_into_data_source
""")
def append_by_path(s: Stage) -> None:
    made = orders(s).where("price > 1").select("id", F.upper("city").alias("city"))
    made.write.format("delta").mode("append").save(s.path("files"))


@step("""
    orders -> files
    id <- orders.id
    operation: save_into_data_source
    change: OVERWRITE
""")
def overwrite_by_path(s: Stage) -> None:
    orders(s).select("id").write.format("delta").mode("overwrite").save(s.path("files"))


@step("""
    orders -> files
    id <- orders.id
    city <- orders.city
    rows <- orders.city FILTER
    operation: save_into_data_source
    change: OVERWRITE in part
""")
def replace_where(s: Stage) -> None:
    made = orders(s).select("id", "city")
    made.write.format("delta").partitionBy("city").save(s.path("files"))
    s.begin()
    writer = made.where("city = 'Bern'").write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "city = 'Bern'").save(s.path("files"))


@step("""
    orders -> out
    id <- orders.id
    n <- orders.price TRANSFORMATION
    operation: create_table_as_select
    change: CREATE
""")
def save_as_table(s: Stage) -> None:
    made = orders(s).select("id", (F.col("price") + 1).alias("n"))
    made.write.format("delta").saveAsTable(s.table("out"))


@step("""
    orders -> out
    id <- orders.id
    note <-
    operation: append
""")
def save_as_table_again(s: Stage) -> None:
    s.sql("create table {out} (id bigint, note string) using delta")
    s.begin()
    made = orders(s).select("id", F.lit("x").alias("note"))
    made.write.format("delta").mode("append").saveAsTable(s.table("out"))


@step("""
    orders -> out
    id <- orders.id
    city <- orders.city
    operation: append
""")
def save_as_table_with_another_column(s: Stage) -> None:
    s.sql("create table {out} (id bigint, note string) using delta")
    s.begin()
    writer = orders(s).select("id", "city").write.format("delta").mode("append")
    writer.option("mergeSchema", "true").saveAsTable(s.table("out"))


@step("""
    orders -> out
    city <- orders.city
    operation: replace_table_as_select
    change: OVERWRITE
""")
def save_as_table_of_another_schema(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using delta")
    s.begin()
    writer = orders(s).select("city").write.format("delta").mode("overwrite")
    writer.option("overwriteSchema", "true").saveAsTable(s.table("out"))


@step("""
    orders -> out
    id <- orders.id
    operation: replace_table_as_select
    change: OVERWRITE
""")
def save_as_table_anew(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using delta")
    s.begin()
    made = orders(s).select("id")
    made.write.format("delta").mode("overwrite").saveAsTable(s.table("out"))


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    note <- orders.city
    operation: append
""")
def insert_into_by_position(s: Stage) -> None:
    filled(s)
    orders(s).select("id", "price", "city").write.insertInto(s.table("out"))


@step("""
    customers -> out
    id <- customers.id
    name <- customers.name TRANSFORMATION masked
    operation: create_table_as_select
    change: CREATE
""")
def write_to_create(s: Stage) -> None:
    made = customers(s).select("id", F.sha2("name", 256).alias("name"))
    made.writeTo(s.table("out")).using("delta").create()


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    note <- orders.city
    operation: append
""")
def write_to_append(s: Stage) -> None:
    filled(s)
    made = orders(s).select("id", F.col("price").alias("total"), F.col("city").alias("note"))
    made.writeTo(s.table("out")).append()


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    note <- orders.city
    operation: overwrite_by_expression
    change: OVERWRITE
""")
def write_to_overwrite(s: Stage) -> None:
    filled(s)
    made = orders(s).select("id", F.col("price").alias("total"), F.col("city").alias("note"))
    made.writeTo(s.table("out")).overwrite(F.lit(True))


@step("""
    orders, customers -> out
    id <- orders.id
    name <- customers.name
    rows <- orders.customer JOIN, customers.id JOIN
    operation: create_table_as_select
    change: CREATE
""")
def create_table_as_select(s: Stage) -> None:
    customers(s)
    s.sql(
        """create table {out} using delta as select o.id, c.name
      from delta.`{orders}` o join customers c on o.customer = c.id""",
        orders=orders_path(s),
    )


@step("""
    orders -> out
    city <- orders.city
    total <- orders.price AGGREGATION
    rows <- orders.city GROUP_BY
    operation: replace_table_as_select
    change: OVERWRITE
""")
def replace_table_as_select(s: Stage) -> None:
    s.sql(
        """create or replace table {out} using delta as
      select city, sum(price) total from delta.`{orders}` group by city""",
        orders=orders_path(s),
    )


@step("""
    orders -> files
    id <- orders.id
    operation: create_table_as_select
    change: CREATE
""")
def create_table_at_a_path(s: Stage) -> None:
    s.spark.sql(f"""create table delta.`{s.path("files")}` using delta as
      select id from delta.`{orders_path(s)}`""")


@step("""
    orders -> files
    id <- orders.id
    operation: create_table_as_select
    change: CREATE
""")
def create_table_with_a_location(s: Stage) -> None:
    s.spark.sql(f"""create table elsewhere using delta location '{s.path("files")}' as
      select id from delta.`{orders_path(s)}`""")


@step("""
    orders -> out
    id <- orders.id
    operation: create_table_as_select
    change: CREATE
""")
def create_table_in_a_database_elsewhere(s: Stage) -> None:
    place = f"{s.folder}/lake/branch"
    s.spark.sql(f"create database branch location '{place}'")
    s.names[f"{place}/out"] = "out"
    s.spark.sql(f"create table branch.out using delta as select id from delta.`{orders_path(s)}`")


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price TRANSFORMATION
    note <-
    operation: append
""")
def insert_into(s: Stage) -> None:
    filled(s)
    s.sql(
        "insert into {out} select id, price * 2, 'x' from delta.`{orders}`", orders=orders_path(s)
    )


@step("""
    -> out
    id <-
    total <-
    note <-
    operation: append
""")
def insert_values(s: Stage) -> None:
    filled(s)
    s.sql("insert into {out} values (3, 1.0, 'c')")


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    note <- orders.city
    operation: overwrite_by_expression
    change: OVERWRITE
""")
def insert_overwrite(s: Stage) -> None:
    filled(s)
    s.sql(
        "insert overwrite {out} select id, price, city from delta.`{orders}`", orders=orders_path(s)
    )


@step("""
    orders -> files
    id <- orders.id
    operation: append
""")
def insert_into_a_path(s: Stage) -> None:
    orders(s).select("id").limit(0).write.format("delta").save(s.path("files"))
    s.begin()
    s.spark.sql(f"insert into delta.`{s.path('files')}` select id from delta.`{orders_path(s)}`")


@step("""
    orders -> out
    id <- orders.id
    city <- orders.city
    rows <- orders.city FILTER
    operation: overwrite_by_expression
    change: OVERWRITE in part
""")
def insert_replace_where(s: Stage) -> None:
    s.sql("create table {out} (id bigint, city string) using delta partitioned by (city)")
    s.begin()
    s.sql(
        """insert into {out} replace where city = 'Bern'
      select id, city from delta.`{orders}` where city = 'Bern'""",
        orders=orders_path(s),
    )


@step("""
    orders -> out
    id <- orders.id
    city <- orders.city
    operation: overwrite_partitions_dynamic
    change: OVERWRITE in part
""")
def write_to_overwrite_partitions(s: Stage) -> None:
    s.sql("create table {out} (id bigint, city string) using delta partitioned by (city)")
    s.begin()
    orders(s).select("id", "city").writeTo(s.table("out")).overwritePartitions()


@step("""
    out -> files
    id <- out.id
    note <- out.note
""")
def table_read_by_its_path(s: Stage) -> None:
    filled(s)
    place = f"{s.folder}/warehouse/{s.table('out')}"
    read = s.spark.read.format("delta").load(place).select("id", "note")
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
    made.write.format("delta").mode("append").save(place)


@step("""
    orders -> out
    id <- orders.id
    total <- orders.price
    unknown: double
    operation: append
""")
def generated_column(s: Stage) -> None:
    # No SQL of Spark's own makes one, so Delta's builder does.
    made = api(s).create(s.spark._jsparkSession).tableName(s.table("out"))
    made = made.addColumn("id", "bigint").addColumn("total", "decimal(10,2)")
    column = api(s).columnBuilder(s.spark._jsparkSession, "double").dataType("decimal(13,2)")
    made.addColumn(column.generatedAlwaysAs("cast(total * 2 as decimal(13,2))").build()).execute()
    s.begin()
    made = orders(s).select("id", F.col("price").alias("total"))
    made.write.format("delta").mode("append").saveAsTable(s.table("out"))
