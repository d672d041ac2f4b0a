"""Every batch case once alone, then again and again in four threads without a flush between."""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.integration.spark.cases import CASES, Case
from tests.integration.spark.cases.stage import Stage
from tests.integration.spark.cases.truth import read, writers
from tests.integration.spark.remote.judged import told

import headwater.spark
from headwater.lab.clients import CatalogClient, KafkaClient, PostgresClient, S3Client
from headwater.lab.lab import Lab
from headwater.lineage.naming import DatasetName

if TYPE_CHECKING:
    from collections.abc import Mapping

THREADS = 4
home, rounds = Path(sys.argv[1]), int(sys.argv[2])
work = Path.cwd()
events = Path(os.environ["OPENLINEAGE__TRANSPORT__LOG_FILE_PATH"])
batches = [case for case in CASES if not case.stream]


class Player(Stage):
    """A stage that can be played on again; nobody waits on it for what Spark calls back."""

    def __init__(self, *given: Any, **more: Any) -> None:
        self.topics: set[str] = set()
        self.tables: set[str] = set()
        super().__init__(*given, **more)

    def _listen(self) -> None:
        """What is emitted is judged, not what is called back."""

    def drain(self) -> list[tuple[str, Any]]:
        return []

    def topic(self, name: str) -> str:
        """A topic that stays the same whenever the case is played, as a program's would."""
        from confluent_kafka.cimpl import NewTopic

        topic = f"{name}_{self.case}_{self.namespace}"
        if topic not in self.topics:
            for future in self.kafka.admin.create_topics([NewTopic(topic, 1, 1)]).values():
                future.result(60)
            self.topics.add(topic)
        self.names[DatasetName(f"kafka://{self.kafka.bootstrap}", topic)] = name
        return topic

    def pg(self, name: str) -> dict[str, str]:
        found = super().pg(name)
        self.tables.add(found["dbtable"])
        return found

    def clear(self) -> None:
        """Drop what the cases made, past Spark's statements: a statement would be a run of its own."""
        state = self.spark._jsparkSession.sessionState()
        identifier = self.spark._jvm.org.apache.spark.sql.connector.catalog.Identifier
        for name, namespace in (("lab", self.namespace), ("had", "shop"), ("db", self.namespace)):
            catalog = state.catalogManager().catalog(name)
            place = self._words(namespace)
            if not catalog.namespaceExists(place):
                continue
            for table in catalog.listTables(place):
                if table.name() not in ("orders", "customers"):
                    catalog.dropTable(identifier.of(place, table.name()))
            if name == "db":
                catalog.dropNamespace(place, False)
        for view in self.spark.catalog.listTables():
            if view.isTemporary:
                self.spark.catalog.dropTempView(view.name)
        own = state.catalog()
        listed = own.listTables(own.getCurrentDatabase())
        for at in range(listed.size()):
            own.dropTable(listed.apply(at), True, False)
        self.postgres.run(*(f'drop table if exists "{name}"' for name in self.tables))
        shutil.rmtree(self.folder / "files", ignore_errors=True)

    def _words(self, word: str) -> Any:
        made = self.spark.sparkContext._gateway.new_array(self.spark._jvm.java.lang.String, 1)
        made[0] = word
        return made


class Thread(Player):
    """The stage of one thread: targets of its own, in a session of its own."""

    def __init__(self, base: Player, number: int, catalog: CatalogClient) -> None:
        self.topics, self.tables, self.names, self.executions = set(), set(), {}, []
        self.case, self.kafka, self.postgres = "", base.kafka, base.postgres
        self.folder = base.folder / f"t{number}"
        self.namespace = f"{base.namespace}t{number}"
        catalog.client.create_namespace(self.namespace)
        self.spark = base.spark.newSession()
        for name, folder in (("had", "hadoop"), ("db", "jdbc")):
            (self.folder / folder).mkdir(parents=True)
            self.spark.conf.set(
                f"spark.sql.catalog.{name}.warehouse", f"file://{self.folder}/{folder}"
            )
            # A catalog is made by the settings of the session that is at work.
            self.spark.sql(f"show namespaces in {name}").collect()
        self.spark.sql(f"create database t{number}")
        self.spark.catalog.setCurrentDatabase(f"t{number}")
        self._fill()

    def play(self) -> None:
        for _ in range(rounds):
            self.clear()
            for case in batches:
                self.case = case.name
                case.job(self)


def emitted(since: int) -> list[dict[str, Any]]:
    assert headwater.spark.flush(240)
    return [json.loads(line) for line in events.read_text().splitlines()[since:]]


def alone(stage: Player, case: Case) -> dict[str, Any]:
    """The runs of each job that one play is, and how many of them write what its truth says."""
    before = len(emitted(0))
    stage.case = case.name
    words = case.job(stage)
    last: dict[str, dict[str, Any]] = {}
    jobs: dict[str, set[str]] = {}
    application = stage.spark.sparkContext.appName
    for event in emitted(before):
        if event["job"]["name"] == application:  # its heartbeats come between
            continue
        last[event["run"]["runId"]] = event
        jobs.setdefault(event["job"]["name"], set()).add(event["run"]["runId"])
    truth = read(case.truth.format(**words) if isinstance(words, dict) else case.truth)
    seen = [told(event, stage.names, "") for event in last.values()]
    return {
        "writers": len(writers(truth, seen)),
        "jobs": {job: len(runs) for job, runs in jobs.items()},
    }


def main() -> None:
    lab = Lab(home)
    clients: Mapping[str, Any] = {
        "kafka": KafkaClient(lab, "kafka"),
        "catalog": CatalogClient(lab, "catalog"),
        "s3": S3Client(lab, "s3"),
        "postgres": PostgresClient(lab, "postgres"),
    }
    stage = Player(work, **clients, settings={"spark.driver.memory": "1536m"})
    headwater.spark.attach(stage.spark)
    once = {case.name: alone(stage, case) for case in batches}
    threads = [Thread(stage, number, clients["catalog"]) for number in range(THREADS)]
    mark = len(emitted(0))
    with ThreadPoolExecutor(THREADS) as pool:
        # A thread that stops early fails the program, with what stopped it.
        list(pool.map(Thread.play, threads))
    assert headwater.spark.flush(900), "not everything was emitted in time"
    played = {"namespace": stage.namespace, "mark": mark, "once": once}
    (work / "played.json").write_text(json.dumps(played))


main()
