"""Reads: versions, changes, and what shows rows to the program; and calls that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from .base import COLUMNS, api, customers, filled, orders, orders_path, step

if TYPE_CHECKING:
    from ..stage import Stage


@step("""
    orders -> files
    id <- orders.id
    version: orders = 0
""")
def time_travel_by_option(s: Stage) -> None:
    read = s.spark.read.format("delta").option("versionAsOf", 0).load(orders_path(s))
    read.select("id").write.format("parquet").save(s.path("files"))


@step("""
    out -> files
    id <- out.id
    version: out = 1
""")
def time_travel_in_sql(s: Stage) -> None:
    filled(s)
    s.sql("select id from {out} version as of 1").write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
    version: out = 0
""")
def time_travel_by_time(s: Stage) -> None:
    s.sql("create table {out} " + COLUMNS)
    when = s.sql("describe history {out}").selectExpr("cast(timestamp as string) t").collect()[0].t
    s.sql("insert into {out} values (1, 1.0, 'a')")
    s.begin()
    s.sql("select id from {out} timestamp as of '{when}'", when=when).write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
    kind <-
""")
def change_data_feed(s: Stage) -> None:
    s.sql(
        "create table {out} " + COLUMNS + " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    s.sql("insert into {out} values (1, 1.0, 'a')")
    s.begin()
    changes = s.spark.read.option("readChangeFeed", "true").option("startingVersion", 0)
    read = changes.table(s.table("out")).select("id", F.col("_change_type").alias("kind"))
    read.write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
""")
def change_data_feed_in_sql(s: Stage) -> None:
    s.sql(
        "create table {out} " + COLUMNS + " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    s.sql("insert into {out} values (1, 1.0, 'a')")
    s.begin()
    read = s.sql("select id from table_changes('{out}', 0)")
    read.write.parquet(s.path("files"))


@step("""
    orders ->
    operation: collect
""")
def collect(s: Stage) -> None:
    orders(s).where("price > 1").collect()


@step("""
    customers ->
    operation: count
""")
def count(s: Stage) -> None:
    customers(s).count()


@step(
    """
    orders, out -> out
    total <- orders.price
    rows <- out.id JOIN
    operation: merge_into_table
""",
    end="FAIL",
)
def merge_that_fails(s: Stage) -> None:
    filled(s)
    s.sql(
        """merge into {out} t using (select 1L id, price from delta.`{orders}`) s on t.id = s.id
      when matched then update set total = s.price""",
        orders=orders_path(s),
    )


@step(
    """
    orders -> out
    id <- orders.id TRANSFORMATION
    total <- orders.price
    note <- orders.city
    operation: append
""",
    end="FAIL",
)
def insert_against_a_constraint(s: Stage) -> None:
    filled(s)
    s.sql("alter table {out} add constraint small check (id < 100)")
    s.begin()
    s.sql(
        "insert into {out} select id + 500, price, city from delta.`{orders}`",
        orders=orders_path(s),
    )


@step(
    """
    orders -> files
    id <- orders.id
    city <- orders.city
    operation: save_into_data_source
""",
    end="FAIL",
)
def append_of_another_schema(s: Stage) -> None:
    orders(s).select("id").write.format("delta").save(s.path("files"))
    s.begin()
    orders(s).select("id", "city").write.format("delta").mode("append").save(s.path("files"))


@step(
    """
    orders, out -> out
    total <- orders.price
    rows <- out.id JOIN
    operation: merge_into_table
""",
    end="FAIL",
)
def merge_by_the_api_that_fails(s: Stage) -> None:
    filled(s)
    frame: Any = orders(s).selectExpr("1L id", "price").alias("s")
    table: Any = api(s).forName(s.spark._jsparkSession, s.table("out"))
    merge = getattr(table, "as")("t").merge(frame._jdf, "t.id = s.id")
    merge.whenMatched().updateExpr({"total": "s.price"}).execute()
