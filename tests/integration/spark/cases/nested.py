"""Structs, arrays, maps, explode and functions over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from .case import case

if TYPE_CHECKING:
    from .stage import Stage


@case("""
    orders -> out
    zip <- orders.address.zip
    address.street <- orders.address.street
    address.zip <- orders.address.zip
    made.a <- orders.id
    made.n.b <- orders.city TRANSFORMATION
""")
def structs(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select address.zip, address,
      struct(id as a, struct(upper(city) as b) as n) made from {orders}""")


@case("""
    orders -> out
    address.zip <- orders.address.zip
    address.city <- orders.city
""")
def struct_with_and_without_fields(s: Stage) -> None:
    changed = F.col("address").withField("city", F.col("city")).dropFields("street")
    s.orders.select(changed.alias("address")).writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    sku <- orders.items.sku TRANSFORMATION
    qty <- orders.items.qty TRANSFORMATION
""")
def explode_structs(s: Stage) -> None:
    made = s.orders.select("id", F.explode("items").alias("item")).select("id", "item.*")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    key <- orders.props TRANSFORMATION
    value <- orders.props TRANSFORMATION
    pos <-
    tag <- orders.tags TRANSFORMATION
""")
def explode_map_and_array(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select id, key, value, pos, tag from {orders}
      lateral view explode(props) as key, value lateral view posexplode(tags) as pos, tag""")


@case("""
    orders -> out
    sku <- orders.items.sku TRANSFORMATION
    qty <- orders.items.qty TRANSFORMATION
""")
def inline_structs(s: Stage) -> None:
    s.sql("create table {out} using iceberg as select inline(items) from {orders}")


@case("""
    orders -> out
    more <- orders.items.qty TRANSFORMATION
    skus <- orders.items.sku
    other <- orders.tags TRANSFORMATION, orders.tags CONDITIONAL, orders.city CONDITIONAL
    total <- orders.items.qty TRANSFORMATION
    some <- orders.items.sku TRANSFORMATION
""")
def functions_over_arrays(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select transform(items, x -> x.qty + 1) more,
      items.sku skus, filter(tags, t -> t <> city) other,
      aggregate(items, 0, (sum, x) -> sum + x.qty) total, exists(items, x -> x.sku = 'a') some
      from {orders}""")


@case("""
    orders -> out
    names <- orders.props TRANSFORMATION
    one <- orders.props TRANSFORMATION
    first <- orders.items.sku TRANSFORMATION
    made <- orders.city TRANSFORMATION, orders.id TRANSFORMATION
    list <- orders.id TRANSFORMATION, orders.customer TRANSFORMATION
""")
def maps_and_places(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select map_keys(props) names, props['a'] one,
      items[0].sku first, map(city, id) made, array(id, customer) list from {orders}""")


@case("""
    orders -> out
    city <- orders.city
    orders.id <- orders.id AGGREGATION
    orders.price <- orders.price AGGREGATION
    last.ts <- orders.ts AGGREGATION
    last.id <- orders.id AGGREGATION
    rows <- orders.city GROUP_BY
""")
def structs_in_aggregates(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select city, collect_list(struct(id, price)) orders,
      max(struct(ts, id)) last from {orders} group by city""")


@case("""
    orders -> out
    items.sku <- orders.items.sku
    items.n <- orders.items.qty TRANSFORMATION
""")
def array_of_structs_rebuilt(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select transform(items, x -> struct(x.sku as sku, x.qty * 2 as n)) items from {orders}""")


@case("""
    orders -> out
    k <-
    v <- orders.city TRANSFORMATION, orders.id TRANSFORMATION
""")
def stack(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select stack(2, 'a', city, 'b', cast(id as string)) as (k, v) from {orders}""")


@case("""
    customers -> out
    a <- customers.name TRANSFORMATION
    b <- customers.name TRANSFORMATION
""")
def json_text_in_a_table(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select j.a, j.b from
      (select from_json(name, 'a int, b string') j from {customers})""")
