"""The three programs on a Spark standalone cluster: the same lineage as on one machine."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import httpx
import pytest

from headwater.lab.clients import unique
from headwater.lab.services import SERVICES
from headwater.lab.waiting import wait_until
from tests.integration.demo.tutorial import Shell
from tests.integration.docs.reader import lines
from tests.integration.pipelines import jobs, wire
from tests.integration.pipelines.wire import order

if TYPE_CHECKING:
    from headwater.lab.clients import CatalogClient, KafkaClient, RegistryClient, SparkClient
    from headwater.lab.lab import Lab

ROOT = Path(__file__).parents[3]
STANDALONE = re.compile(r'JARS=|.* --home /tmp/shop|spark-submit --master "\$SPARK_MASTER"')
"""The commands of docs/deploy.md for the cluster of the lab."""
SMALL = {"spark.cores.max": 2, "spark.executor.cores": 1, "spark.executor.memory": "512m"}
Told = dict[str, dict[str, Any]]


def told(folder: Path) -> Told:
    """By job, what its last event says of datasets: place, schema and the columns' sources."""
    found: Told = {}
    for event in jobs.events(folder):
        if event["eventType"] != "COMPLETE" or not event.get("outputs"):
            continue
        found[event["job"]["name"]] = {
            f"{side} {one['namespace']} {one['name']}": {
                facet: one["facets"].get(facet) for facet in ("schema", "symlinks", "columnLineage")
            }
            for side in ("inputs", "outputs")
            for one in event[side]
        }
    return found


class Runs:
    """The pipeline's three programs, run one way or the other over the same data."""

    def __init__(self, lab: Lab, topic: str, totals: str, shop: str) -> None:
        self.lab = lab
        self.table, self.summary = f"{shop}.orders", f"{shop}.supplier_stats"
        self.stream = ["--input-topic", topic]
        self.totals = totals

    def all(self, folder: Path, cluster: str = "", conf: dict[str, Any] | None = None) -> Told:
        def run(program: str, *arguments: str) -> jobs.Job:
            given = list(arguments)
            if "--input-topic" in given:
                given += ["--checkpoint", (folder / program / "checkpoint").as_uri()]
            return jobs.start(
                self.lab, program, *given, folder=folder / program, cluster=cluster, conf=conf
            )

        stats = run("supplier_stats_stream.py", *self.stream, "--output-topic", self.totals)
        run("iceberg_ingestion.py", *self.stream, "--table", self.table).end()
        stats.end()
        run("supplier_stats.py", "--table", self.table, "--output-table", self.summary).end()
        return {name: what for path in folder.iterdir() for name, what in told(path).items()}


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_cluster_tells_the_same_lineage_and_no_key(
    lab: Lab,
    kafka: KafkaClient,
    registry: RegistryClient,
    catalog: CatalogClient,
    spark_cluster: SparkClient,
    tmp_path: Path,
) -> None:
    topic, totals, shop = kafka.topic("orders", 2), kafka.topic("totals"), unique("shop")
    schema = wire.schema()
    number = wire.register(registry.url, topic, schema)
    given = [order(f"o-{n}", f"{n + 1}.50", f"12:{n % 60:02d}:00") for n in range(200)]
    kafka.produce(topic, [wire.encode(schema, number, one) for one in given])
    runs = Runs(lab, topic, totals, shop)
    history = SERVICES["spark-history"].env(lab.context)
    # As plain text, so that a key in it would be seen below.
    logs = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": history["SPARK_EVENT_LOG_DIR"],
    }

    cluster = runs.all(tmp_path / "cluster", spark_cluster.master, {**SMALL, **logs})
    assert len(catalog.client.load_table(runs.table).scan().to_arrow()) == 200
    assert sum(count for _, count in jobs.window_totals(kafka.bootstrap, totals).values()) == 200
    (summary,) = {row["hour"].hour for row in rows(catalog, runs.summary)}
    assert summary == 12

    local = runs.all(tmp_path / "local")
    assert len(catalog.client.load_table(runs.table).scan().to_arrow()) == 200
    names = {"supplier-stats", "iceberg-ingestion"} | {n for n in local if "overwrite" in n}
    assert len(names) == 3
    for name in names:
        assert cluster[name] == local[name], name
        (written,) = [d for key, d in local[name].items() if key.startswith("outputs")]
        assert written["columnLineage"]["fields"], name

    seen = wait_until(
        lambda: (
            found
            if len(found := finished(history["SPARK_HISTORY_URL"], spark_cluster.master)) >= 3
            else None
        ),
        seconds=120,
        what="the three applications in the history server",
    )
    assert {"iceberg-ingestion-stream", "supplier-stats-stream", "supplier_stats"} <= seen
    secret = lab.home.settings.s3_secret_key
    folder = Path(urlparse(history["SPARK_EVENT_LOG_DIR"]).path)
    work = [lab.home.data(f"spark-worker-{n}") / "work" for n in (1, 2)]
    texts = [path for part in (folder, tmp_path, *work) for path in part.rglob("*")]
    for path in texts:
        if path.is_file() and path.suffix != ".jar":
            assert secret.encode() not in path.read_bytes(), path


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_commands_of_the_page(
    lab: Lab,
    kafka: KafkaClient,
    registry: RegistryClient,
    catalog: CatalogClient,
    spark_cluster: SparkClient,
    tmp_path: Path,
) -> None:
    topic, table = kafka.topic("orders"), f"{unique('shop')}.orders"
    schema = wire.schema()
    number = wire.register(registry.url, topic, schema)
    kafka.produce(topic, [wire.encode(schema, number, order("o-1", "1.50", "12:00:00"))])
    here = {
        "file:///tmp/shop": tmp_path.as_uri(),
        "/tmp/shop": str(lab.home.root),
        "pipelines/": f"{ROOT}/pipelines/",
        "spark-submit ": "env -u OPENLINEAGE_URL spark-submit ",
        " --once": f" --input-topic {topic} --table {table} --once",
    }
    text = (ROOT / "docs" / "deploy.md").read_text()
    asked = [line.command for line in lines(text) if STANDALONE.match(line.command)]
    assert len(asked) == 4
    shell = Shell(tmp_path)
    events = tmp_path / "events.ndjson"
    shell.run(
        f"export OPENLINEAGE__TRANSPORT__TYPE=file OPENLINEAGE__TRANSPORT__LOG_FILE_PATH={events}"
        f" OPENLINEAGE__TRANSPORT__APPEND=true PYSPARK_PYTHON={sys.executable}"
    )
    try:
        for line in asked:
            command = line
            for shown, real in here.items():
                command = command.replace(shown, real)
            code, said = shell.run(command)
            assert code == 0, said[-3000:]
    finally:
        shell.close()
    assert len(catalog.client.load_table(table).scan().to_arrow()) == 1
    assert "iceberg-ingestion-2" in {one["job"]["name"] for one in jobs.events(tmp_path)}


def rows(catalog: CatalogClient, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = catalog.client.load_table(table).scan().to_arrow().to_pylist()
    return found


def finished(history: str, master: str) -> set[str]:
    """The names of applications that ran on the cluster and are over."""
    listed = httpx.get(f"{history}/api/v1/applications", trust_env=False, timeout=30).json()
    found = set()
    for one in listed:
        about = httpx.get(
            f"{history}/api/v1/applications/{one['id']}/environment", trust_env=False, timeout=30
        )
        if about.status_code == 200 and master in json.dumps(about.json()):
            found.add(one["name"])
    return found
