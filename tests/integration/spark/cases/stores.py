"""Files, tables of Spark's own catalog, views, databases, catalogs, snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from headwater.lineage.naming import DatasetName

from .case import case

if TYPE_CHECKING:
    from .stage import Stage

SIMPLE = """
    orders -> files
    id <- orders.id
    city <- orders.city
"""


@case(SIMPLE + "change: OVERWRITE")
def write_parquet(s: Stage) -> None:
    s.orders.select("id", "city").write.mode("overwrite").parquet(s.path("files"))


@case(SIMPLE)
def write_orc_in_partitions(s: Stage) -> None:
    s.orders.select("id", "city").write.partitionBy("city").orc(s.path("files"))


@case(SIMPLE)
def write_avro_files(s: Stage) -> None:
    s.orders.select("id", "city").write.format("avro").save(s.path("files"))


@case(SIMPLE + "operation: insert_into_dir")
def insert_overwrite_directory(s: Stage) -> None:
    s.sql(
        "insert overwrite directory '{path}' using json select id, city from {orders}",
        path=s.path("files"),
    )


@case("""
    json, csv -> files
    id <- json.id, csv.id TRANSFORMATION
""")
def read_json_and_csv(s: Stage) -> None:
    s.orders.select("id").write.json(s.path("json"))
    s.orders.select("id").write.option("header", "true").csv(s.path("csv"))
    s.drain()
    json = s.spark.read.schema("id bigint").json(s.path("json"))
    csv = s.spark.read.option("header", "true").csv(s.path("csv"))
    both = json.unionAll(csv.select(F.col("id").cast("bigint")))
    both.write.parquet(s.path("files"))


@case("""
    text, binary -> files
    word <- text.value TRANSFORMATION
    size <- binary.length
""")
def read_text_and_binary(s: Stage) -> None:
    s.orders.select("city").write.text(s.path("text"))
    s.orders.select("city").write.text(s.path("binary"))
    s.drain()
    words = s.spark.read.text(s.path("text")).select(F.explode(F.split("value", " ")).alias("word"))
    sizes = s.spark.read.format("binaryFile").load(s.path("binary"))
    made = words.crossJoin(sizes.select(F.col("length").alias("size")))
    made.write.parquet(s.path("files"))


@case("""
    parts -> files
    id <- parts.id
    city <- parts.city
""")
def many_partitions_are_one_root(s: Stage) -> None:
    root = s.path("parts")
    for city in ("Bern", "Basel"):
        s.orders.select("id").write.parquet(f"{root}/city={city}")
    s.drain()
    read = s.spark.read.option("basePath", root)
    read.parquet(f"{root}/city=Bern", f"{root}/city=Basel").write.parquet(s.path("files"))


@case("""
    orders -> plain
    id <- orders.id
    price <- orders.price
    operation: create_table_as_select
""")
def save_as_table(s: Stage) -> None:
    s.names[DatasetName("file", f"{s.folder}/warehouse/plain")] = "plain"
    s.orders.select("id", "price").write.saveAsTable("plain")


@case("""
    plain, orders -> out
    id <- plain.id
    price <- orders.price TRANSFORMATION
    rows <- plain.id JOIN, orders.id JOIN, orders.city FILTER
""")
def views_through_to_tables(s: Stage) -> None:
    s.names[DatasetName("file", f"{s.folder}/warehouse/viewed")] = "plain"
    s.spark.sql("create table viewed (id bigint) using parquet")
    s.spark.sql("create view stored_view as select id from viewed")
    s.sql("create temp view passing_view as select id, price * 2 p from {orders} where city = 'x'")
    s.drain()
    s.sql("""create table {out} using iceberg as select a.id, b.p price
      from stored_view a join passing_view b on a.id = b.id""")


@case("""
    seen -> view
    id <- seen.id
    half <- seen.id TRANSFORMATION
    operation: create_view
""")
def create_view(s: Stage) -> None:
    s.names[DatasetName("file", f"{s.folder}/warehouse/seen")] = "seen"
    s.names[DatasetName(f"file:{s.folder}/warehouse", "default.seen_view")] = "view"
    s.spark.sql("create table seen (id bigint) using parquet")
    s.drain()
    s.spark.sql("create view seen_view as select id, id / 2 half from seen")


@case("""
    orders -> target
    id <- orders.id
    word <- orders.city
""")
def insert_into_plain_table(s: Stage) -> None:
    s.names[DatasetName("file", f"{s.folder}/warehouse/inserted")] = "target"
    s.spark.sql("create table inserted (id bigint, word string) using parquet")
    s.drain()
    s.sql("insert into inserted select id, city from {orders}")


@case("""
    customers -> people
    id <- customers.id
    name <- customers.name TRANSFORMATION
    change: OVERWRITE
""")
def write_jdbc(s: Stage) -> None:
    made = s.customers.select("id", F.upper("name").alias("name"))
    made.write.format("jdbc").options(**s.pg("people")).mode("overwrite").save()


@case("""
    people -> out
    id <- people.id
    name <- people.name
    rows <- people.id FILTER
""")
def read_jdbc_table(s: Stage) -> None:
    people = s.pg("people")
    s.customers.write.format("jdbc").options(**people).save()
    s.drain()
    made = s.spark.read.format("jdbc").options(**people).load().where("id > 0")
    made.select("id", "name").writeTo(s.out).using("iceberg").create()


@case("""
    people, sales -> out
    id <- people.id
    shout <- people.name TRANSFORMATION
    n <- sales.price AGGREGATION
