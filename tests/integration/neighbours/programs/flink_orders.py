"""A plain PyFlink job: the dear ones among the orders of a topic, written to another topic."""

from __future__ import annotations

import sys

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

bootstrap, orders, dear, job, server, port = sys.argv[1:]
LISTENER = "io.openlineage.flink.listener.OpenLineageJobStatusChangedListenerFactory"
settings = {
    "execution.job-status-changed-listeners": LISTENER,
    "openlineage.transport.type": "http",
    "openlineage.transport.url": server,
    "openlineage.job.namespace": "flink",
    "openlineage.job.name": job,
    # The end of a run is seen by another listener than its start: both ask here which run it is.
    "openlineage.flink.enableDetachedJobTracking": "true",
    "rest.port": port,
    "rest.bind-port": port,
    "rest.address": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    "parallelism.default": "1",
}
configuration = Configuration()
for key, value in settings.items():
    configuration.set_string(key, value)
streaming = EnvironmentSettings.new_instance().in_streaming_mode()
flink = TableEnvironment.create(streaming.with_configuration(configuration).build())
COLUMNS = "order_id STRING, supplier STRING, price DECIMAL(10, 2)"
for table, topic, more in (
    (
        "orders",
        orders,
        ", 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'",
    ),
    ("dear", dear, ""),
):
    flink.execute_sql(
        f"CREATE TABLE {table} ({COLUMNS}) WITH ('connector' = 'kafka', 'topic' = '{topic}', "
        f"'properties.bootstrap.servers' = '{bootstrap}', 'format' = 'json'{more})"
    )
flink.execute_sql("INSERT INTO dear SELECT * FROM orders WHERE price > 10").wait()
