"""kill -9 of services with data in them, then `lab up`: the data is still there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import psycopg
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Consumer, TopicPartition

from headwater.lab import process
from headwater.lab.clients import (
    CatalogClient,
    ConnectClient,
    KafkaClient,
    PostgresClient,
    RegistryClient,
    S3Client,
    unique,
)
from headwater.lab.lab import Lab
from headwater.lab.services import DEFAULT
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
ROWS = [{"id": 1, "item": "lamp"}, {"id": 2, "item": "desk"}]
AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]})


class Stock:
    """Something in every service, and how to see that it is still there."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab = lab
        self._use()
        self.topic = self.kafka.topic("kept")
        self.kafka.produce(self.topic, ["one", "two"])
        self.file, self.lines = folder / "lines.txt", 1
        self.file.write_text("line 1\n")
        self.streamed = self.kafka.topic("streamed")
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": self.file,
            "topic": self.streamed,
            "value.converter": STRINGS,
        }
        self.connector = self.connect.create(config)
        self.kafka.consume(self.streamed, 1)
        self.bucket = self.s3.bucket()
        self.s3.client.put_object(Bucket=self.bucket, Key="a/b.txt", Body=b"kept")
        rows = pa.Table.from_pylist(ROWS)
        self.table = f"{self.catalog.namespace()}.orders"
        self.catalog.client.create_table(self.table, schema=rows.schema).append(rows)
        self.database = self.postgres.database()
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute("create table orders as select 7 as id")
        self.subjects: list[str] = []
        self.register()

    def _use(self) -> None:
        self.kafka = KafkaClient(self.lab, "kafka")
        self.connect = ConnectClient(self.lab, "connect")
        self.registry = RegistryClient(self.lab, "registry")
        self.s3 = S3Client(self.lab, "s3")
        self.catalog = CatalogClient(self.lab, "catalog")
        self.postgres = PostgresClient(self.lab, "postgres")

    def register(self) -> None:
        """Register one more subject; ends with the registry's answer."""
        subject = unique("subject")
        url = f"{self.registry.url}/subjects/{subject}/versions"
        answer = httpx.post(url, json={"schema": AVRO}, trust_env=False, timeout=30)
        assert answer.status_code == 200, answer.text
        self.subjects.append(subject)

    def check(self) -> None:
        """Look at everything with clients that are new, as those of a new program are."""
        self._use()
        assert [m.value() for m in self.kafka.consume(self.topic, 2)] == [b"one", b"two"]
        for subject in self.subjects:
            found = httpx.get(
                f"{self.registry.url}/subjects/{subject}/versions/latest", trust_env=False
            ).json()
            assert json.loads(found["schema"]) == json.loads(AVRO)
        body = self.s3.client.get_object(Bucket=self.bucket, Key="a/b.txt")["Body"].read()
        assert body == b"kept"
        assert self.catalog.client.load_table(self.table).scan().to_arrow().to_pylist() == ROWS
        with psycopg.connect(self.database) as connection:
            assert connection.execute("select id from orders").fetchall() == [(7,)]
        self._check_connector()

    def _check_connector(self) -> None:
        """The connector is there, runs, and streams what was added since."""
        told = wait_until(
            lambda: (
                answer.json()
                if (answer := self.connect.http.get(f"/connectors/{self.connector}")).is_success
                else None
            ),
            seconds=120,
            what="the connector's configuration",
        )
        assert told["config"]["topic"] == self.streamed
        self.connect.wait_running(self.connector)
        self.lines += 1
        added = f"line {self.lines}"
        with self.file.open("a") as file:
            file.write(f"{added}\n")
        wait_until(lambda: added in self._streamed(), seconds=120, what=f"{added!r} in Kafka")

    def _streamed(self) -> set[str]:
        """All that is in the connector's topic; a kill may make it send a line again."""
        partition = TopicPartition(self.streamed, 0)
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap, "group.id": "none"})
        count = consumer.get_watermark_offsets(partition, timeout=10)[1]
        consumer.close()
        return {m.value().decode() for m in self.kafka.consume(self.streamed, count)}


def kill(lab: Lab, names: Iterable[str]) -> None:
    running = process.find(lab.home.root)
    for name in names:
        running[name].send_signal(signal.SIGKILL)


def listening(lab: Lab) -> set[tuple[str, str]]:
    """Which service listens on which address, those of its children too."""
    found = set()
    for name, leader in process.find(lab.home.root).items():
        for member in process.family(leader):
            try:
                sockets = member.net_connections("inet")
            except psutil.Error:
                continue
            found |= {(name, s.laddr.ip) for s in sockets if s.status == psutil.CONN_LISTEN}
    return found


def is_loopback(address: str) -> bool:
    return address.removeprefix("::ffff:").startswith("127.") or address == "::1"


