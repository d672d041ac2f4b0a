"""What happens while the worker cannot keep up: it is held back, as a slow JVM or a loaded machine does."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter
from tests.integration.spark.programs import shapes

import headwater.spark
from headwater.lab.waiting import wait_until
from headwater.spark.batch import tracker
from headwater.spark.driver import classic
from headwater.spark.driver.attach import _Attached

work = Path.cwd()
writer: Any = DataStreamWriter
plain = writer.start


def late(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A start that returns to Python only when its query is over."""
    query = plain(self, *args, **kwargs)
    wait_until(lambda: not query.isActive, seconds=120, what="the query to end")
    return query


writer.start = late
spark: Any = shapes.session("behind")
spark.range(3).write.parquet(str(work / "rows"))
headwater.spark.attach(spark)
application: Any = _Attached.classic
assert application is not None


def held() -> threading.Event:
    gate = threading.Event()
    application.worker.post(gate.wait)
    return gate


gate = held()
read = spark.readStream.schema("id bigint").parquet(str(work / "rows"))
brief = read.writeStream.queryName("brief").format("parquet").option("path", str(work / "copied"))
brief = brief.option("checkpointLocation", str(work / "state-of-brief"))
brief.trigger(availableNow=True).start()
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(30_000)
gate.set()
assert headwater.spark.flush(60)

tracker.MAX_OPEN = 5
gate = held()
for _ in range(8):
    assert spark.read.parquet(str(work / "rows")).count() == 3
print("open:", len(application.actions.open))
gate.set()
assert headwater.spark.flush(60)

tracker.MAX_POLLED = 10
looked: list[int] = []
bridge: Any = application.bridge
asked = bridge.execution


def noted(number: int) -> Any:
    looked.append(number)
    return asked(number)


bridge.execution = noted
for _ in range(60):
    # What the JVM does by itself, as a query's batches: nobody looks for it.
    spark._jsparkSession.range(3).count()
assert spark.read.parquet(str(work / "rows")).count() == 3
assert headwater.spark.flush(60)
print("looked:", "little" if len(looked) < 40 else looked)

classic.MAX_SESSIONS = 3
jvm = spark.sparkContext._jvm
other = spark.newSession()
weak = jvm.java.lang.ref.WeakReference(other._jsparkSession)
assert weak.get() is not None
del other
for _ in range(5):
    late_one = spark.newSession()


def forgotten() -> bool:
    gc.collect()
    jvm.java.lang.System.gc()
    return weak.get() is None


wait_until(forgotten, seconds=120, what="a session to be forgotten with its program's")
assert late_one.read.parquet(str(work / "rows")).where("id > 0").count() == 2
assert headwater.spark.flush(60)
