"""Kafka records: their columns are the fields of value and key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro, to_avro

from .case import case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .stage import Stage

ORDER = "id bigint, price decimal(10,2), address struct<city: string>, key string"
AVRO = """{"type": "record", "name": "order", "fields": [
  {"name": "id", "type": "long"}, {"name": "price", "type": ["null", "double"]},
  {"name": "address", "type": {"type": "record", "name": "place", "fields": [
    {"name": "city", "type": "string"}]}}]}"""


def send(s: Stage, frame: DataFrame, topic: str) -> None:
    settings = {"kafka.bootstrap.servers": s.kafka.bootstrap, "topic": topic}
    frame.write.format("kafka").options(**settings).save()


@case("""
    orders -> sales
    id <- orders.id
    place.city <- orders.city
    value.key <- orders.customer
    key <- orders.id TRANSFORMATION
    operation: save_into_data_source_command
""")
def write_json(s: Stage) -> None:
    value = F.struct("id", F.struct("city").alias("place"), F.col("customer").alias("key"))
    key = F.col("id").cast("string").alias("key")
    send(s, s.orders.select(F.to_json(value).alias("value"), key), s.topic("sales"))


@case("""
    orders -> sales
    id <- orders.id
    price <- orders.price TRANSFORMATION
    key.customer <- orders.customer
""")
def write_avro_with_a_prefix(s: Stage) -> None:
    value = F.concat(
        F.unhex(F.lit("0000000001")), to_avro(F.struct("id", (F.col("price") * 2).alias("price")))
    )
    key = to_avro(F.struct("customer"))
    send(s, s.orders.select(value.alias("value"), key.alias("key")), s.topic("sales"))


@case("""
    orders -> sales
    value <- orders.city
    key <- orders.customer TRANSFORMATION
""")
def write_plain_text(s: Stage) -> None:
    key = F.col("customer").cast("string").alias("key")
    send(s, s.orders.select(F.col("city").alias("value"), key), s.topic("sales"))


@case("""
    sales -> out
    id <- sales.id
    price <- sales.price
    city <- sales.address.city
    mine <- sales.value.key
    number <- sales.key.number
    at <-
""")
def read_json(s: Stage) -> None:
    value = F.from_json(F.col("value").cast("string"), ORDER).alias("v")
    key = F.from_json(F.col("key").cast("string"), "number int").alias("k")
    made = s.from_topic(s.topic("sales")).select(value, key, F.col("timestamp").alias("at"))
    made = made.select(
        "v.id", "v.price", "v.address.city", F.col("v.key").alias("mine"), "k.number", "at"
    )
    made.writeTo(s.out).using("iceberg").create()


@case("""
    sales -> out
    id <- sales.id
    price <- sales.price TRANSFORMATION
    city <- sales.address.city
    rows <- sales.price FILTER
""")
def read_avro_behind_a_prefix(s: Stage) -> None:
    order = from_avro(F.expr("substring(value, 6)"), AVRO, {"mode": "PERMISSIVE"}).alias("o")
    made = s.from_topic(s.topic("sales")).select(order).where("o.price > 1")
    made = made.select("o.id", (F.col("o.price") * 2).alias("price"), "o.address.city")
    made.writeTo(s.out).using("iceberg").create()


@case("""
    sales -> out
    price <- sales.price
    city <- sales.address.city
    id <- sales.id
    raw <- sales.value
""")
def read_json_by_path(s: Stage) -> None:
    made = s.from_topic(s.topic("sales")).selectExpr(
        "get_json_object(cast(value as string), '$.price') price",
        "get_json_object(cast(value as string), '$.address.city') city",
        "json_tuple(cast(value as string), 'id') as id",
        "cast(value as string) raw",
    )
    made.writeTo(s.out).using("iceberg").create()


@case("""
    sales -> copies
    id <- sales.id
    address.city <- sales.address.city
    key <- sales.key
""")
def from_topic_to_topic(s: Stage) -> None:
    value = F.from_json(F.col("value").cast("string"), "id bigint, address struct<city: string>")
    made = s.from_topic(s.topic("sales")).select(F.to_json(value).alias("value"), "key")
    send(s, made, s.topic("copies"))


@case("""
    sales -> copies
    value <- sales.value
    key <- sales.key
""")
def bytes_from_topic_to_topic(s: Stage) -> None:
    send(s, s.from_topic(s.topic("sales")).select("key", "value"), s.topic("copies"))


@case("""
    sales, returns -> out
    id <- sales.id, returns.id
""")
def several_topics_and_brokers(s: Stage) -> None:
    port = s.kafka.bootstrap.rpartition(":")[2]
    topics = f"{s.topic('sales')},{s.topic('returns')}"
    servers = f"PLAINTEXT://127.0.0.1:{port},localhost:{port}"
    read = s.from_topic(topics, **{"kafka.bootstrap.servers": servers})
    made = read.select(F.from_json(F.col("value").cast("string"), "id bigint").alias("v"))
    made.select("v.id").writeTo(s.out).using("iceberg").create()


@case("""
    east, west -> out
    raw <- east.value, west.value
""")
def topics_by_pattern(s: Stage) -> None:
    from headwater.lineage.naming import DatasetName

    for name in ("east", "west"):
        topic = f"region_{s.namespace}_{name}"
        s.names[DatasetName(f"kafka://{s.kafka.bootstrap}", topic)] = name
        s.kafka.produce(topic, [b"x"])
    reader = s.spark.read.format("kafka").option("kafka.bootstrap.servers", s.kafka.bootstrap)
    read = reader.option("subscribePattern", f"region_{s.namespace}_.*").load()
    made = read.select(F.col("value").cast("string").alias("raw"))
    made.writeTo(s.out).using("iceberg").create()


@case("""
    sales -> out
    raw <- sales.value
""")
def assigned_partitions(s: Stage) -> None:
    reader = s.spark.read.format("kafka").option("kafka.bootstrap.servers", s.kafka.bootstrap)
    read = reader.option("assign", f'{{"{s.topic("sales")}": [0]}}').load()
    read.select(F.col("value").alias("raw")).writeTo(s.out).using("iceberg").create()


@case("""
    orders -> cheap, dear
    value <- orders.city
""")
def topic_chosen_by_a_column(s: Stage) -> None:
    cheap, dear = s.topic("cheap"), s.topic("dear")
    topic = F.when(F.col("price") > 1, F.lit(dear)).otherwise(F.lit(cheap)).alias("topic")
    made = s.orders.select(F.col("city").alias("value"), topic)
    made.write.format("kafka").option("kafka.bootstrap.servers", s.kafka.bootstrap).save()
