"""Functions over pandas and Arrow batches: every column they get may enter every column they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window

from .case import case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .stage import Stage


def vectorised(function: Callable[[Any], Any], result: str, kind: int) -> Any:
    """A pandas UDF of a kind (200 for columns, 202 for groups) without type hints to read it from."""
    from pyspark.sql.pandas.functions import pandas_udf

    made: Any = pandas_udf
    return made(function, result, kind)


@case("""
    orders -> out
    a <- orders.id TRANSFORMATION, orders.city TRANSFORMATION
    b <- orders.id TRANSFORMATION, orders.city TRANSFORMATION
""")
def map_in_arrow(s: Stage) -> None:
    def same(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch.rename_columns(["a", "b"])

    made = s.orders.select("id", "city").mapInArrow(same, "a bigint, b string")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    a <- orders.id TRANSFORMATION, orders.city TRANSFORMATION
    rows <- orders.price FILTER
""")
def map_in_pandas(s: Stage) -> None:
    import pandas as pd  # type: ignore[import-untyped, import-not-found, unused-ignore]

    def lengths(frames: Iterable[Any]) -> Iterator[Any]:
        for frame in frames:
            yield pd.DataFrame({"a": frame["id"] + frame["city"].str.len()})

    made = s.orders.where("price > 0").select("id", "city").mapInPandas(lengths, "a bigint")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    city <- orders.id TRANSFORMATION, orders.city TRANSFORMATION
    n <- orders.id TRANSFORMATION, orders.city TRANSFORMATION
    rows <- orders.city GROUP_BY
""")
def apply_in_pandas(s: Stage) -> None:
    import pandas as pd  # type: ignore[import-untyped, import-not-found, unused-ignore]

    def counted(frame: Any) -> Any:
        return pd.DataFrame({"city": frame["city"].head(1), "n": [len(frame)]})

    grouped = s.orders.select("id", "city").groupBy("city")
    grouped.applyInPandas(counted, "city string, n bigint").writeTo(s.out).using("iceberg").create()


@case("""
    orders, customers -> out
    id <- orders.customer TRANSFORMATION, orders.city TRANSFORMATION
    id <- customers.id TRANSFORMATION, customers.name TRANSFORMATION
    rows <- orders.customer GROUP_BY, customers.id GROUP_BY
""")
def cogrouped_pandas(s: Stage) -> None:
    import pandas as pd  # type: ignore[import-untyped, import-not-found, unused-ignore]

    def first(left: Any, right: Any) -> Any:
        return pd.DataFrame({"id": right["id"].head(1)})

    left = s.orders.select("customer", "city").groupBy("customer")
    right = s.customers.select("id", "name").groupBy("id")
    made = left.cogroup(right).applyInPandas(first, "id int")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    city <- orders.city TRANSFORMATION
    mean <- orders.id AGGREGATION
    rows <- orders.city GROUP_BY
""")
def pandas_udfs(s: Stage) -> None:
    shout = vectorised(lambda column: column.str.upper(), "string", 200)
    mean = vectorised(lambda column: float(column.mean()), "double", 202)
    grouped = s.orders.groupBy("city").agg(mean("id").alias("mean"))
    grouped.select(shout("city").alias("city"), "mean").writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    mean <- orders.id AGGREGATION, orders.city WINDOW
""")
def pandas_udf_over_a_window(s: Stage) -> None:
    mean = vectorised(lambda column: float(column.mean()), "double", 202)
    made = s.orders.select("id", mean("id").over(Window.partitionBy("city")).alias("mean"))
    made.writeTo(s.out).using("iceberg").create()
