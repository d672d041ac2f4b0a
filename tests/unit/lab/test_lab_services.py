"""The registry of services, and what their settings are made of."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import msgspec
import pytest

from headwater.errors import UsageError
from headwater.lab import process
from headwater.lab.demo.lineage_client import LineageClient
from headwater.lab.files.cache import Cache
from headwater.lab.home import Home
from headwater.lab.lab import Lab
from headwater.lab.launch import is_ready
from headwater.lab.services import (
    DEFAULT,
    SERVICES,
    in_order,
    select,
    with_dependants,
    with_needs,
)
from headwater.lab.services.base import LabContext
from headwater.lab.services.pipeline_streams import spark_job

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def test_the_usual_services() -> None:
    assert DEFAULT == ("kafka", "connect", "registry", "s3", "catalog", "postgres")
    assert select([]) == list(DEFAULT)


def test_what_a_service_needs_comes_before_it() -> None:
    order = list(SERVICES)
    for name, service in SERVICES.items():
        assert service.name == name
        assert service.title
        assert all(order.index(need) < order.index(name) for need in service.needs)


def test_needs_and_dependants_are_closed() -> None:
    assert with_needs(["connect"]) == ["kafka", "connect"]
    assert with_needs(["catalog"]) == ["s3", "catalog"]
    assert with_needs(["postgres"]) == ["postgres"]
    streams = ["supplier-stats", "iceberg-ingestion", "lineage-lake"]
    assert with_dependants(["kafka"]) == ["kafka", "connect", "agent", *streams]
    assert with_dependants(["server"]) == ["server", "page", "agent", *streams]
    assert with_dependants(["spark"]) == ["spark", "spark-worker-1", "spark-worker-2"]


def test_spark_is_one_word_for_a_cluster() -> None:
    assert select(["spark"]) == ["spark", "spark-worker-1", "spark-worker-2", "spark-history"]


def test_names_come_in_the_order_of_the_registry() -> None:
    assert in_order(["postgres", "kafka", "kafka"]) == ["kafka", "postgres"]


def test_an_unknown_service_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    for ask in (Lab(tmp_path).up, Lab(tmp_path).down, Lab(tmp_path).status):
        with pytest.raises(UsageError, match="no service 'kafak'") as caught:
            ask(["kafak"])
        assert "kafka" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_no_port_has_two_owners() -> None:
    names = [port for service in SERVICES.values() for port in service.port_names()]
    assert len(set(names)) == len(names)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path / "lab")
    with made.home.created():
        pass
    return made


@pytest.mark.parametrize("secure", [False, True])
def test_the_registry_binds_the_ports_that_it_declares(lab: Lab, *, secure: bool) -> None:
    """A port that is not declared is neither looked at before the start nor one that can be fixed."""
    lab.home.settings.secure = secure
    registry = SERVICES["registry"]
    registry.command(lab.context)
    assert set(lab.home.settings.ports) <= set(registry.port_names())


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ({"kafak": 9092}, "no port is called 'kafak'"),
        ({"s3": 9092}, "no port is called 's3'"),
        ({"kafka": 9092, "kafka-controller": 9092}, "it is kafka's"),
    ],
)
def test_ports_that_cannot_be_fixed(lab: Lab, fixed: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        lab.up(["kafka"], fixed=fixed)
    assert Home(lab.home.root).settings.ports == {}


def test_a_port_another_service_has_cannot_be_fixed(lab: Lab) -> None:
    lab.home.settings.ports["s3"] = 9000
    lab.home.save()
    with pytest.raises(UsageError, match="it is s3's"):
        lab.up(["kafka"], fixed={"kafka": 9000})


def test_a_properties_file_survives_any_path(lab: Lab) -> None:
    written = lab.context.write("x.properties", {"dir": "/tmp/ünï \\ 😀", "n": 1})
    assert written.read_bytes() == b"dir=/tmp/\\u00fcn\\u00ef \\\\ \\ud83d\\ude00\nn=1\n"
    assert written.stat().st_mode & 0o777 == 0o600


def test_keys_stay_off_the_command_line(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.lab.files.plugins.plugin_path", lambda _cache: lab.home.root)
    settings = lab.home.settings
    settings.secure = True
    secrets = {settings.s3_secret_key, settings.postgres_password}
    secrets |= set(msgspec.structs.astuple(settings.logins)) - {""}
    context = LabContext(lab.home, Cache(lab.home.root / "cache"))
    for name in ("s3", "catalog", "kafka", "hive", "spark", "postgres", "server"):
        lab.home.data(name).mkdir(parents=True, exist_ok=True)
        command = SERVICES[name].command(context)
        told = " ".join([*command.argv, *command.env.values()])
        assert not any(secret in told for secret in secrets), name
    for written in lab.home.conf("").iterdir():
        assert written.suffix == ".java" or written.stat().st_mode & 0o077 == 0, written


def test_a_probe_that_cannot_run_is_told_and_not_waited_for(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object) -> bool:
        raise ModuleNotFoundError("No module named 'boto3'", name="boto3")

    def fails(*_: object) -> bool:
        raise ConnectionRefusedError

    monkeypatch.setattr(type(SERVICES["s3"]), "ready", fails)
    assert not is_ready(SERVICES["s3"], lab.context)
    monkeypatch.setattr(type(SERVICES["s3"]), "ready", lacks)
    with pytest.raises(ModuleNotFoundError):
        is_ready(SERVICES["s3"], lab.context)


def test_a_stream_has_a_page_on_a_port_of_its_own(lab: Lab) -> None:
    told = SERVICES["supplier-stats"].command(lab.context).env["PYSPARK_SUBMIT_ARGS"]
    port = lab.home.settings.ports["supplier-stats-ui"]
    assert "spark.ui.enabled=true" in told
    assert f"spark.ui.port={port} " in told
    assert "eventLog" not in told, "nobody reads it"
    assert SERVICES["supplier-stats"].env(lab.context) == {
        "SUPPLIER_STATS_UI": f"http://127.0.0.1:{port}"
    }


def test_programs_log_their_events_where_a_history_server_reads_them(lab: Lab) -> None:
    lab.home.settings.wanted = ["spark-history"]
    history = SERVICES["spark-history"]
    stream = SERVICES["supplier-stats"].command(lab.context)
    batch = spark_job(lab.context, "supplier_stats.py", scratch=lab.home.root)
    where = history.env(lab.context)
    for command in (stream, batch):
        told = command.env["PYSPARK_SUBMIT_ARGS"]
        assert "spark.eventLog.enabled=true" in told
        assert f"spark.eventLog.dir={where['SPARK_EVENT_LOG_DIR']}" in told
        assert f"spark.headwater.history.url={where['SPARK_HISTORY_URL']}" in told
    assert (lab.home.data("spark-history") / "events").is_dir()


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("hive", "without Hive already"),
        ("secure", "asks for no logins already"),
    ],
)
def test_a_lab_that_is_not_new_stays_as_it_began(lab: Lab, choice: str, said: str) -> None:
    lab.home.settings.ports["catalog"] = 9001
    lab.home.save()
    with pytest.raises(UsageError, match=said):
        lab.up(["catalog"], hive=choice == "hive", secure=choice == "secure")
    settings = Home(lab.home.root).settings
    assert not settings.hive
    assert not settings.secure


LOGINS = {
    "KAFKA_PROPERTIES", "CONNECT_USER", "CONNECT_PASSWORD", "SCHEMA_REGISTRY_USER_INFO",
    "OPENLINEAGE_API_KEY", "HEADWATER_TOKEN", "HEADWATER_CONNECT_WORKER_PROPERTIES",
    "HEADWATER_CONNECT_REGISTRY_URL",
}  # fmt: skip


def test_clients_are_given_logins_where_services_ask_for_them(lab: Lab) -> None:
    def given() -> dict[str, str]:
        names = ("kafka", "connect", "registry", "server")
        return {k: v for n in names for k, v in SERVICES[n].env(lab.context).items()}

    def programs() -> Mapping[str, str]:
        return spark_job(lab.context, "supplier_stats.py", scratch=lab.home.root).env

    assert not LOGINS & given().keys()
    assert not LOGINS & programs().keys()
    settings = lab.home.settings
    settings.secure = True
    SERVICES["server"].prepare(lab.context)
    assert given().keys() >= LOGINS
    # A program of the pipeline reports lineage, and may not read it.
    assert LOGINS & programs().keys() == {
        "KAFKA_PROPERTIES", "SCHEMA_REGISTRY_USER_INFO", "OPENLINEAGE_API_KEY",
    }  # fmt: skip
    assert programs()["OPENLINEAGE_API_KEY"] == settings.logins.producer != settings.logins.server
    producer = settings.logins.producer
    SERVICES["server"].prepare(lab.context)
    assert settings.logins.producer == producer


def test_a_lab_on_hive_has_its_tables_in_the_metastore_alone(lab: Lab) -> None:
    def programs() -> tuple[Mapping[str, str], str]:
        env = spark_job(lab.context, "supplier_stats.py", scratch=lab.home.root).env
        SERVICES["catalog"].prepare(lab.context)
        return env, lab.home.conf("catalog.properties").read_text()

    env, catalog = programs()
    assert "HMS_ENDPOINT" not in env
    assert "lock-enabled" not in env["PYSPARK_SUBMIT_ARGS"]
    assert env["ICEBERG_WAREHOUSE"] == "s3://warehouse"
    assert "JdbcCatalog" in catalog

    lab.home.settings.hive = True
    env, catalog = programs()
    address = f"thrift://127.0.0.1:{lab.context.port('hive')}"
    assert env["HMS_ENDPOINT"] == address
    assert env["ICEBERG_CATALOG_URI"] == ""
    assert env["ICEBERG_WAREHOUSE"] == "s3://warehouse/hive"
    assert "spark.hadoop.iceberg.engine.hive.lock-enabled=false" in env["PYSPARK_SUBMIT_ARGS"]
    assert f"uri={address}\n" in catalog
    assert "JdbcCatalog" not in catalog
    SERVICES["hive"].prepare(lab.context)
    assert "<value>s3://warehouse/hive</value>" in lab.home.conf("hive/hive-site.xml").read_text()


@pytest.mark.parametrize("name", ["server", pytest.param("agent", marks=pytest.mark.full)])
def test_the_settings_of_a_server_elsewhere_are_not_the_labs(
    lab: Lab, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "headwater" / "headwater.toml"
    file.parent.mkdir()
    file.write_text('[server]\nkeep = "9d"\n[connect]\nclusters = "mine.yml"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HEADWATER_SERVER_ALERTS", "mine.toml")
    command = SERVICES[name].command(lab.context)
    told = subprocess.run(
        [*command.argv[:3], "config", "show", "--json"],
        env=process.environment(lab.home.root, name, command.env),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert not [word for word in ("mine.yml", "mine.toml", "9d") if f'"{word}"' in told]


def test_the_server_of_a_lab_with_a_lake_forwards_its_log(lab: Lab) -> None:
    server = SERVICES["server"]
    assert "--forward-kafka" not in server.command(lab.context).argv
    lab.home.settings.lake = True
    words = server.command(lab.context).argv
    assert words[words.index("--forward-kafka") + 1] == f"127.0.0.1:{lab.context.port('kafka')}"
    assert "--kafka-config" not in words
    lab.home.settings.secure = True
    words = server.command(lab.context).argv
    assert "sasl.password" not in " ".join(words)
    assert words[words.index("--kafka-config") + 1].endswith("server-kafka.properties")


def test_the_stream_of_the_lake_needs_a_lab_that_forwards(lab: Lab) -> None:
    lab.home.settings.wanted = ["server"]
    lab.home.save()
    with pytest.raises(UsageError, match="has no lineage lake"):
        lab.up(["lineage-lake"])


def test_lineage_is_asked_for_tables_where_hive_keeps_them(lab: Lab) -> None:
    table = "warehouse default/orders"
    assert LineageClient(lab.context).name(table) == ("s3://warehouse", "default/orders")
    lab.home.settings.hive = True
    assert LineageClient(lab.context).name(table) == ("s3://warehouse", "hive/orders")
    assert LineageClient(lab.context).name("exports a/b") == ("s3://exports", "a/b")