@pytest.fixture(scope="module")
def stock(killed_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Stock:
    return Stock(killed_lab, tmp_path_factory.mktemp("files"))


@pytest.mark.usefixtures("kafka", "connect", "registry", "s3", "catalog", "postgres")
def test_everything_listens_on_loopback_and_nothing_tells_a_secret(lab: Lab) -> None:
    found = listening(lab)
    assert {name for name, _ in found} >= set(DEFAULT)
    assert [pair for pair in found if not is_loopback(pair[1])] == []
    secrets = [lab.home.settings.s3_secret_key, lab.home.settings.postgres_password]
    for service, leader in process.find(lab.home.root).items():
        for member in process.family(leader):
            seen = member.cmdline()
            if service in DEFAULT:  # Spark's services read the keys of S3 from their environment
                seen += member.environ().values()
            assert not any(secret in "\0".join(seen) for secret in secrets), member
    for log in lab.home.logs.iterdir():
        text = log.read_text(errors="replace")
        assert not any(secret in text for secret in secrets), log


@pytest.mark.full
def test_all_killed_at_once_and_all_is_still_there(killed_lab: Lab, stock: Stock) -> None:
    stock.register()
    kill(killed_lab, DEFAULT)  # within a moment of the registry's answer
    rows = killed_lab.up()
    assert {row.state for row in rows} == {"running"}
    stock.check()


@pytest.mark.full
@pytest.mark.parametrize("service", DEFAULT)
def test_each_killed_in_turn(killed_lab: Lab, stock: Stock, service: str) -> None:
    before = {name: leader.pid for name, leader in process.find(killed_lab.home.root).items()}
    kill(killed_lab, [service])
    killed_lab.up()
    after = {name: leader.pid for name, leader in process.find(killed_lab.home.root).items()}
    assert {name for name in after if after[name] != before[name]} == {service}
    stock.check()


@pytest.mark.full
def test_the_registry_has_written_what_it_has_answered(killed_lab: Lab, stock: Stock) -> None:
    for _ in range(6):
        stock.register()
        kill(killed_lab, ["registry"])
        killed_lab.up(["registry"])
    stock.check()


JOB = """
import sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.appName("lab-check")
    .config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", sys.argv[1])
    .config("spark.hadoop.hive.metastore.uris", sys.argv[2])
    .config("spark.sql.warehouse.dir", sys.argv[3])
    .config("spark.executor.memory", "512m")
    .enableHiveSupport()
    .getOrCreate()
)
spark.sql("create database if not exists lab_check")
spark.range(100).write.mode("overwrite").saveAsTable("lab_check.numbers")
print("SUM", spark.sql("select sum(id) from lab_check.numbers").first()[0])
spark.stop()
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Hive and Spark in a lab of their own."""
    lab = Lab(tmp_path_factory.mktemp("a cluster") / "lab")
    lab.up(["hive", "spark"])
    yield lab
    lab.reset()


def run_job(lab: Lab, folder: Path) -> tuple[str, set[tuple[str, str]]]:
    """Run a job on the cluster; returns what it printed and who listened where meanwhile."""
    (folder / "job.py").write_text(JOB)
    env = lab.env()
    arguments = [env["SPARK_EVENT_LOG_DIR"], env["HMS_ENDPOINT"], env["HIVE_WAREHOUSE"]]
    submit = [sys.executable, "-m", "pyspark.find_spark_home"]
    spark_home = subprocess.run(submit, capture_output=True, text=True, check=True).stdout.strip()
    job = subprocess.Popen(
        [f"{spark_home}/bin/spark-submit", "--master", env["SPARK_MASTER"], "job.py", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=(folder / "job.log").open("w"),
        text=True,
        env={**os.environ, **env, "PYSPARK_PYTHON": sys.executable},
    )
    seen: set[tuple[str, str]] = set()

    def ended() -> bool:
        seen.update(listening(lab))
        return job.poll() is not None

    wait_until(ended, seconds=600, what="the job's end", interval=0.5)
    assert job.returncode == 0, (folder / "job.log").read_text()[-4000:]
    assert job.stdout is not None
    return job.stdout.read(), seen


def history(lab: Lab) -> list[dict[str, Any]]:
    url = f"{lab.env()['SPARK_HISTORY_URL']}/api/v1/applications"
    found: list[dict[str, Any]] = httpx.get(url, trust_env=False).json()
    return [app for app in found if app["attempts"][0]["completed"]]


@pytest.mark.full
def test_hive_and_spark_serve_a_real_job(cluster: Lab, tmp_path: Path) -> None:
    said, seen = run_job(cluster, tmp_path)
    assert "SUM 4950" in said
    assert {name for name, _ in seen} >= {"hive", "spark", "spark-worker-1", "spark-history"}
    assert [pair for pair in seen if not is_loopback(pair[1])] == []
    done = wait_until(lambda: history(cluster), seconds=120, what="the application's history")
    assert [app["name"] for app in done] == ["lab-check"]


@pytest.mark.full
def test_the_cluster_comes_back_after_kills(cluster: Lab, tmp_path: Path) -> None:
    known = len(history(cluster))
    run_job(cluster, tmp_path)
    # The history lists a job a while after its end: earlier ones alone are not what comes back.
    wait_until(lambda: len(history(cluster)) == known + 1, seconds=120, what="the history")
    kill(cluster, process.find(cluster.home.root))
    cluster.up(["hive", "spark"])
    wait_until(lambda: len(history(cluster)) == known + 1, seconds=120, what="the history again")
    said, _ = run_job(cluster, tmp_path)
    assert "SUM 4950" in said
