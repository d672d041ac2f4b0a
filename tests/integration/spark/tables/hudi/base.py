"""What steps of Hudi stand on: the session's settings, and tables to read and to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..stage import Steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..stage import Stage

SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
# As few tasks as there are rows; nothing here says how a table looks.
SMALL = {
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.embed.timeline.server": "false",
    # A second table inside of each, which takes longer to keep than the table; a step has one.
    "hoodie.metadata.enable": "false",
}
COLUMNS = "(id bigint, total decimal(10,2), note string) using hudi"
KEYED = " tblproperties (primaryKey = 'id')"
ROWS = "values (1L, 7, 1.50BD, 'Bern'), (2L, 8, 2.50BD, 'Basel')"

step = Steps()


def fill(s: Stage) -> None:
    """The tables that steps read: `orders` by its path, `customers` in the catalog."""
    for key, value in SMALL.items():
        s.spark.conf.set(key, value)
    made = s.spark.sql(f"select * from {ROWS} as t(id, customer, price, city)")
    made = made.selectExpr("id", "customer", "cast(price as decimal(10,2)) price", "city")
    written(made, "orders", "bulk_insert").mode("overwrite").save(orders_path(s))
    s.spark.sql(f"create table customers (id int, name string, email string) using hudi{KEYED}")
    s.spark.sql("insert into customers values (7, 'Ada', 'ada@x.org')")


def written(frame: DataFrame, name: str, operation: str, **options: str) -> Any:
    """A writer of a frame to a table of this name."""
    writer = frame.write.format("hudi").options(**SMALL)
    writer = writer.option("hoodie.table.name", name)
    writer = writer.option("hoodie.datasource.write.operation", operation)
    writer = writer.option("hoodie.datasource.write.recordkey.field", "id")
    return writer.options(**options)


def orders_path(s: Stage) -> str:
    path = f"{s.folder}/lake/orders"
    s.names[path] = "orders"
    return path


def orders(s: Stage) -> DataFrame:
    return s.spark.read.format("hudi").load(orders_path(s))


def customers(s: Stage) -> DataFrame:
    s.names[f"{s.folder}/warehouse/customers"] = "customers"
    return s.spark.table("customers")


def filled(s: Stage, more: str = KEYED) -> None:
    """The table of this step, with two rows."""
    s.sql("create table {out} " + COLUMNS + more)
    s.sql("insert into {out} values (1, 1.0, 'a'), (9, 2.0, 'b')")
    s.begin()


def view(s: Stage) -> None:
    """The orders as a view, since a table by its path has no name in SQL."""
    orders(s).createOrReplaceTempView("orders")
