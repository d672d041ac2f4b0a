"""The stage of the cases, on a client of Spark Connect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..cases.stage import Stage, _catalog, _jdbc_url, _s3, pipeline_jars
from .server import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.lab.used import UsedCatalog, UsedS3


class RemoteStage(Stage):
    """What a job gets; its session has no JVM."""

    server: Server

    def _session(self, catalog: UsedCatalog, s3: UsedS3) -> SparkSession:
        self.server = Server(
            self.folder / "server",
            {
                "spark.jars": ",".join(map(str, pipeline_jars())),
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
            },
        )
        from pyspark.sql.connect.session import SparkSession as Remote

        made: Any = Remote.builder.remote(self.server.address).appName("cases").getOrCreate()
        return made  # type: ignore[no-any-return]

    def _listen(self) -> None:
        """There is nothing to hear through: the client itself says what it does."""

    def drain(self) -> list[tuple[str, Any]]:
        return []
