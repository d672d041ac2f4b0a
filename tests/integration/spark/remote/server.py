"""A real Spark Connect server in a process of its own, on the loopback address."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from headwater.lab.files.jars import connect_jars

if TYPE_CHECKING:
    from collections.abc import Mapping

MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
SECONDS = 300.0


class Server:
    """A server that lives until it is stopped; `address` is what a client connects to."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        port = _free_port()
        given = {
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m",
            "spark.ui.enabled": "false",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.shuffle.partitions": "1",
            "spark.default.parallelism": "1",
            "spark.sql.scripting.enabled": "true",  # off by default before Spark 4.1
            **settings,
        }
        jars = [
            *filter(None, [given.get("spark.jars")]),
            *map(str, connect_jars(pyspark.__version__)),
        ]
        given["spark.jars"] = ",".join(jars)
        # A file, since a command line shows the keys of the stores to everyone.
        conf = folder / "spark.conf"
        conf.touch(mode=0o600)
        conf.write_text("".join(f"{key} {value}\n" for key, value in given.items()))
        self.log = folder / "server.log"
        home = Path(pyspark.__file__).parent
        command = [home / "bin" / "spark-submit", "--properties-file", conf, "--class", MAIN]
        known = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
        env = {**known, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*map(str, command), "spark-internal"],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=folder,
            )
        self.address = f"sc://127.0.0.1:{port}"
        self._wait(port)

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            with socket.socket() as probe:
                probe.settimeout(1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.1)
        raise TimeoutError(self.log.read_text()[-3000:])

    def kill(self) -> None:
        """Take it away at once."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> None:
        """Let it end in order, within a bound."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
