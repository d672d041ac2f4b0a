"""The pipeline's programs run to their end, and what they leave behind."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import fastavro
from confluent_kafka import Consumer, TopicPartition

from headwater.cli.spark import launcher_path
from headwater.lab import process
from headwater.lab.clients import unique
from headwater.lab.services.pipeline_streams import spark_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lab.lab import Lab

sys.path.insert(0, str(Path(__file__).parents[3] / "pipelines"))
import supplier_stats_stream

SECONDS = 240
Totals = dict[tuple[str, str], tuple[Decimal, int]]


class Job(NamedTuple):
    """A program that was started."""

    process: subprocess.Popen[bytes]
    log: Path

    def end(self) -> str:
        """Wait for a good end; returns what it said."""
        try:
            code = self.process.wait(SECONDS)
        finally:
            if self.process.poll() is None:
                self.process.kill()
        said = self.log.read_text(errors="replace")
        assert code == 0, said[-4000:]
        return said


def start(
    lab: Lab,
    program: str,
    *arguments: str,
    folder: Path,
    env: Mapping[str, str | None] | None = None,
    cluster: str = "",
    conf: Mapping[str, object] | None = None,
) -> Job:
    """Start a program that handles what is there; events of lineage go to a file in its folder.

    With `cluster` it goes there by spark-submit and the launcher, as one would do it by hand.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": folder / "events.ndjson",
        **(conf or {}),
    }
    command = spark_job(
        lab.context,
        program,
        *arguments,
        scratch=folder,
        master=cluster or "local[2]",
        conf=tuple(settings.items()),
    )
    own = {
        **command.env,
        "AVAILABLE_NOW": "1",
        "HEADWATER_STATE_DIR": str(folder / "state"),
        "OPENLINEAGE_NAMESPACE": "shop",
        **(env or {}),
    }
    argv = list(command.argv)
    if cluster:
        submit = shlex.split(str(own.pop("PYSPARK_SUBMIT_ARGS")))
        tool = Path(str(own["SPARK_HOME"])) / "bin" / "spark-submit"
        argv = [str(tool), *submit[:-1], str(launcher_path()), *argv[1:]]
    given = {key: value for key, value in own.items() if value is not None}
    log = folder / f"{Path(program).stem}.log"
    with log.open("ab") as out:
        started = subprocess.Popen(
            argv,
            cwd=folder,
            env=process.environment(lab.home.root, "", given),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    return Job(started, log)


def events(folder: Path) -> list[dict[str, Any]]:
    """What a program told of its lineage."""
    return [json.loads(line) for line in (folder / "events.ndjson").read_text().splitlines()]


def records(bootstrap: str, topic: str) -> list[Any]:
    """Every record of a topic, in the order of its partitions."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": unique("reader"),
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    try:
        found = []
        for number in consumer.list_topics(topic, 30).topics[topic].partitions:
            at = TopicPartition(topic, number)
            low, high = consumer.get_watermark_offsets(at, timeout=30)
            consumer.assign([TopicPartition(topic, number, low)])
            while consumer.position([at])[0].offset < high:
                got = consumer.consume(10_000, timeout=1)
                found += [one for one in got if one.error() is None]
                if high == low:
                    break
        return found
    finally:
        consumer.close()


def window_totals(bootstrap: str, topic: str) -> Totals:
    """The topic of window totals as its readers see it: the last record of a key counts."""
    found: Totals = {}
    schema = fastavro.parse_schema(supplier_stats_stream.SCHEMA)
    for record in records(bootstrap, topic):
        value: Any = fastavro.schemaless_reader(io.BytesIO(record.value()[5:]), schema, None)
        key = json.loads(record.key())
        found[key["supplier"], key["window_start"][:16]] = (
            value["total_price"],
            value["count"],
        )
    return found
