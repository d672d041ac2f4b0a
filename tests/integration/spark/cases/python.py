"""Functions in Python: their inputs are known from the plan, and so are rows that leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from .case import case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .stage import Stage


@case("""
    orders -> out
    id <- orders.id
    text <- orders.price TRANSFORMATION, orders.city TRANSFORMATION
    rows <- orders.city FILTER
""")
def python_udf(s: Stage) -> None:
    @F.udf("string")
    def joined(a: Any, b: Any) -> str:
        return f"{a}{b}"

    made = s.orders.select("id", joined("price", "city").alias("text"), "city")
    made.where(joined("city", "city") != "").select("id", "text").writeTo(s.out).using(
        "iceberg"
    ).create()


@case("""
    orders -> out
    n <- orders.customer TRANSFORMATION, orders.city TRANSFORMATION
    id <- orders.id
""")
def python_table_function(s: Stage) -> None:
    class Letters:
        def eval(self, a: int, b: str) -> Iterator[tuple[int]]:
            yield (a + len(b),)

    letters: Any = F.udtf(Letters, returnType="n: int")
    s.spark.udtf.register("letters", letters)
    s.sql("""create table {out} using iceberg as select l.n, o.id from {orders} o,
      lateral letters(o.customer, o.city) l""")


@case("""
    orders -> out
    unknown: id city
""")
def rdd_round_trip(s: Stage) -> None:
    rows = s.orders.select("id", "city").rdd.map(lambda row: (row.id, row.city))
    s.spark.createDataFrame(rows, "id bigint, city string").writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    city <- orders.city TRANSFORMATION
""")
def checkpoint(s: Stage) -> None:
    made = s.orders.select("id", F.upper("city").alias("city")).localCheckpoint()
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    city <- orders.city
""")
def cached(s: Stage) -> None:
    kept = s.orders.select("id", "city").cache()
    kept.count()
    kept.writeTo(s.out).using("iceberg").create()
    kept.unpersist()


@case("""
    -> out
    unknown: a b
""")
def rows_from_python(s: Stage) -> None:
    rows = s.spark.sparkContext.parallelize([(1, "x")])
    s.spark.createDataFrame(rows, "a int, b string").writeTo(s.out).using("iceberg").create()
