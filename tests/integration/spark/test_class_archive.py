"""The archive of Spark's classes that the lab's drivers load is one that their JVM takes."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from headwater.lab.files.class_archive import archive_options, create_archive
from headwater.lab.files.ivy import pyspark_jars

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.full
@pytest.mark.timeout(400)
def test_a_driver_takes_sparks_classes_from_the_archive(tmp_path: Path) -> None:
    create_archive()
    loaded = tmp_path / "loaded.txt"
    options = [*archive_options(), f"-Xlog:class+load:file={loaded}"]
    shown = subprocess.run(
        [str(pyspark_jars().parent / "bin" / "spark-submit"), "--version"],
        env={**os.environ, "SPARK_SUBMIT_OPTS": " ".join(options)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cds" not in shown.stdout + shown.stderr
    lines = loaded.read_text().splitlines()
    (main,) = [line for line in lines if "org.apache.spark.deploy.SparkSubmit source" in line]
    assert "shared objects file (top)" in main
