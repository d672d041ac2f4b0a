"""A shop's connectors on the real stack: Debezium, Iceberg, JDBC, Camel S3, MirrorMaker, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, NestedField, StringType

from headwater.lab.clients import unique

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import (
        CatalogClient,
        ConnectClient,
        KafkaClient,
        PostgresClient,
        RegistryClient,
        S3Client,
    )

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


class Shop:
    """The connectors' names and what they read and write."""

    def __init__(
        self,
        kafka: KafkaClient,
        connect: ConnectClient,
        registry: RegistryClient,
        postgres: PostgresClient,
        catalog: CatalogClient,
        s3: S3Client,
        folder: Path,
    ) -> None:
        self.kafka, self.connect, self.registry = kafka, connect, registry
        self.catalog, self.s3, self.folder = catalog, s3, folder
        self.url = postgres.database("shop")
        self.copy_url = postgres.database("copy")
        self.prefix = unique("dbz")
        self.orders = f"{self.prefix}.public.orders"
        self.customers = f"{self.prefix}.public.customers"
        self.namespace = catalog.namespace("shop")
        self.bucket = s3.bucket("archive")
        self.secrets = [
            connect.lab.home.settings.postgres_password,
            connect.lab.home.settings.s3_secret_key,
        ]

    def open(self) -> None:
        """Make the tables and every connector."""
        self.sql(
            "create table orders (order_id text primary key, item text, price numeric(10,2),"
            " supplier text)",
            "create table customers (customer_id text primary key, city text)",
            "insert into orders values ('o-1', 'lamp', 19.99, 'acme')",
            "insert into customers values ('c-1', 'Oslo')",
        )
        for table, key in (("orders", "order_id"), ("customers", "customer_id")):
            fields = [NestedField(1, key, StringType()), NestedField(2, "item", StringType())]
            if table == "orders":
                fields += [
                    NestedField(3, "price", DecimalType(10, 2)),
                    NestedField(4, "supplier", StringType()),
                ]
            else:
                fields[1] = NestedField(2, "city", StringType())
            self.catalog.client.create_table(f"{self.namespace}.{table}", Schema(*fields))
        self.source = self.connect.create(self.debezium(), "source")
        self.iceberg = self.connect.create(self.iceberg_sink(), "iceberg")
        self.jdbc = self.connect.create(self.jdbc_sink(), "jdbc")
        self.camel = self.connect.create(self.camel_sink(), "camel")
        self.mirror = self.connect.create(self.mirror_maker(), "mirror")

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as database:
            for statement in statements:
                database.execute(statement)

    def debezium(self) -> dict[str, Any]:
        at = conninfo_to_dict(self.url)
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": at["host"],
            "database.port": at["port"],
            "database.user": at["user"],
            "database.password": self.connect.secret("postgres.password"),
            "database.dbname": at["dbname"],
            "table.include.list": "public.orders,public.customers",
            "topic.prefix": self.prefix,
            "plugin.name": "pgoutput",
            "slot.name": unique("slot"),
            "publication.name": unique("publication"),
            "publication.autocreate.mode": "filtered",
            "transforms": "unwrap",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
            "key.converter": STRINGS,
            **self.registry.avro_converter(),
        }

    def iceberg_sink(self) -> dict[str, Any]:
        namespace = self.namespace
        return {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": 3,
            "topics": f"{self.orders},{self.customers}",
            "iceberg.tables": f"{namespace}.orders,{namespace}.customers",
            "iceberg.tables.route-field": "__table",
            f"iceberg.table.{namespace}.orders.route-regex": self.orders.replace(".", "\\."),
            f"iceberg.table.{namespace}.customers.route-regex": self.customers.replace(".", "\\."),
            "transforms": "stamp",
            "transforms.stamp.type": "org.apache.kafka.connect.transforms.InsertField$Value",
            "transforms.stamp.topic.field": "__table",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": self.catalog.url,
            "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "iceberg.catalog.s3.endpoint": self.s3.url,
            "iceberg.catalog.s3.path-style-access": "true",
            "iceberg.catalog.s3.access-key-id": self.connect.secret("s3.access.key"),
            "iceberg.catalog.s3.secret-access-key": self.connect.secret("s3.secret.key"),
            "iceberg.catalog.client.region": "us-east-1",
            "iceberg.control.topic": unique("control"),
            "iceberg.control.group-id-prefix": unique("group"),
            "iceberg.control.commit.interval-ms": 2000,
            "iceberg.control.commit.timeout-ms": 5000,
            "key.converter": STRINGS,
            **self.registry.avro_converter(),
        }

    def jdbc_sink(self) -> dict[str, Any]:
        at = conninfo_to_dict(self.copy_url)
        return {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "topics": self.orders,
            "connection.url": f"jdbc:postgresql://{at['host']}:{at['port']}/{at['dbname']}",
            "connection.username": at["user"],
            "connection.password": self.connect.secret("postgres.password"),
            "insert.mode": "upsert",
            "primary.key.mode": "record_value",
            "primary.key.fields": "order_id",
            "collection.name.format": "orders_copy",
            "schema.evolution": "basic",
            "key.converter": STRINGS,
            **self.registry.avro_converter(),
        }

    def camel_sink(self) -> dict[str, Any]:
        self.raw = self.kafka.topic("raw")
        secret, key = self.connect.secret("s3.secret.key"), self.connect.secret("s3.access.key")
        return {
            "connector.class": "org.apache.camel.kafkaconnector.CamelSinkConnector",
            "topics": self.raw,
            "camel.sink.url": f"aws2-s3://{self.bucket}?accessKey=RAW({key})&secretKey=RAW({secret})"
            f"&region=us-east-1&overrideEndpoint=true&uriEndpointOverride={self.s3.url}"
            "&keyName=archive/${exchangeId}.json",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
        }

    def mirror_maker(self) -> dict[str, Any]:
        self.mirrored = self.kafka.topic("mirrored")
        self.kafka.produce(self.mirrored, ["one"])
        return {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "topics": self.mirrored,
            "source.cluster.alias": "east",
            "target.cluster.alias": "west",
            "source.cluster.bootstrap.servers": self.kafka.bootstrap,
            "target.cluster.bootstrap.servers": self.kafka.bootstrap,
            "replication.factor": 1,
            "offset-syncs.topic.replication.factor": 1,
            "sync.topic.acls.enabled": "false",
            "key.converter": BYTES,
            "value.converter": BYTES,
        }

    def file_source(self, topic: str) -> dict[str, Any]:
        path = self.folder / f"{topic}.txt"
        path.write_text("first\n")
        return {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": path,
            "topic": topic,
            "value.converter": STRINGS,
        }

    def json_sink(self, topic: str, tasks: int = 1) -> dict[str, Any]:
        """A sink that one record which is not JSON breaks."""
        return {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "file": self.folder / f"{topic}.out",
            "topics": topic,
            "tasks.max": tasks,
            "key.converter": STRINGS,
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        }
