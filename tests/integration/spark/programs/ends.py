"""A driver that ends in the way it is told, with a streaming query running."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

from tests.integration.spark.programs import shapes

import headwater.spark

how, shape = sys.argv[1], sys.argv[2]
place = shapes.Place(sys.argv[3])
spark = headwater.spark.attach(shapes.session(f"ends {how}"))


def begun(name: str, kind: str = shape) -> Any:
    query = shapes.start(spark, place, kind, name)
    while not query.lastProgress:
        if query.exception() is not None:
            return query
        time.sleep(0.05)
    headwater.spark.flush(20)
    return query


def soon(process: int, number: int) -> None:
    threading.Timer(0.3, os.kill, (process, number)).start()


if how == "inside":
    begun("stopped").stop()
    shapes.start(spark, place, shape, "natural", bounded=True).awaitTermination()
    broken = shapes.start(spark, place, "failing", "broken")
    try:
        broken.awaitTermination()
    except Exception as error:  # noqa: BLE001
        print(type(error).__name__)
    headwater.spark.flush(20)
    sys.exit(0)

query = begun(how)
if how == "raise":
    raise RuntimeError("the driver broke, password=hunter2")
if how == "exit":
    sys.exit(3)
if how == "sigterm":
    soon(os.getpid(), signal.SIGTERM)
elif how == "ctrl_c":
    soon(os.getpid(), signal.SIGINT)
elif how == "killed":
    soon(os.getpid(), signal.SIGKILL)
elif how == "jvm_killed":
    gateway: Any = spark.sparkContext._gateway
    soon(gateway.proc.pid, signal.SIGKILL)
query.awaitTermination()
