"""Projections, joins, groups, windows, unions, subqueries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from .case import case

if TYPE_CHECKING:
    from .stage import Stage


@case("""
    orders -> out
    id <- orders.id
    doubled <- orders.price TRANSFORMATION
    city <- orders.city TRANSFORMATION
    rows <- orders.price FILTER
    operation: create_table_as_select
    change: CREATE
""")
def create_table_as_select(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select id, price * 2 doubled, upper(city) city from {orders} where price > 1""")


@case("""
    orders -> out
    id <- orders.id
    name <- orders.city
    one <-
    operation: append
""")
def append_by_name(s: Stage) -> None:
    s.sql("create table {out} (one int, name string, id bigint) using iceberg")
    made = s.orders.select("id", F.col("city").alias("name"), F.lit(1).alias("one"))
    made.writeTo(s.out).append()


@case("""
    orders -> out
    a <- orders.id
    b <- orders.city
    rows <- orders.ts SORT
    operation: overwrite_by_expression
    change: OVERWRITE
""")
def insert_overwrite_by_position(s: Stage) -> None:
    s.sql("create table {out} (a bigint, b string) using iceberg")
    s.sql("insert overwrite {out} select id, city from {orders} order by ts limit 5")


@case("""
    orders -> out
    id <- orders.id
    city <- orders.city
    operation: overwrite_partitions_dynamic
    change: OVERWRITE in part
""")
def overwrite_partitions(s: Stage) -> None:
    s.sql("create table {out} (id bigint, city string) using iceberg partitioned by (city)")
    s.orders.select("id", "city").writeTo(s.out).overwritePartitions()


@case("""
    orders -> out
    id <- orders.id
    operation: replace_table_as_select
    change: OVERWRITE
""")
def replace_table_as_select(s: Stage) -> None:
    s.sql("create table {out} (x int) using iceberg")
    s.orders.select("id").writeTo(s.out).using("iceberg").createOrReplace()


@case("""
    orders, customers -> out
    id <- orders.id
    name <- customers.name
    rows <- orders.customer JOIN, customers.id JOIN
""")
def inner_join(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select o.id, c.name
      from {orders} o join {customers} c on o.customer = c.id""")


@case("""
    orders, customers -> out
    id <- orders.id
    name <- customers.name TRANSFORMATION
    rows <- orders.customer JOIN, customers.id JOIN, customers.email JOIN
""")
def outer_join_with_a_second_condition(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select o.id, coalesce(c.name, '?') name
      from {orders} o left join {customers} c on o.customer = c.id and c.email like '%x%'""")


@case("""
    orders, customers -> out
    id <- orders.id
    rows <- orders.customer JOIN, customers.id JOIN
""")
def semi_and_anti_join(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select o.id from {orders} o left semi join {customers} c on o.customer = c.id
      union all select o.id from {orders} o left anti join {customers} c on o.customer = c.id""")


@case("""
    orders -> out
    id <- orders.id
    other <- orders.id
    rows <- orders.customer JOIN
""")
def self_join(s: Stage) -> None:
    a, b = s.orders.alias("a"), s.orders.alias("b")
    joined = a.join(b, F.col("a.customer") == F.col("b.customer"))
    made = joined.select(F.col("a.id").alias("id"), F.col("b.id").alias("other"))
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders, customers -> out
    id <- orders.id
    name <- customers.name
""")
def cross_join(s: Stage) -> None:
    made = s.orders.select("id").crossJoin(s.customers.select("name"))
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    city <- orders.city
    total <- orders.price AGGREGATION
    n <-
    buyers <- orders.customer AGGREGATION masked
    rows <- orders.city GROUP_BY, orders.price FILTER
""")
def group_by_having(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select city, sum(price) total, count(*) n, count(distinct customer) buyers
      from {orders} group by city having sum(price) > 10""")


