"""Steps of a table format one after the other, in a session that Headwater is attached to."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.integration.spark.tables.stage import Stage, play

import headwater.spark

word, events, told, *asked = sys.argv[1:]
work = Path.cwd()
module: Any = importlib.import_module(f"tests.integration.spark.tables.{word}")
builder: Any = SparkSession.builder.master("local[2]").appName(word)
for key, value in {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC",
    "spark.driver.extraClassPath": os.environ["JARS"],
    "spark.sql.shuffle.partitions": "1",
    # A table format runs many small queries of its own; to compile each takes longer than it does.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.default.parallelism": "1",
    "spark.sql.warehouse.dir": f"file://{work}/warehouse",
    **module.SETTINGS,
}.items():
    builder = builder.config(key, value)
spark: SparkSession = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
stage = Stage(spark, work, Path(events))
module.fill(stage)
headwater.spark.attach(spark)
steps = [step for step in module.step.all if not asked or step.name in asked]
play(stage, steps, Path(told))
spark.stop()
