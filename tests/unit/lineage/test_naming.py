"""Names of datasets, from golden cases in tests/fixtures/naming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.naming import dataset as openlineage

from headwater.lineage import naming

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "naming"


def cases(name: str) -> list[dict[str, Any]]:
    lines = (FIXTURES / f"{name}.ndjson").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def label(case: dict[str, Any]) -> str:
    return str(next(iter(case.values())))[:60]


@pytest.mark.parametrize("case", cases("build"), ids=label)
def test_a_store_names_its_datasets(case: dict[str, Any]) -> None:
    name = naming.build(case["store"], **case["parts"])
    assert name == (case["namespace"], case["name"])
    assert naming.canonical(*name) == name


def test_every_store_has_a_golden_case() -> None:
    assert {case["store"] for case in cases("build")} == set(naming.STORES)


@pytest.mark.parametrize("case", cases("jdbc"), ids=label)
def test_jdbc_urls(case: dict[str, Any]) -> None:
    name = naming.from_jdbc(case["url"], case["table"], **case.get("with", {}))
    assert name == (case["namespace"], case["name"])
    assert naming.canonical(*name) == name


@pytest.mark.parametrize("case", cases("jdbc_errors"), ids=label)
def test_jdbc_urls_that_name_nothing(case: dict[str, Any]) -> None:
    with pytest.raises(naming.NamingError, match=case["says"]):
        naming.from_jdbc(case["url"], "t")


@pytest.mark.parametrize("case", cases("uri"), ids=label)
def test_paths(case: dict[str, Any]) -> None:
    name = naming.from_uri(case["uri"])
    assert name == (case["namespace"], case["name"])
    assert naming.canonical(*name) == name


@pytest.mark.parametrize("case", cases("canonical"), ids=label)
def test_names_sent_by_others_get_one_spelling(case: dict[str, Any]) -> None:
    assert list(naming.canonical(*case["from"])) == case["to"]
    assert list(naming.canonical(*case["to"])) == case["to"]


@pytest.mark.parametrize("case", cases("kafka"), ids=label)
def test_kafka_clusters(case: dict[str, Any]) -> None:
    assert naming.kafka_namespace(case["bootstrap"]) == case["namespace"]
    assert naming.kafka(case["bootstrap"], "Orders") == (case["namespace"], "Orders")


@pytest.mark.parametrize("case", cases("identifier"), ids=label)
def test_identifiers_split_at_their_dots(case: dict[str, Any]) -> None:
    assert naming.split_identifier(case["text"]) == case["parts"]


def test_a_text_too_long_for_an_identifier_is_split_at_its_dots_alone() -> None:
    assert len(naming.split_identifier('".' * 50_000)) == 50_000


@pytest.mark.parametrize("case", cases("redact"), ids=label)
def test_redaction(case: dict[str, Any]) -> None:
    assert naming.redact(case["text"]) == case["redacted"]


@pytest.mark.parametrize(
    ("store", "parts", "theirs"),
    [
        ("athena", {"region": "r", "catalog": "c", "database": "d", "table": "t"}, "Athena"),
        ("glue", {"region": "r", "account": "1", "database": "d", "table": "t"}, "AWSGlue"),
        ("cosmos", {"host": "h", "database": "d", "table": "t"}, "AzureCosmosDB"),
        ("kusto", {"host": "h", "database": "d", "table": "t"}, "AzureDataExplorer"),
        ("synapse", {"host": "h", "port": "1", "schema": "s", "table": "t"}, "AzureSynapse"),
        ("bigquery", {"project": "p", "dataset": "d", "table": "t"}, "BigQuery"),
        ("cassandra", {"host": "h", "port": "1", "keyspace": "k", "table": "t"}, "Cassandra"),
        ("mysql", {"host": "h", "port": "1", "database": "d", "table": "t"}, "MySQL"),
        ("oceanbase", {"host": "h", "port": "1", "database": "d", "table": "t"}, "OceanBase"),
        ("teradata", {"host": "h", "port": "1", "database": "d", "table": "t"}, "Teradata"),
        ("hive", {"host": "h", "port": "1", "database": "d", "table": "t"}, "Hive"),
        ("abfss", {"container": "c", "account": "a", "path": "p"}, "ABFSS"),
        ("wasbs", {"container": "c", "account": "a", "path": "p"}, "WASBS"),
        ("dbfs", {"workspace": "w", "path": "/p"}, "DBFS"),
        ("gcs", {"bucket": "b", "key": "k"}, "GCS"),
        ("s3", {"bucket": "b", "key": "k"}, "S3"),
        ("hdfs", {"namenode": "n", "port": "1", "path": "/p"}, "HDFS"),
        ("kafka", {"host": "h", "port": "1", "topic": "t"}, "Kafka"),
        ("file", {"path": "/p"}, "LocalFileSystem"),
        ("remote_file", {"host": "h", "path": "/p"}, "RemoteFileSystem"),
        *(
            (
                store,
                {"host": "h", "port": "1", outer: "d", "schema": "s", "table": "t"},
                theirs,
            )
            for store, outer, theirs in (
                ("postgres", "database", "Postgres"),
                ("crate", "database", "CrateDB"),
                ("db2", "database", "DB2"),
                ("oracle", "service", "Oracle"),
                ("trino", "catalog", "Trino"),
            )
        ),
    ],
)
def test_we_agree_with_the_openlineage_client(
    store: str, parts: dict[str, str], theirs: str
) -> None:
    expected = getattr(openlineage, theirs)(*parts.values())
    name = naming.build(store, **parts)
    assert name == (expected.get_namespace(), expected.get_name())


def test_a_missing_part_is_named() -> None:
    with pytest.raises(naming.NamingError, match="collection is needed"):
        naming.build("mongodb", host="m", database="d")
    with pytest.raises(naming.NamingError, match="no part 'topic'"):
        naming.build("mongodb", host="m", topic="t")
    with pytest.raises(naming.NamingError, match="no store is called"):
        naming.build("nosuch")


@pytest.mark.parametrize("bootstrap", ["", " , ", "${env:BOOTSTRAP}", "k1:port", "[::1", "a b"])
def test_a_bootstrap_without_a_host_is_refused(bootstrap: str) -> None:
    with pytest.raises(naming.NamingError):
        naming.kafka_namespace(bootstrap)
