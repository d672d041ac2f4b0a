"""What steps of Delta stand on: the session's settings, and tables to read and to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..stage import Steps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ..stage import Stage

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Delta lists files by that many tasks, however few there are.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
COLUMNS = "(id bigint, total decimal(10,2), note string) using delta"
ROWS = "values (1L, 7, 1.50BD, 'Bern'), (2L, 8, 2.50BD, 'Basel')"

step = Steps()


def fill(s: Stage) -> None:
    """The tables that steps read: `orders` by its path, `customers` in the catalog."""
    made = s.spark.sql(f"select * from {ROWS} as t(id, customer, price, city)")
    made.selectExpr("id", "customer", "cast(price as decimal(10,2)) price", "city").write.format(
        "delta"
    ).save(orders_path(s))
    s.spark.sql("create table customers (id int, name string, email string) using delta")
    s.spark.sql("insert into customers values (7, 'Ada', 'ada@x.org')")


def orders_path(s: Stage) -> str:
    path = f"{s.folder}/lake/orders"
    s.names[path] = "orders"
    return path


def orders(s: Stage) -> DataFrame:
    return s.spark.read.format("delta").load(orders_path(s))


def customers(s: Stage) -> DataFrame:
    s.names[f"{s.folder}/warehouse/customers"] = "customers"
    return s.spark.table("customers")


def filled(s: Stage) -> None:
    """The table of this step, with two rows."""
    s.sql("create table {out} " + COLUMNS)
    s.sql("insert into {out} values (1, 1.0, 'a'), (9, 2.0, 'b')")
    s.begin()


def api(s: Stage) -> Any:
    """The JVM's own API, which Delta's Python package calls."""
    return s.spark._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]
