"""Flink and a Spark with OpenLineage's jar, on the topic and the tables that our jobs read."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from headwater.lab import ports
from headwater.lab.clients import unique
from headwater.lab.files.jars import extra_jars, peer_jar
from headwater.lab.java import find_java
from headwater.lab.services.pipeline_streams import programs, spark_job
from headwater.lab.services.s3 import warehouse

from .playing import HERE, Graph, environment, run, settled, variables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient
    from headwater.lab.lab import Lab

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]

ORDERS = [
    {"order_id": f"o{number}", "supplier": "acme", "price": f"{number}.00"} for number in range(20)
]
JAR = [
    ("spark.extraListeners", "io.openlineage.spark.agent.OpenLineageSparkListener"),
    ("spark.openlineage.transport.type", "http"),
    ("spark.openlineage.namespace", "jar"),
]


class Engines:
    """Starts each engine on the lab, reporting to one server."""

    def __init__(self, lab: Lab, server: str, folder: Path) -> None:
        self.lab, self.server, self.folder = lab, server, folder
        self.told = HERE / "programs"

    def spark(
        self,
        program: str,
        *arguments: str,
        conf: Sequence[tuple[str, object]] = (),
        jars: Sequence[Path] = (),
    ) -> str:
        path, scratch = self.told / f"{program}.py", self.folder / program
        job = spark_job(self.lab.context, str(path), *arguments, scratch=scratch, conf=conf)
        # The pipeline's `options` make a session with the lab's catalog.
        mine = {"PYTHONPATH": str(programs()), "HEADWATER_STATE_DIR": str(self.folder / "state")}
        env = {**job.env, **variables(self.server, "ours", **mine)}
        # One class loader for all jars: OpenLineage's does not see Iceberg's classes from another.
        env["PYSPARK_SUBMIT_ARGS"] = env["PYSPARK_SUBMIT_ARGS"].replace(
            "--jars ", f"--jars {','.join(map(str, [*jars, '']))}"
        )
        return run(*job.argv, cwd=self.folder, env=env)

    def flink(self, program: str, *arguments: str) -> str:
        found = environment("flink")
        (lib,) = found.parent.glob("lib/python*/site-packages/pyflink/lib")
        for jar in extra_jars("flink"):
            with suppress(FileExistsError):
                (lib / jar.name).symlink_to(jar)
        java = str(find_java().executable.resolve().parents[1])
        env = variables(self.server, "flink", JAVA_HOME=java, JVM_ARGS="-XX:+UseSerialGC")
        more = [*arguments, self.server, str(ports.free())]
        path = self.told / f"{program}.py"
        return run(found / "python", path, *more, cwd=self.folder, env=env)


@pytest.fixture
def engines(lab: Lab, server: str, tmp_path: Path) -> Engines:
    return Engines(lab, server, tmp_path)


def test_they_meet_our_jobs_under_one_name_and_their_runs_end(
    engines: Engines, kafka: KafkaClient, catalog: CatalogClient, server: str
) -> None:
    del catalog  # only has to be up
    bought, dear, others, cheap = map(kafka.topic, ("orders", "dear", "others", "cheap"))
    kafka.produce(bought, [json.dumps(order) for order in ORDERS])
    database = f"lab.{unique('neighbours')}"
    table, counted = f"{database}.orders", f"{database}.counted"

    conf = [*JAR, ("spark.openlineage.transport.url", server)]
    engines.spark("jar_orders", bought, table, conf=conf, jars=[peer_jar()])
    engines.flink("flink_orders", kafka.bootstrap, bought, dear, "dear_orders")
    # Another session of Flink, which calls other topics by the same names of tables.
    engines.flink("flink_orders", kafka.bootstrap, others, cheap, "other_orders")
    engines.spark("our_orders", bought, dear, table, counted)
    settled(engines.folder / "state")

    graph, broker = Graph(server), f"kafka://{kafka.bootstrap}"
    folder = database.removeprefix("lab.")
    appended = f"jar_orders.append_data.lab_{folder}_orders"
    ours = f"our_orders.create_table_as_select.{folder}_counted"
    assert graph.datasets(broker) == {bought, dear, others, cheap}
    assert graph.readers(broker, bought) == {appended, "dear_orders", ours}
    assert graph.writers(broker, dear) == {"dear_orders"}
    assert graph.readers(broker, dear) == {ours}
    assert graph.readers(broker, others) == {"other_orders"}
    assert [graph.dataset(broker, topic)["moves"] for topic in (bought, others)] == [[], []]
    assert graph.datasets(warehouse(engines.lab.context)) == {
        f"{folder}/orders",
        f"{folder}/counted",
    }
    filled = warehouse(engines.lab.context), f"{folder}/orders"
    assert appended in graph.writers(*filled)
    assert graph.readers(*filled) == {ours}
    assert graph.histories(*filled) == [["order_id", "supplier", "price"]]

    for namespace in ("jar", "flink", "ours"):
        for job, states in graph.states(namespace).items():
            assert states == ["COMPLETED"], (namespace, job)
    diagnosis = graph.doctor()
    assert diagnosis["pairs"] == []
    # The jar reports a step of Spark's own, of which it knows no dataset.
    assert [(one["kind"], one["named"]["name"]) for one in diagnosis["findings"]] == [
        ("no outputs", "jar_orders.deserialize_to_object")
    ]


def test_a_jar_that_does_not_see_iceberg_is_found_by_doctor(
    engines: Engines, kafka: KafkaClient, catalog: CatalogClient, server: str
) -> None:
    """On a class path of its own it reports no table that is written, and nobody meets the job there."""
    del catalog  # only has to be up
    bought, table = kafka.topic("orders"), f"{unique('alone')}.orders"
    kafka.produce(bought, [json.dumps(order) for order in ORDERS])
    conf = [
        *JAR,
        ("spark.openlineage.transport.url", server),
        ("spark.driver.extraClassPath", str(peer_jar())),
    ]
    engines.spark("jar_orders", bought, f"lab.{table}", conf=conf)
    found = {
        one["named"]["name"]: one["text"]
        for one in Graph(server).doctor()["findings"]
        if one["kind"] == "no outputs"
    }
    appended = f"jar_orders.append_data.lab_{table.replace('.', '_')}"
    assert found[appended] == "it reads, and nobody knows what it writes"
