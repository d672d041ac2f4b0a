"""A lake of a test's own: a topic, a namespace of tables, and the program between them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from headwater.lake import tables
from tests.integration.pipelines import jobs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient
    from headwater.lab.lab import Lab
    from headwater.lake.tables import LakeTable


class TestLake:
    """One topic and what the program makes of it."""

    __test__ = False

    def __init__(self, lab: Lab, kafka: KafkaClient, catalog: CatalogClient, folder: Path) -> None:
        self.lab, self.kafka, self.catalog, self.folder = lab, kafka, catalog, folder
        self.topic = kafka.topic("lineage", 3)
        self.namespace = catalog.namespace("lineage")
        self.checkpoint = folder / "checkpoint"

    def start(
        self,
        *arguments: str,
        once: bool = True,
        cluster: str = "",
        conf: Mapping[str, object] | None = None,
        name: str = "",
    ) -> jobs.Job:
        given = ["--topic", self.topic, "--namespace", self.namespace]
        given += ["--checkpoint", self.checkpoint.as_uri(), *arguments]
        given += ["--job-name", name] if name else []
        env = {} if once else {"AVAILABLE_NOW": None}
        folder = self.folder / "job"
        return jobs.start(
            self.lab, "lake.py", *given, folder=folder, env=env, cluster=cluster, conf=conf
        )

    def run(self, *arguments: str) -> None:
        """Take in what the topic has."""
        self.start(*arguments).end()

    def rows(self, table: LakeTable) -> list[dict[str, Any]]:
        found = self.catalog.client.load_table(f"{self.namespace}.{table.name}")
        rows: list[dict[str, Any]] = found.scan().to_arrow().to_pylist()
        return rows

    def snapshots(self, table: LakeTable) -> list[dict[str, str]]:
        """The summaries of a table's commits."""
        found = self.catalog.client.load_table(f"{self.namespace}.{table.name}")
        return [dict(s.summary.additional_properties) for s in found.snapshots() if s.summary]

    def forget_last_epoch(self) -> None:
        """Let Spark do its last batch again: what a driver leaves that dies before it notes the end."""
        commits = self.checkpoint / "events" / "commits"
        last = max(
            (one for one in commits.iterdir() if one.name.isdecimal()), key=lambda p: int(p.name)
        )
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)

    def forget_derived(self) -> None:
        """Let the program derive everything again: what a driver leaves that dies before it notes how far."""
        found = self.catalog.client.load_table(f"{self.namespace}.{tables.DATASETS.name}")
        with found.transaction() as change:
            change.remove_properties("headwater.derived")

    def forget_checkpoint(self) -> None:
        shutil.rmtree(self.checkpoint)

    def places(self, table: LakeTable = tables.EVENTS) -> list[tuple[int, int]]:
        """Where the rows of a table came from, as often as they are there."""
        return sorted((row["kafka_partition"], row["kafka_offset"]) for row in self.rows(table))
