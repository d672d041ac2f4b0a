"""Where cases play: one Spark session, tables with a few rows, and the true name of each."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.sql import SparkSession

from headwater.lab.files.jars import pipeline_jars
from headwater.lineage.naming import DatasetName

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from headwater.lab.clients import CatalogClient, KafkaClient, PostgresClient, S3Client

ORDERS = """id bigint, customer int, price decimal(10,2), city string, ts timestamp,
  address struct<street: string, zip: string>, tags array<string>, props map<string, string>,
  items array<struct<sku: string, qty: int>>"""
ROWS = """values (1, 7, 1.5, 'Bern', timestamp'2026-01-01 00:00:00', struct('a', 'b'), array('q'),
  map('a', 'b'), array(struct('s', 1)))"""


class Stage:
    """What a job gets: a session, names of what there is, and a name for what it writes."""

    def __init__(
        self,
        folder: Path,
        kafka: KafkaClient,
        catalog: CatalogClient,
        s3: S3Client,
        postgres: PostgresClient,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.kafka = kafka
        self.postgres = postgres
        self.namespace = catalog.namespace("cases")
        self.names: dict[DatasetName, str] = {}
        self.executions: list[tuple[str, Any]] = []
        self.case = ""
        self.spark = self._session(catalog, s3, settings or {})
        self._listen()
        self._fill()

    def _session(
        self, catalog: CatalogClient, s3: S3Client, more: Mapping[str, str]
    ) -> SparkSession:
        settings = {
            "spark.jars": ",".join(map(str, pipeline_jars(spark=pyspark.__version__))),
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.default.parallelism": "1",
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
        }
        builder = SparkSession.builder.master("local[2]").appName("cases")
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        return spark

    def _listen(self) -> None:
        from pyspark import java_gateway

        start: Any = java_gateway.ensure_callback_server_started
        start(self.spark.sparkContext._gateway)
        self._listener = _Listener(self.executions)
        self.spark._jsparkSession.listenerManager().register(self._listener)

    def _fill(self) -> None:
        """The tables that jobs read: `orders`, `customers` and `totals` by their short names."""
        for name, columns in (
            ("orders", ORDERS),
            ("customers", "id int, name string, email string"),
        ):
            self.spark.sql(f"create table {self.table(name)} ({columns}) using iceberg")
        self.spark.sql(f"insert into {self.table('orders')} {ROWS}")
        self.spark.sql(f"insert into {self.table('customers')} values (7, 'Ada', 'ada@x.org')")

    def table(self, name: str) -> str:
        """An Iceberg table in the REST catalog, and its true name."""
        self.names[DatasetName("s3://warehouse", f"{self.namespace}/{name}")] = name.split(
            "__", maxsplit=1
        )[0]
        return f"lab.{self.namespace}.{name}"

    @property
    def out(self) -> str:
        """The table that this case writes."""
        self.names[DatasetName("s3://warehouse", f"{self.namespace}/out_{self.case}")] = "out"
        return f"lab.{self.namespace}.out_{self.case}"

    def path(self, name: str) -> str:
        """A folder of this case, and its true name."""
        path = f"{self.folder}/files/{self.case}/{name}"
        self.names[DatasetName("file", path)] = name
        return f"file://{path}"

    def topic(self, name: str) -> str:
        """A new topic, and its true name."""
        topic = self.kafka.topic(name)
        self.names[DatasetName(f"kafka://{self.kafka.bootstrap}", topic)] = name
        return topic

    def pg(self, name: str) -> dict[str, str]:
        """Options for a table in PostgreSQL, and its true name."""
        table = f"{name}_{self.case}_{self.namespace}"[-60:]
        place = f"{self.postgres.env['PGHOST']}:{self.postgres.env['PGPORT']}"
        self.names[DatasetName(f"postgres://{place}", f"shop.public.{table}")] = name
        return {**self.pg_options(), "dbtable": table}

    def pg_options(self) -> dict[str, str]:
        return {
            "url": _jdbc_url(self.postgres.url),
            "driver": "org.postgresql.Driver",
            "user": "postgres",
            "password": self.postgres.env["PGPASSWORD"],
        }

    @property
    def orders(self) -> DataFrame:
        return self.spark.table(self.table("orders"))

    @property
    def customers(self) -> DataFrame:
        return self.spark.table(self.table("customers"))

    def sql(self, text: str, **names: str) -> DataFrame:
        """SQL with `{out}`, `{orders}` and `{customers}` as the tables of this case."""
        known = {
            "out": self.out,
            "orders": self.table("orders"),
            "customers": self.table("customers"),
            "ns": self.namespace,
        }
        return self.spark.sql(text.format(**known, **names))

    def from_topic(self, topic: str, **options: str) -> DataFrame:
        settings = {"kafka.bootstrap.servers": self.kafka.bootstrap, "subscribe": topic, **options}
        return self.spark.read.format("kafka").options(**settings).load()

    def stream_topic(self, topic: str) -> DataFrame:
        reader = self.spark.readStream.format("kafka")
        settings = {"kafka.bootstrap.servers": self.kafka.bootstrap, "subscribe": topic}
        return reader.options(**settings, startingOffsets="earliest").load()

    def drain(self) -> list[tuple[str, Any]]:
        """What was executed since the last time."""
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(30_000)
        found = list(self.executions)
        self.executions.clear()
        return found


def _catalog(name: str, **settings: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    made = {f"{prefix}.{key}": value for key, value in settings.items()}
    return {prefix: "org.apache.iceberg.spark.SparkCatalog", **made}


def _s3(s3: S3Client) -> dict[str, str]:
    return {
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": s3.url,
        "s3.path-style-access": "true",
        "s3.access-key-id": s3.env["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": s3.env["AWS_SECRET_ACCESS_KEY"],
        "client.region": s3.env["AWS_REGION"],
    }


def _jdbc_url(url: str) -> str:
    return "jdbc:postgresql://" + url.rpartition("@")[2]


class _Listener:
    """Keeps what ended; nothing is read on the JVM's own thread."""

    def __init__(self, executions: list[tuple[str, Any]]) -> None:
        self.executions = executions
        self.lock = threading.Lock()

    def onSuccess(self, name: str, execution: Any, nanoseconds: int) -> None:  # noqa: N802
        with self.lock:
            self.executions.append((name, execution))

    def onFailure(self, name: str, execution: Any, error: Any) -> None:  # noqa: N802
        pass

    class Java:
        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)