""")
def read_jdbc_query(s: Stage) -> None:
    people, sales = s.pg("people"), s.pg("sales")
    s.customers.write.format("jdbc").options(**people).save()
    s.orders.select("customer", "price").write.format("jdbc").options(**sales).save()
    s.drain()
    query = f"""select p.id, upper(p.name) as shout, sum(s.price) as n from {people["dbtable"]} p
      join {sales["dbtable"]} s on s.customer = p.id group by p.id, p.name"""
    read = s.spark.read.format("jdbc").options(**s.pg_options(), query=query).load()
    read.writeTo(s.out).using("iceberg").create()


@case("""
    people -> out
    id <- people.id
    name <- people.name
""")
def read_jdbc_query_as_a_table(s: Stage) -> None:
    people = s.pg("people")
    s.customers.write.format("jdbc").options(**people).save()
    s.drain()
    table = f"(select * from {people['dbtable']} where id > 0) p"
    read = s.spark.read.format("jdbc").options(**s.pg_options(), dbtable=table).load()
    read.select("id", "name").writeTo(s.out).using("iceberg").create()


@case("""
    orders -> here
    id <- orders.id
    operation: append
""")
def iceberg_by_path(s: Stage) -> None:
    s.names[DatasetName("file", f"{s.folder}/hadoop/shop/bypath")] = "here"
    s.spark.sql("create table had.shop.bypath (id bigint) using iceberg")
    s.drain()
    read = s.spark.read.format("iceberg").load(s.table("orders"))
    read.select("id").write.format("iceberg").mode("append").save(f"{s.folder}/hadoop/shop/bypath")


@case("""
    orders -> here
    id <- orders.id
    operation: create_table_as_select
""")
def iceberg_in_a_hadoop_catalog(s: Stage) -> None:
    s.names[DatasetName("file", f"{s.folder}/hadoop/shop/here")] = "here"
    s.sql("create table had.shop.here using iceberg as select id from {orders}")


@case("""
    orders -> there
    id <- orders.id
""")
def iceberg_in_a_jdbc_catalog(s: Stage) -> None:
    s.names[DatasetName("file", f"{s.folder}/jdbc/{s.namespace}/there")] = "there"
    s.sql("create namespace db.{ns}")
    s.sql("create table db.{ns}.there using iceberg as select id from {orders}")


@case("""
    past -> out
    id <- past.id
    version: past = {first}
""")
def time_travel_by_snapshot(s: Stage) -> dict[str, str]:
    past = s.table("past__snapshot")
    s.sql(f"create table {past} using iceberg as select id from {{orders}}")
    first = s.spark.sql(f"select snapshot_id from {past}.snapshots").collect()[0][0]
    s.sql(f"insert into {past} select 1")
    s.drain()
    s.sql(f"create table {{out}} using iceberg as select id from {past} version as of {first}")
    return {"first": str(first)}


@case("""
    orders -> out
    snapshot_id <-
    added <-
    operation: create_table_as_select
""")
def metadata_of_a_table(s: Stage) -> None:
    s.sql("""create table {out} using iceberg as select snapshot_id, summary['added-records'] as added
      from {orders}.snapshots where operation = 'append' and committed_at > timestamp'2020-01-01'""")


@case("""
    orders -> out
    id <- orders.id
    file_path <-
    rows <- orders.id FILTER
""")
def a_table_and_its_metadata(s: Stage) -> None:
    path = s.spark.read.format("iceberg").load(f"{s.table('orders')}.files").select("file_path")
    rows = s.spark.table(s.table("orders")).where("id > 0").select("id")
    path.crossJoin(rows).select("id", "file_path").writeTo(s.out).using("iceberg").create()


@case("""
    here -> out
    snapshot_id <-
""")
def metadata_by_path(s: Stage) -> None:
    path = f"{s.folder}/hadoop/shop/told"
    s.names[DatasetName("file", path)] = "here"
    s.spark.sql("create table had.shop.told using iceberg as select 1 id")
    s.drain()
    read = s.spark.read.format("iceberg").load(f"file://{path}#history").select("snapshot_id")
    read.writeTo(s.out).using("iceberg").create()


@case("""
    past -> out
    id <- past.id
    version: past = trial
""")
def read_a_branch(s: Stage) -> None:
    past = s.table("past__branch")
    s.sql(f"create table {past} using iceberg as select id from {{orders}}")
    s.spark.sql(f"alter table {past} create branch trial")
    s.drain()
    s.sql(f"create table {{out}} using iceberg as select id from {past} version as of 'trial'")


@case("""
    past -> out
    id <- past.id
    version: past = audit
""")
def read_a_tag_by_option(s: Stage) -> None:
    past = s.table("past__tag")
    s.sql(f"create table {past} using iceberg as select id from {{orders}}")
    s.spark.sql(f"alter table {past} create tag audit")
    s.drain()
    read = s.spark.read.option("versionAsOf", "audit").table(past)
    read.writeTo(s.out).using("iceberg").create()


@case("""
    orders -> out
    id <- orders.id
    version: out = trial
""")
def write_to_a_branch(s: Stage) -> None:
    s.sql("create table {out} (id bigint) using iceberg")
    s.sql("alter table {out} create branch trial")
    s.drain()
    s.orders.select("id").writeTo(f"{s.out}.branch_trial").append()
