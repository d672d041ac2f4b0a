"""Reads: instants, changes, and what shows rows to the program; and calls that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from .base import COLUMNS, customers, filled, orders, step, view, written

if TYPE_CHECKING:
    from ..stage import Stage

OWN = """
    _hoodie_commit_time <-
    _hoodie_commit_seqno <-
    _hoodie_record_key <-
    _hoodie_partition_path <-
    _hoodie_file_name <-
"""


def instant(s: Stage) -> str:
    """The instant of the table's first commit."""
    found = s.sql("select min(_hoodie_commit_time) t from {out}").collect()[0].t
    s.words["instant"] = found
    return str(found)


def twice(s: Stage, more: str = " tblproperties (primaryKey = 'id')") -> str:
    """The table of this step with a row of each of two commits; the instant of the first."""
    s.sql("create table {out} " + COLUMNS + more)
    s.sql("insert into {out} values (1, 1.0, 'a')")
    first = instant(s)
    s.sql("insert into {out} values (2, 1.0, 'a')")
    s.begin()
    return first


@step(
    """
    orders -> files
    id <- orders.id
    customer <- orders.customer
    price <- orders.price
    city <- orders.city
"""
    + OWN
)
def everything(s: Stage) -> None:
    orders(s).write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
    city <- out.city
    rows <- out.id FILTER
""")
def with_its_metadata(s: Stage) -> None:
    options = {"hoodie.metadata.enable": "true"}
    made = orders(s).select("id", "city")
    written(made, "out", "insert", **options).mode("append").save(s.path("out"))
    s.begin()
    read = s.spark.read.format("hudi").options(**options).load(s.path("out"))
    read.where("id > 1").select("id", "city").write.parquet(s.path("files"))


@step("""
    orders -> files
    id <- orders.id
    at <-
""")
def own_column(s: Stage) -> None:
    made = orders(s).select("id", F.substring("_hoodie_commit_time", 1, 8).alias("at"))
    made.write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
    version: out = {instant}
""")
def time_travel_by_option(s: Stage) -> None:
    when = twice(s)
    place = f"{s.folder}/warehouse/{s.table('out')}"
    read = s.spark.read.format("hudi").option("as.of.instant", when).load(place)
    read.select("id").write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
    version: out = {instant}
""")
def time_travel_in_sql(s: Stage) -> None:
    when = twice(s)
    s.sql("select id from {out} timestamp as of '{when}'", when=when).write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
""")
def incremental(s: Stage) -> None:
    when = twice(s)
    s.words.clear()
    place = f"{s.folder}/warehouse/{s.table('out')}"
    read = s.spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    read = read.option("hoodie.datasource.read.begin.instanttime", when)
    read.load(place).select("id").write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
""")
def incremental_merge_on_read(s: Stage) -> None:
    when = twice(s, " tblproperties (primaryKey = 'id', type = 'mor')")
    s.words.clear()
    place = f"{s.folder}/warehouse/{s.table('out')}"
    read = s.spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    read = read.option("hoodie.datasource.read.begin.instanttime", when)
    read.load(place).select("id").write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
""")
def changes_in_sql(s: Stage) -> None:
    twice(s)
    s.words.clear()
    read = s.sql("select id from hudi_table_changes('{out}', 'latest_state', 'earliest')")
    read.write.parquet(s.path("files"))


@step("""
    out -> files
    total <- out.total
    note <- out.note
    rows <- out.id FILTER
""")
def read_merge_on_read(s: Stage) -> None:
    filled(s, " tblproperties (primaryKey = 'id', type = 'mor')")
    s.sql("update {out} set note = 'x' where id = 1")
    s.begin()
    s.sql("select total, note from {out} where id > 1").write.parquet(s.path("files"))


@step("""
    out -> files
    id <- out.id
""")
def read_optimized(s: Stage) -> None:
    filled(s, " tblproperties (primaryKey = 'id', type = 'mor')")
    place = f"{s.folder}/warehouse/{s.table('out')}"
    read = s.spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized")
    read.load(place).select("id").write.parquet(s.path("files"))


@step("""
    out -> files
    op <-
    unknown: after
""")
def change_data(s: Stage) -> None:
    filled(s, " tblproperties (primaryKey = 'id', hoodie.table.cdc.enabled = 'true')")
    s.sql("update {out} set note = 'x' where id = 1")
    s.begin()
    place = f"{s.folder}/warehouse/{s.table('out')}"
    read = s.spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
    read = read.option("hoodie.datasource.query.incremental.format", "cdc")
    read = read.option("hoodie.datasource.read.begin.instanttime", "0")
    read.load(place).select("op", "after").write.parquet(s.path("files"))


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
    orders -> files
    city <- orders.city
    operation: save_into_data_source
""",
    end="FAIL",
)
def upsert_without_a_key(s: Stage) -> None:
    written(orders(s).select("city"), "files", "upsert").mode("append").save(s.path("files"))


@step(
    """
    orders -> out
    id <- orders.id
    total <-
    note <- orders.city
""",
    end="FAIL",
)
def insert_that_fails(s: Stage) -> None:
    filled(s)
    view(s)
    s.sql("insert into {out} select id, raise_error('no'), city from orders")
