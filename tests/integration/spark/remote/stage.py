"""The stage of the cases, on a client of Spark Connect."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyspark

import headwater.spark
from headwater.lab.files.jars import pipeline_jars
from headwater.lab.waiting import wait_until

from ..cases.stage import Stage, _catalog, _jdbc_url, _s3
from ..drivers import TERMINAL
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.lab.clients import CatalogClient, S3Client

WAIT = 180.0
"""For what takes a second, on a machine that is busy with other tests."""


class RemoteStage(Stage):
    """What a job gets; its session has no JVM."""

    server: Server

    @property
    def file(self) -> Path:
        """Where events go."""
        return self.folder / "events.ndjson"

    def events(self) -> list[dict[str, Any]]:
        """What was told so far."""
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def wait_ended(self, name: str, before: int) -> None:
        """Wait until the end of a streaming query has been told."""

        def ended() -> bool:
            headwater.spark.flush(10)
            return any(
                event["job"]["facets"]["jobType"]["jobType"] == "STREAMING_QUERY"
                and event["eventType"] in TERMINAL
                and (not name or event["job"]["name"] == name)
                for event in self.events()[before:]
            )

        wait_until(ended, seconds=WAIT, what="the end of the query to be told")

    def _session(
        self, catalog: CatalogClient, s3: S3Client, more: Mapping[str, str]
    ) -> SparkSession:
        self.server = Server(
            self.folder / "server",
            {
                "spark.openlineage.transport.type": "file",
                "spark.openlineage.transport.location": str(self.file),
                "spark.jars": ",".join(map(str, pipeline_jars(spark=pyspark.__version__))),
                "spark.sql.session.timeZone": "UTC",
                "spark.sql.warehouse.dir": f"file://{self.folder}/warehouse",
                "spark.sql.streaming.checkpointLocation": f"file://{self.folder}/checkpoints",
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions."
                "IcebergSparkSessionExtensions",
                **_catalog("lab", type="rest", uri=catalog.url, **_s3(s3)),
                **_catalog("had", type="hadoop", warehouse=f"file://{self.folder}/hadoop"),
                **_catalog(
                    "db",
                    type="jdbc",
                    uri=_jdbc_url(self.postgres.url),
                    **{"jdbc.user": "postgres", "jdbc.password": self.postgres.env["PGPASSWORD"]},
                    warehouse=f"file://{self.folder}/jdbc",
                ),
                **more,
            },
        )
        from pyspark.sql.connect.session import SparkSession as Remote

        made: Any = Remote.builder.remote(self.server.address).appName("cases").getOrCreate()
        return made  # type: ignore[no-any-return]

    def _listen(self) -> None:
        """There is nothing to hear through: the client itself says what it does."""

    def drain(self) -> list[tuple[str, Any]]:
        return []
