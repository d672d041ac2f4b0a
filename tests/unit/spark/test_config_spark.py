"""The jar's keys, the environment and their order."""

from __future__ import annotations

import pytest

from headwater.spark import reporting
from headwater.spark.driver import config

RUN = "01a1e232-46c5-7db0-bbe3-16e3383f61c1"
ROOT = "01a1e232-4117-7682-8c12-b95d2088ad22"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))
    for name in ("OPENLINEAGE_NAMESPACE", "OPENLINEAGE_DISABLED", "OPENLINEAGE_PARENT_ID",
                 "OPENLINEAGE_ROOT_PARENT_ID", "OPENLINEAGE_CONFIG", "OPENLINEAGE_URL"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


def read(**conf: str) -> config.SparkSettings:
    return config.read({key.replace("__", "."): value for key, value in conf.items()})


def test_defaults() -> None:
    found = config.read({"spark.app.name": "stats"})
    assert (found.namespace, found.app_name, found.transport) == ("default", "stats", {})
    assert found.enabled
    assert found.ancestors is None


def test_arguments_stand_above_conf_and_conf_above_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "environment")
    conf = {"spark.openlineage.namespace": "conf", "spark.openlineage.appName": "own",
            "spark.app.name": "stats"}  # fmt: skip
    assert config.read({}).namespace == "environment"
    assert config.read(conf).namespace == "conf"
    assert config.read(conf).app_name == "own"
    assert config.read(conf, namespace="argument", app_name="given").namespace == "argument"
    assert config.read(conf, namespace="argument", app_name="given").app_name == "given"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (
            {"type": "http", "url": "http://h:5000", "endpoint": "/x", "timeoutInMillis": "2500",
             "auth.type": "api_key", "auth.apiKey": "k", "headers.X-Team": "a"},
            {"type": "http", "url": "http://h:5000", "endpoint": "/x", "timeout": 2.5,
             "auth": {"type": "api_key", "apiKey": "k"}, "custom_headers": {"X-Team": "a"}},
        ),
        (
            {"type": "file", "location": "/tmp/events"},
            {"type": "file", "log_file_path": "/tmp/events", "append": True},
        ),
        (
            {"type": "kafka", "topicName": "lineage", "properties.bootstrap.servers": "b:9092"},
            {"type": "kafka", "topic": "lineage", "config": {"bootstrap.servers": "b:9092"}},
        ),
        (
            {"type": "composite", "continueOnFailure": "true", "transports.a.type": "console",
             "transports.b.type": "file", "transports.b.location": "/e"},
            {"type": "composite", "continue_on_failure": True, "transports": {
                "a": {"type": "console"},
                "b": {"type": "file", "log_file_path": "/e", "append": True}}},
        ),
        ({"url": "http://h"}, {}),
    ],
)  # fmt: skip
def test_transport(own: dict[str, str], expected: dict[str, object]) -> None:
    assert config.transport({f"transport.{key}": value for key, value in own.items()}) == expected


def test_parents_from_conf_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/prod/dag.task/{RUN}")
    found = config.read({}).ancestors
    assert found is not None
    assert found.parent == ("airflow/prod", "dag.task", RUN)
    assert found.root == found.parent
    monkeypatch.setenv("OPENLINEAGE_ROOT_PARENT_ID", f"airflow/dag/{ROOT}")
    assert config.read({}).ancestors.root == ("airflow", "dag", ROOT)  # type: ignore[union-attr]
    conf = {"spark.openlineage.parentJobNamespace": "n", "spark.openlineage.parentJobName": "j",
            "spark.openlineage.parentRunId": ROOT}  # fmt: skip
    assert config.read(conf).ancestors.parent == ("n", "j", ROOT)  # type: ignore[union-attr]


def test_a_parent_that_is_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "a/b", "a/b/no-uuid", "//"):
        monkeypatch.setenv("OPENLINEAGE_PARENT_ID", text)
        assert config.read({}).ancestors is None


def test_facets_nodes_and_jobs_can_be_left_out(tmp_path: object) -> None:
    found = read(
        spark__openlineage__facets__disabled="[spark_unknown;schema]",
        spark__openlineage__facets__columnLineage__disabled="true",
        spark__openlineage__filter__deniedSparkNodes="[org.apache.spark.sql.DropTable]",
    )
    assert found.disabled_facets == {"spark_unknown", "schema", "columnLineage"}
    assert not found.allows_node("DropTable") or not found.allows_node(
        "org.apache.spark.sql.DropTable"
    )
    from pathlib import Path

    Path("openlineage.yml").write_text(
        "filters:\n  - {type: exact, match: noisy}\n  - {type: regex, regex: 'tmp_.*'}\n"
    )
    settings = config.read({})
    assert [settings.allows_job(name) for name in ("noisy", "tmp_1", "orders")] == [
        False,
        False,
        True,
    ]


def test_off() -> None:
    assert not read(spark__openlineage__disabled="true").enabled


def test_off_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_DISABLED", "true")
    assert not config.read({}).enabled


def test_tags_and_owners() -> None:
    found = read(
        spark__openlineage__job__tags="team:orders;critical",
        spark__openlineage__job__owners__team="orders",
    )
    assert found.job_tags == (("team", "orders"), ("critical", "true"))
    assert found.owners == (("team", "orders"),)


def test_a_run_says_where_its_application_can_be_watched() -> None:
    conf = {
        "spark.app.id": "app-1",
        "spark.headwater.history.url": "http://ann:hunter2@history:18080/",
        "spark.master": "local[2]",
    }
    found = reporting.run(config.read(conf), conf, "4.1.3", "http://127.0.0.1:4040")
    shown = found.facets["headwater_spark"]
    assert shown["ui"] == "http://127.0.0.1:4040"
    assert shown["history"].endswith("@history:18080/history/app-1/")
    assert "hunter2" not in shown["history"]
    bare = reporting.run(config.read({}), {"spark.app.id": "app-1"}, "4.1.3")
    assert not {"ui", "history"} & bare.facets.get("headwater_spark", {}).keys()
