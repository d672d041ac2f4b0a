"""The Iceberg REST catalog, over the lab's S3, its tables' pointers in a SQLite file or in Hive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lab.files.ivy import pyspark_jar
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command
from headwater.lab.services.base import Service, answers, version_of
from headwater.lab.services.hive import FOR_CATALOG, WITHOUT_LOCKS, client_jars, endpoint
from headwater.lab.services.s3 import REGION, warehouse

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.services.base import LabContext


class IcebergCatalog(Service):
    name = "catalog"
    title = "Iceberg REST catalog"
    needs = ("s3",)

    def version(self) -> str:
        return version_of("iceberg-open-api")

    def prepare(self, lab: LabContext) -> None:
        settings = lab.home.settings
        lab.write(
            "catalog.properties",
            {
                **(_in_hive(lab) if settings.hive else _in_a_file(lab)),
                "warehouse": warehouse(lab),
                "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
                "client.region": REGION,
                "s3.endpoint": lab.url("s3"),
                "s3.path-style-access": "true",
                "s3.access-key-id": settings.s3_access_key,
                "s3.secret-access-key": settings.s3_secret_key,
            },
        )

    def command(self, lab: LabContext) -> Command:
        return Command(
            lab.run_source(
                "catalog",
                "CatalogServer.java",
                lab.home.settings.catalog,
                str(lab.home.conf("catalog.properties")),
                LOOPBACK,
                str(lab.port("catalog")),
                classpath=_hive_classpath(lab) if lab.home.settings.hive else lab.jars("catalog"),
                heap=192,
                flags=["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"],
            )
        )

    def ready(self, lab: LabContext) -> bool:
        return answers(lab.url("catalog", "/v1/config")).status_code == 200

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "ICEBERG_CATALOG_NAME": lab.home.settings.catalog,
            "ICEBERG_CATALOG_URI": lab.url("catalog"),
            "ICEBERG_WAREHOUSE": warehouse(lab),
        }


def _in_a_file(lab: LabContext) -> dict[str, object]:
    return {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{lab.home.data('catalog') / 'catalog.db'}",
        "jdbc.schema-version": "V1",
        # A reader that the catalog leaves open would otherwise lock every writer out.
        "jdbc.journal_mode": "WAL",
        "jdbc.synchronous": "FULL",
        "jdbc.busy_timeout": 30_000,
    }


def _in_hive(lab: LabContext) -> dict[str, object]:
    """For those who cannot speak to the metastore itself: PyIceberg could with one package more."""
    return {
        "catalog-impl": "org.apache.iceberg.hive.HiveCatalog",
        "uri": endpoint(lab),
        **{f"hadoop.{key}": value for key, value in WITHOUT_LOCKS.items()},
    }


def _hive_classpath(lab: LabContext) -> list[Path]:
    # Hive's client needs more of Hadoop than the catalog's jar holds, and all of it from one version.
    hadoop = [pyspark_jar("hadoop-client-api"), pyspark_jar("hadoop-client-runtime")]
    return [*hadoop, *lab.jars("catalog"), *lab.jars(FOR_CATALOG), *client_jars()]