@case("""
    orders -> out
    total <- orders.price AGGREGATION, orders.city CONDITIONAL
    some <- orders.price AGGREGATION, orders.id CONDITIONAL
""")
def conditional_aggregates(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select sum(case when city = 'Bern' then price end) total,
        max(price) filter (where id > 0) some from {orders}""")


@case("""
    orders -> out
    city <- orders.city
    customer <- orders.customer
    total <- orders.price AGGREGATION
    rows <- orders.city GROUP_BY, orders.customer GROUP_BY
""")
def cube(s: Stage) -> None:
    made = s.orders.cube("city", "customer").agg(F.sum("price").alias("total"))
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    customer <- orders.customer
    Bern <- orders.price AGGREGATION, orders.city CONDITIONAL
    Basel <- orders.price AGGREGATION, orders.city CONDITIONAL
    rows <- orders.customer GROUP_BY, orders.city GROUP_BY
""")
def pivot(s: Stage) -> None:
    made = s.orders.groupBy("customer").pivot("city", ["Bern", "Basel"]).agg(F.sum("price"))
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    what <-
    text <- orders.city, orders.customer TRANSFORMATION
""")
def unpivot(s: Stage) -> None:
    values = (F.col("city"), F.col("customer").cast("string").alias("customer"))
    made = s.orders.unpivot(["id"], values, "what", "text")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    place <- orders.customer WINDOW, orders.ts WINDOW
    total <- orders.price AGGREGATION, orders.customer WINDOW
    before <- orders.price TRANSFORMATION, orders.ts WINDOW
    share <- orders.price WINDOW
""")
def windows(s: Stage) -> None:
    by = Window.partitionBy("customer")
    made = s.orders.select(
        "id",
        F.row_number().over(by.orderBy("ts")).alias("place"),
        F.sum("price").over(by).alias("total"),
        F.lag("price").over(Window.orderBy("ts")).alias("before"),
        F.rank().over(Window.orderBy("price")).alias("share"),
    )
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    city <- orders.city
    rows <- orders.customer WINDOW, orders.ts WINDOW
""")
def newest_of_each_by_row_number(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select id, city from (
      select *, row_number() over (partition by customer order by ts desc) place from {orders}
      ) where place = 1""")


@case("""
    orders -> out
    start <- orders.ts TRANSFORMATION
    city <- orders.city
    total <- orders.price AGGREGATION
    rows <- orders.ts GROUP_BY, orders.city GROUP_BY
""")
def tumbling_window(s: Stage) -> None:
    grouped = s.orders.groupBy(F.window("ts", "10 minutes"), "city")
    made = grouped.agg(F.sum("price").alias("total")).select("window.start", "city", "total")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    window.start <- orders.ts TRANSFORMATION
    window.end <- orders.ts TRANSFORMATION
    n <-
    rows <- orders.ts GROUP_BY
""")
def sliding_window(s: Stage) -> None:
    made = s.orders.groupBy(F.window("ts", "10 minutes", "5 minutes")).agg(F.count("*").alias("n"))
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    start <- orders.ts TRANSFORMATION
    n <-
    rows <- orders.ts GROUP_BY, orders.customer GROUP_BY
""")
def session_window(s: Stage) -> None:
    grouped = s.orders.groupBy(F.session_window("ts", "5 minutes"), "customer")
    made = grouped.agg(F.count("*").alias("n")).select("session_window.start", "n")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    newest <- orders.id AGGREGATION, orders.ts SORT
    list <- orders.city AGGREGATION
    middle <- orders.price AGGREGATION
""")
def picking_aggregates(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select max_by(id, ts) newest,
      collect_set(city) list, percentile_approx(price, 0.5) middle from {orders}""")


@case("""
    orders -> out
    id <- orders.id
    n <-
""")
def generated_and_default_columns(s: Stage) -> None:
    s.sql("create table {out} (id bigint, n bigint) using iceberg")
    made = s.orders.select("id", F.monotonically_increasing_id().alias("n"))
    made.repartition(2).sample(0.5).limit(3).write.insertInto(s.out)


@case("""
    orders, customers -> out
    id <- orders.id, customers.id
    word <- orders.city, customers.name
""")
def union_by_name(s: Stage) -> None:
    left = s.orders.select("id", F.col("city").alias("word"))
    right = s.customers.select(F.col("name").alias("word"), "id")
    left.unionByName(right).writeTo(s.out).using("iceberg").create()


