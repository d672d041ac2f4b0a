"""A driver that ends in the way it is told, with streaming queries running, one of each shape."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

from tests.integration.spark.programs import shapes

import headwater.spark

how, running = sys.argv[1], sys.argv[2].split(",")
place = shapes.Place(sys.argv[3])
spark = headwater.spark.attach(shapes.session(f"ends {how}"))


def begun(query: Any) -> Any:
    while not query.lastProgress and query.exception() is None:
        time.sleep(0.05)
    return query


def soon(process: int, number: int) -> None:
    threading.Timer(0.3, os.kill, (process, number)).start()


started = [shapes.start(spark, place, shape, shape) for shape in running]
query = [begun(query) for query in started][-1]
headwater.spark.flush(20)
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
