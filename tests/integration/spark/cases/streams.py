"""Streams: one lineage for the whole query, readable as soon as it has started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from .case import case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from .stage import Stage

ORDER = "id bigint, price decimal(10,2), city string, ts timestamp"


def decoded(s: Stage, topic: str) -> DataFrame:
    value = F.from_json(F.col("value").cast("string"), ORDER).alias("v")
    return s.stream_topic(topic).select(value).select("v.*")


@case(
    """
    sales -> totals
    city <- sales.city
    total <- sales.price AGGREGATION
    start <- sales.ts TRANSFORMATION
    rows <- sales.ts GROUP_BY, sales.city GROUP_BY
    operation: write_stream
""",
    stream=True,
)
def topic_to_topic(s: Stage) -> StreamingQuery:
    read = decoded(s, s.topic("sales")).withWatermark("ts", "1 minute")
    grouped = read.groupBy(F.window("ts", "1 minute"), "city").agg(F.sum("price").alias("total"))
    value = F.struct("city", "total", F.col("window.start").alias("start"))
    made = grouped.select(F.to_json(value).alias("value"))
    settings = {"kafka.bootstrap.servers": s.kafka.bootstrap, "topic": s.topic("totals")}
    writer = made.writeStream.format("kafka").options(**settings).outputMode("update")
    return writer.trigger(availableNow=True).start()


@case(
    """
    sales -> totals
    total <- sales.price AGGREGATION
    start <- sales.ts TRANSFORMATION
    rows <- sales.ts GROUP_BY
    operation: write_stream
""",
    stream=True,
)
def fields_of_a_record_that_stays_whole(s: Stage) -> StreamingQuery:
    order = F.from_json(F.col("value").cast("string"), ORDER).alias("o")
    read = s.stream_topic(s.topic("sales")).select(order)
    grouped = read.groupBy(F.window("o.ts", "1 minute")).agg(F.sum("o.price").alias("total"))
    value = F.struct("total", F.col("window.start").alias("start"))
    made = grouped.select(F.to_json(value).alias("value"))
    settings = {"kafka.bootstrap.servers": s.kafka.bootstrap, "topic": s.topic("totals")}
    writer = made.writeStream.format("kafka").options(**settings).outputMode("update")
    return writer.trigger(availableNow=True).start()


@case(
    """
    sales -> out
    id <- sales.id
    price <- sales.price TRANSFORMATION
    rows <- sales.city FILTER
""",
    stream=True,
)
def topic_to_table(s: Stage) -> StreamingQuery:
    s.sql("create table {out} (id bigint, price decimal(11,2)) using iceberg")
    made = decoded(s, s.topic("sales")).where("city <> 'x'")
    made = made.select("id", (F.col("price") + 1).cast("decimal(11,2)").alias("price"))
    return made.writeStream.trigger(availableNow=True).toTable(s.out)


@case(
    """
    sales, out -> out
    id <- sales.id
    total <- sales.price, sales.price TRANSFORMATION, out.total TRANSFORMATION
    rows <- out.id JOIN, sales.id JOIN, sales.city FILTER
    operation: merge_into_table
""",
    stream=True,
)
def merge_for_each_batch(s: Stage) -> StreamingQuery:
    s.sql("create table {out} (id bigint, total decimal(10,2)) using iceberg")
    out = s.out

    def upsert(batch: DataFrame, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(f"""merge into {out} t using batch s on t.id = s.id
          when matched then update set total = t.total + s.price
          when not matched then insert (id, total) values (s.id, s.price)""")

    topic = s.topic("sales")
    s.kafka.produce(topic, ['{"id": 1, "price": 2.5, "city": "y"}'])
    read = decoded(s, topic).where("city <> 'x'").select("id", "price")
    return read.writeStream.foreachBatch(upsert).trigger(availableNow=True).start()


@case(
    """
    sales, payments -> files
    id <- sales.id
    paid <- payments.price
    rows <- sales.id JOIN, payments.id JOIN, sales.ts JOIN, payments.ts JOIN
""",
    stream=True,
)
def stream_to_stream_join(s: Stage) -> StreamingQuery:
    left = decoded(s, s.topic("sales")).withWatermark("ts", "1 minute").alias("a")
    right = decoded(s, s.topic("payments")).withWatermark("ts", "1 minute").alias("b")
    joined = left.join(
        right, F.expr("a.id = b.id and b.ts between a.ts and a.ts + interval 1 hour")
    )
    made = joined.select("a.id", F.col("b.price").alias("paid"))
    writer = made.writeStream.format("parquet").option("path", s.path("files"))
    return writer.trigger(availableNow=True).start()


@case(
    """
    sales, customers -> out
    id <- sales.id
    name <- customers.name
    rows <- sales.id JOIN, customers.id JOIN
""",
    stream=True,
)
def stream_to_table_join(s: Stage) -> StreamingQuery:
    s.sql("create table {out} (id bigint, name string) using iceberg")
    read = decoded(s, s.topic("sales")).alias("a")
    joined = read.join(s.customers.alias("c"), F.col("a.id") == F.col("c.id"))
    made = joined.select("a.id", "c.name")
    return made.writeStream.trigger(availableNow=True).toTable(s.out)


@case(
    """
    come -> files
    id <- come.id
""",
    stream=True,
)
def files_to_files(s: Stage) -> StreamingQuery:
    s.orders.select("id").write.parquet(s.path("come"))
    s.drain()
    read = s.spark.readStream.schema("id bigint").parquet(s.path("come"))
    writer = read.writeStream.format("json").option("path", s.path("files"))
    return writer.trigger(availableNow=True).start()


@case(
    """
    orders -> out
    id <- orders.id
    city <- orders.city TRANSFORMATION
""",
    stream=True,
)
def table_to_table(s: Stage) -> StreamingQuery:
    s.sql("create table {out} (id bigint, city string) using iceberg")
    read = s.spark.readStream.table(s.table("orders"))
    made = read.select("id", F.upper("city").alias("city"))
    return made.writeStream.trigger(availableNow=True).toTable(s.out)


@case(
    """
    ->
""",
    stream=True,
)
def rate_to_memory(s: Stage) -> StreamingQuery:
    read = s.spark.readStream.format("rate").load().select("value")
    return read.writeStream.format("memory").queryName("rate_to_memory").start()