@case("""
    orders, customers -> out
    id <- orders.id, customers.id
    word <- orders.city, customers.name
    rows <- orders.id GROUP_BY, orders.city GROUP_BY, customers.id GROUP_BY, customers.name GROUP_BY
""")
def union_distinct(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select id, city word from {orders} union select id, name from {customers}""")


@case("""
    orders, customers -> out
    id <- orders.customer
    rows <- orders.customer FILTER, customers.id FILTER
""")
def except_and_intersect(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      (select customer id from {orders} except all select id from {customers})
      intersect all select id from {customers}""")


@case("""
    orders -> out
    id <- orders.id
    city <- orders.city
    rows <- orders.customer GROUP_BY
""")
def drop_duplicates(s: Stage) -> None:
    made = s.orders.dropDuplicates(["customer"]).select("id", "city")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    total <- orders.price AGGREGATION
    rows <- orders.id GROUP_BY, orders.id JOIN
""")
def common_table_expressions(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      with a as (select id, price from {orders}), b as (select id, sum(price) p from a group by id)
      select a.id, b.p total from a join b on a.id = b.id""")


@case("""
    orders, customers -> out
    id <- orders.id
    best <- orders.price AGGREGATION, orders.id FILTER
    rows <- orders.customer FILTER, customers.id FILTER, customers.name FILTER
""")
def subqueries(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as
      select id, (select max(price) from {orders} i where i.id = o.id) best from {orders} o
      where customer in (select id from {customers} where name = 'Ada')
        and exists (select 1 from {customers} c where c.id = o.customer)""")


@case("""
    orders, customers -> out
    id <- orders.id
    name <- customers.name AGGREGATION
    rows <- customers.id FILTER, orders.customer FILTER
""")
def lateral_join(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select o.id, l.name from {orders} o,
      lateral (select max(name) name from {customers} c where c.id = o.customer) l""")


@case("""
    orders -> out
    kind <- orders.city TRANSFORMATION, orders.price CONDITIONAL
    some <- orders.price TRANSFORMATION, orders.id CONDITIONAL
    none <- orders.city TRANSFORMATION
    either <- orders.city TRANSFORMATION
""")
def conditions(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select
      case when price > 1 then city else 'none' end kind, if(id > 1, price, null) some,
      nullif(city, 'Bern') none, nvl(city, 'Basel') either from {orders}""")


@case("""
    customers -> out
    sha <- customers.email TRANSFORMATION masked
    md <- customers.email TRANSFORMATION masked
    number <- customers.email TRANSFORMATION masked
    hidden <- customers.name TRANSFORMATION masked
    both <- customers.name TRANSFORMATION masked, customers.email TRANSFORMATION
""")
def masking(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select sha2(email, 256) sha, md5(email) md,
      xxhash64(email) number, mask(name) hidden, concat(sha1(name), email) both
      from {customers}""")


@case("""
    orders -> out
    same <- orders.customer
    text <- orders.id TRANSFORMATION
    wide <- orders.price
    narrow <- orders.price TRANSFORMATION
    now <-
""")
def casts(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select cast(customer as bigint) same,
      cast(id as string) text, cast(price as decimal(20,4)) wide, cast(price as int) narrow,
      current_timestamp() now from {orders}""")


@case("""
    orders -> out
    id <- orders.id
    a <- orders.price TRANSFORMATION
    b <- orders.price TRANSFORMATION, orders.customer TRANSFORMATION
""")
def columns_on_columns(s: Stage) -> None:
    made = s.orders.withColumn("a", F.col("price") + 1).withColumn(
        "b", F.col("a") * F.col("customer")
    )
    made.select("id", "a", "b").writeTo(s.out).using("iceberg").create()


@case("""
    -> out
    id <-
    n <-
""")
def rows_from_nowhere(s: Stage) -> None:
    s.sql("create table {out} using iceberg as select id, 1 n from range(3)")
