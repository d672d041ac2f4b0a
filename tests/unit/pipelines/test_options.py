"""What the jobs can be told, by options or the environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, cast

import iceberg_ingestion
import options
import orders
import pytest
import supplier_stats
import supplier_stats_stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CATALOG = "spark.sql.catalog.prod"
VARIABLES = {
    "ICEBERG_CATALOG_NAME": "prod",
    "ICEBERG_CATALOG_URI": "http://catalog:8181",
    "ICEBERG_WAREHOUSE": "s3://lake",
    "BOOTSTRAP": "kafka:9092",
    "REGISTRY_URL": "http://registry:8081",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HMS_ENDPOINT", "S3_ENDPOINT", "INPUT_TOPIC", "OUTPUT_TOPIC", "AVAILABLE_NOW", "KAFKA_PROPERTIES",
                 "OPENLINEAGE_DATASET_NAMESPACE", "OPENLINEAGE_DATASET_NAME"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


def test_the_environment_is_enough_and_an_option_stands_above_it() -> None:
    found = iceberg_ingestion.arguments().parse_args(["--bootstrap", "other:9092"])
    assert (found.bootstrap, found.registry_url) == ("other:9092", VARIABLES["REGISTRY_URL"])
    assert (found.input_topic, found.table, found.once) == ("orders", "default.orders", False)


def test_a_stream_without_kafka_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BOOTSTRAP")
    with pytest.raises(SystemExit) as raised:
        supplier_stats_stream.arguments().parse_args([])
    assert raised.value.code == 2
    assert "--bootstrap" in capsys.readouterr().err
    supplier_stats.arguments().parse_args([])  # the batch job has no Kafka


def test_a_login_to_kafka_comes_from_a_file_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = iceberg_ingestion.arguments().parse_args([])
    assert options.kafka(given) == {"kafka.bootstrap.servers": "kafka:9092"}
    file = tmp_path / "client.properties"
    file.write_text(
        "# as every client of Kafka's reads it\nsecurity.protocol = SASL_SSL\n\n"
        'sasl.jaas.config=a.b.Module required \\\n  username=\\"u\\" password="p=1";\n'
        "bootstrap.servers=elsewhere:9092\n"
    )
    monkeypatch.setenv("KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("KAFKA_SASL_MECHANISM", "PLAIN")
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "other:9092")
    given = iceberg_ingestion.arguments().parse_args(["--kafka-properties", str(file)])
    assert options.kafka(given) == {
        "kafka.bootstrap.servers": "kafka:9092",
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": 'a.b.Module required username="u" password="p=1";',
    }


def test_certificates_for_kafka_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KAFKA_SECURITY_PROTOCOL": "SSL",
        "KAFKA_SSL_TRUSTSTORE_LOCATION": "/etc/kafka/trust.p12",
        "KAFKA_SSL_TRUSTSTORE_PASSWORD": "hunter2",
        "KAFKA_SSL_KEYSTORE_LOCATION": "/etc/kafka/me.p12",
        "KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM": "",
    }.items():
        monkeypatch.setenv(name, value)
    assert options.kafka(iceberg_ingestion.arguments().parse_args([])) == {
        "kafka.bootstrap.servers": "kafka:9092",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.location": "/etc/kafka/trust.p12",
        "kafka.ssl.truststore.password": "hunter2",
        "kafka.ssl.keystore.location": "/etc/kafka/me.p12",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# a folder: C:\\\na=1", {"a": "1"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a=one\\\n  #two\n!b=3", {"a": "one#two"}),
        ("a 1\r\nb : 2\r\nc\\=d=e\\ \r\n", {"a": "1", "b": "2", "c=d": "e "}),
        ("a=1\nb=two\\", {"a": "1", "b": "two"}),
        ("a=x\\ty\nb=caf\\u00e9\\u0021", {"a": "x\ty", "b": "café!"}),
    ],
)
def test_kafkas_settings_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert options.properties(text) == found


def test_a_rest_catalog_stands_above_hive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HMS_ENDPOINT", "thrift://hive:9083")
    found = options.catalog(supplier_stats.arguments().parse_args([]))
    assert (found[f"{CATALOG}.type"], found[f"{CATALOG}.uri"]) == ("rest", "http://catalog:8181")
    monkeypatch.delenv("ICEBERG_CATALOG_URI")
    found = options.catalog(supplier_stats.arguments().parse_args([]))
    assert (found[f"{CATALOG}.type"], found[f"{CATALOG}.uri"]) == ("hive", "thrift://hive:9083")
    assert f"{CATALOG}.io-impl" not in found


@pytest.mark.parametrize("namespace", ["prod.default", "prod.sales.europe"])
def test_a_tables_namespace_is_made_however_deep(namespace: str) -> None:
    class Session:
        """Hears what would be run."""

        said: ClassVar[list[str]] = []

        def sql(self, text: str) -> None:
            self.said.append(text)

    Session.said.clear()
    orders.create_table(cast("SparkSession", Session()), f"{namespace}.orders", "id INT", "id")
    assert Session.said[0] == f"CREATE NAMESPACE IF NOT EXISTS {namespace}"
    assert Session.said[1].startswith(f"CREATE TABLE IF NOT EXISTS {namespace}.orders (id INT)")
    with pytest.raises(SystemExit, match=r"name it as default\.orders"):
        orders.create_table(cast("SparkSession", Session()), "prod.orders", "id INT", "id")


def test_what_a_session_starts_with_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("S3_ENDPOINT", "http://s3:9000")
    found = options.catalog(supplier_stats.arguments().parse_args([]))
    assert "hunter2" not in str(found)


def test_of_what_kafka_is_told_plans_show_the_address_alone() -> None:
    found = options.catalog(supplier_stats.arguments().parse_args([]))
    hidden = re.compile(found["spark.sql.redaction.options.regex"])
    for key in ("ssl.keystore.key", "basic.auth.user.info", "sasl.jaas.config"):
        assert hidden.search(f"kafka.{key}")
    assert hidden.search("URL")  # Spark's own default
    for shown in ("kafka.bootstrap.servers", "kafka:9092", "topic", "subscribe"):
        assert not hidden.search(shown)


def test_the_output_can_be_told_by_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.renamed(supplier_stats.arguments().parse_args([]), "default.orders") == {}
    monkeypatch.setenv("OPENLINEAGE_DATASET_NAMESPACE", "lake")
    monkeypatch.setenv("OPENLINEAGE_DATASET_NAME", "orders_v2")
    settings = supplier_stats.arguments().parse_args([])
    assert options.renamed(settings, "default.orders") == {
        "spark.headwater.datasets.default.orders.namespace": "lake",
        "spark.headwater.datasets.default.orders.name": "orders_v2",
    }
