"""Spark's classes, read and verified once: a class data sharing (CDS) archive for the lab's drivers.

A driver spends half of its start on loading some 15,000 classes. With the archive a short program takes
10 s of CPU instead of 18 (Spark 4.1, Java 17). It belongs to one Java and one PySpark, lies in the Python
environment that PySpark is installed in, and takes 190 MB. `python -m headwater.lab.files.class_archive`
writes it; `scripts/lanes.py` does so before the first tests of Spark. Without it everything runs as well.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from headwater.lab.files.ivy import pyspark_jars
from headwater.lab.java import find_java
from headwater.lab.ports import LOOPBACK

# What most programs load: SQL, a shuffle, files and a streaming query.
TRAINING = """
import sys
from pyspark.sql import SparkSession

folder = sys.argv[1]
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.local.dir": folder}
builder = SparkSession.builder.master("local[1]").config(map=settings)
spark = builder.config("spark.sql.warehouse.dir", folder + "/warehouse").getOrCreate()
numbers = spark.range(10).selectExpr("id", "cast(id as string) as name", "struct(id) as nested")
numbers.write.parquet(folder + "/numbers")
numbers.createOrReplaceTempView("numbers")
spark.sql("create table copied using parquet as select name, count(*) as n from numbers group by name")
spark.sql("select * from copied join numbers using (name) order by id").collect()
query = spark.readStream.schema(numbers.schema).parquet(folder + "/numbers").groupBy("name").count()
sink = query.writeStream.format("memory").queryName("counted").outputMode("complete")
sink.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""
SECONDS = 300


def archive_path() -> Path:
    """Where the archive for the Java and the PySpark in use is kept, whether or not it is there."""
    java = Path(os.path.realpath(find_java().executable))
    jars = pyspark_jars()
    key = f"{java} {java.stat().st_mtime_ns} {jars} {jars.stat().st_mtime_ns}"
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return Path(sys.prefix, "share", "headwater", f"spark-{name}.jsa")


def archive_options() -> list[str]:
    """The JVM options of a driver that uses the archive; none without one."""
    path = archive_path()
    if not path.exists():
        return []
    # A JVM that cannot use it warns on its standard output and starts without it.
    return [f"-XX:SharedArchiveFile={path}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def create_archive() -> Path:
    """Write the archive by running a short program, unless it is there already."""
    path = archive_path()
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = Path(folder, "spark.jsa")
        options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={written}"
        program = Path(folder, "training.py")
        program.write_text(TRAINING)
        # The JVM writes the archive as its last act; spark-submit is that JVM, `python` would not wait.
        submit = pyspark_jars().parent / "bin" / "spark-submit"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SPARK_")},
            "SPARK_SUBMIT_OPTS": options,
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
        }
        subprocess.run(
            [str(submit), str(program), folder],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=True,
        )
        written.replace(path)  # whole or not at all: another driver may look for it now
    return path


if __name__ == "__main__":
    create_archive()
