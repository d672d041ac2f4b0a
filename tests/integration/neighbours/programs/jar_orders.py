"""A PySpark job with OpenLineage's jar: the orders of a topic, into an Iceberg table."""

from __future__ import annotations

import os
import sys

import options

topic, table = sys.argv[1:]
spark = options.session("jar_orders", options.arguments(None).parse_args([]), table)
columns = "order_id STRING, supplier STRING, price DECIMAL(10, 2)"
orders = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", os.environ["BOOTSTRAP"])
    .option("subscribe", topic)
    .load()
    .selectExpr(f"from_json(CAST(value AS STRING), '{columns}') AS placed")
    .select("placed.*")
)
spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg")
orders.writeTo(table).append()
spark.stop()
