"""A query over every topic of a pattern, until it is told to stop."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.integration.spark.programs import shapes

import headwater.spark

bootstrap, pattern, out, stop, group = sys.argv[1:6]
spark = headwater.spark.attach(shapes.session("beats"))
# So Spark's driver joins the group; by default it asks with an admin client, which joins none.
spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
query = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("subscribePattern", pattern)
    .option("kafka.group.id", group)
    .option("kafka.metadata.max.age.ms", "1000")  # by which a consumer finds a new topic
    .option("startingOffsets", "earliest")
    .load()
    .select("key", "value")
    .writeStream.queryName("beating")
    .format("kafka")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("topic", out)
    .option("checkpointLocation", str(Path.cwd() / "checkpoint"))
    .trigger(processingTime="200 milliseconds")
    .start()
)
while not Path(stop).exists():
    time.sleep(0.1)
query.stop()
