"""Clusters out of a file, a worker's own properties, `openlineage.*` as others wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from headwater.connect.agent.clusters_file import endpoint_of, read_agent_config
from headwater.connect.commands.apply import changes, faults, fit
from headwater.connect.commands.connector_file import read_connector
from headwater.connect.config import read_openlineage, read_properties, read_worker
from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.metadata import NoMetadata
from headwater.connect.model import Connector
from headwater.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
poll: 2
namespace: shop
state: {env: TEST_STATE}
clusters:
  - name: east
    urls: [http://c1:8083, "http://c2:8083"]
    auth: {username: u, password: {file: PASSWORD}}
    tls: {ca: ca.pem, verify: false}
    kafka:
      bootstrap.servers: k1:9092,k2:9092
      sasl.password: {env: TEST_SASL}
    registry: {url: "http://reader:word@r:8081"}
    heartbeat: 60
    skip_groups: [etl-*, batch]
  - url: http://west:8083
    namespace: west
    consumer_groups: false
    skip_producers: [tx-*]
    kafka: k9:9092
    registry: http://r9:8081
    worker_properties: worker.properties
  - name: cloud
    confluent_cloud: {environment: env-1, cluster: lkc-2, api_key: k, api_secret: {env: TEST_SASL}}
"""
WORKER = r"""
# a worker
bootstrap.servers=kafka-1:9092,kafka-2:9092
value.converter = io.confluent.connect.avro.AvroConverter
value.converter.schema.registry.url: http://registry:8081
group.id=connect
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="agent" \
    password="hunter2";
openlineage.transport.type=http
openlineage.transport.url=http://headwater:5000
openlineage.transport.endpoint=/api/v1/lineage
openlineage.transport.auth.api_key=t0ken
openlineage.namespace=prod
openlineage.poll.interval.ms=2000
openlineage.running.interval.ms=60000
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    password = tmp_path / "password"
    password.write_text("from-file\n")
    monkeypatch.setenv("TEST_STATE", "postgresql://u:pw@db/state")
    monkeypatch.setenv("TEST_SASL", "from-env")
    (tmp_path / "worker.properties").write_text(WORKER)
    (tmp_path / "clusters.yml").write_text(FILE.replace("PASSWORD", str(password)))
    return tmp_path


def test_a_file_of_clusters(folder: Path) -> None:
    estate = read_agent_config(folder / "clusters.yml")
    east, west, cloud = estate.clusters
    assert estate.state == "postgresql://u:pw@db/state"
    assert (east.name, east.namespace, east.times.poll, east.times.heartbeat) == (
        "east",
        "shop",
        2,
        60,
    )
    assert east.endpoint.urls == ("http://c1:8083", "http://c2:8083")
    assert (east.endpoint.username, east.endpoint.password) == ("u", "from-file")
    assert (east.endpoint.ca, east.endpoint.verify) == ("ca.pem", False)
    assert east.kafka == {"bootstrap.servers": "k1:9092,k2:9092", "sasl.password": "from-env"}
    assert east.registry is not None
    assert (east.registry.urls, east.registry.username) == (("http://r:8081",), "reader")
    assert (west.name, west.namespace, west.times.poll) == ("west:8083", "west", 2)
    assert west.kafka == {"bootstrap.servers": "k9:9092"}
    assert west.defaults["value.converter.schema.registry.url"] == "http://registry:8081"
    assert (east.consumer_groups, east.skip_groups) == (True, ("etl-*", "batch"))
    assert (west.consumer_groups, west.skip_groups) == (False, ())
    assert (east.producers, east.skip_producers) == (True, ())
    assert (west.producers, west.skip_producers) == (True, ("tx-*",))
    assert cloud.endpoint.urls[0].endswith("/environments/env-1/clusters/lkc-2")
    assert (cloud.endpoint.username, cloud.endpoint.password) == ("k", "from-env")
    for secret in ("from-file", "from-env", "word"):
        assert secret not in repr(estate)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusters: 3", "no list called clusters"),
        ("clusters:\n  - 3", r"clusters\[0\]: not a cluster"),
        ("clusters:\n  - name: x", "has no url"),
        ("clusters:\n  - url: ftp://x", "not an http address"),
        ("clusters:\n  - url: http://x\n    colour: red", "colour is not known"),
        ("clusters:\n  - url: http://x\n    kafka: {a: b}", "no bootstrap.servers"),
        ("clusters:\n  - url: http://x\n    poll: soon", "poll: not a number"),
        ("clusters:\n  - url: http://x\n  - url: http://x", "two clusters"),
        (
            "clusters:\n  - url: http://x\n    auth: {password: {env: NO_SUCH}}",
            "NO_SUCH is not set",
        ),
        ("clusters:\n  - url: http://x\n    auth: {password: {file: /no/such}}", "/no/such"),
        ("a: [", "line 1: not YAML"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "clusters.yml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_agent_config(path)


def test_a_workers_own_file(folder: Path) -> None:
    worker = read_worker(folder / "worker.properties")
    assert worker.bootstrap == "kafka-1:9092,kafka-2:9092"
    assert worker.kafka == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "agent",
        "sasl.password": "hunter2",
    }
    assert set(worker.defaults) == {"value.converter", "value.converter.schema.registry.url"}
    asked = read_openlineage(worker.openlineage)
    assert asked.transport == {
        "type": "http",
        "url": "http://headwater:5000",
        "endpoint": "api/v1/lineage",
        "auth": {"type": "api_key", "apiKey": "t0ken"},
    }
    assert (asked.namespace, asked.poll, asked.heartbeat) == ("prod", 2.0, 60.0)


@pytest.mark.parametrize(
    ("properties", "transport"),
    [
        ({}, None),
        ({"openlineage.transport.type": "console"}, {"type": "console"}),
        (
            {"openlineage.transport.type": "file", "openlineage.transport.location": "/x.ndjson"},
            {"type": "file", "log_file_path": "/x.ndjson", "append": True},
        ),
        (
            {
                "openlineage.transport.type": "kafka",
                "openlineage.transport.topicName": "ol",
                "openlineage.transport.properties.bootstrap.servers": "k:9092",
                "openlineage.transport.properties.key.serializer": "x",
            },
            {"type": "kafka", "topic": "ol", "config": {"bootstrap.servers": "k:9092"}},
        ),
    ],
)
def test_transports_of_others(properties: dict[str, str], transport: object) -> None:
    assert read_openlineage(properties).transport == transport


def test_odd_properties_of_others_are_said() -> None:
    for odd in (
        {"openlineage.transport.type": "pigeon"},
        {"openlineage.poll.interval.ms": "soon"},
        {"openlineage.transport.type": "file"},
    ):
        with pytest.raises(UsageError):
            read_openlineage(odd)


def test_java_properties() -> None:
    text = "a=1\nb : 2\nc 3\n!no\n#no\nd=x\\\n   y\ne\\:f=g\\=h\nempty=\n"
    assert read_properties(text) == {
        "a": "1", "b": "2", "c": "3", "d": "xy", "e:f": "g=h", "empty": "",
    }  # fmt: skip


def test_a_user_in_an_address_is_taken_out_of_it() -> None:
    endpoint = endpoint_of(["http://u:pw@c:8083/?x=1"], {}, {}, "--url")
    assert endpoint.urls == ("http://c:8083/",)
    assert (endpoint.username, endpoint.password) == ("u", "pw")


CONFIG = {
    "connector.class": "x.Sink",
    "transforms": "route, openlineage",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": "a",
    "transforms.openlineage.type": "com.acme.OpenLineageLifecycleSmt",
    "transforms.openlineage.topics": "a",
    "db.password": "old-secret",
}


def test_a_lineage_transform_is_left_out_where_the_worker_lacks_it() -> None:
    fitted = fit(CONFIG, {"x.Sink"})
    assert fitted.left_out == ["openlineage"]
    assert fitted.config["transforms"] == "route"
    assert not [key for key in fitted.config if "openlineage" in key]
    assert fit(CONFIG, {"com.acme.OpenLineageLifecycleSmt"}) == (CONFIG, [], [])
    alone = {k: v for k, v in CONFIG.items() if "route" not in k} | {"transforms": "openlineage"}
    assert "transforms" not in fit(alone, set()).config


def test_what_a_transform_that_is_left_out_declares_is_kept() -> None:
    """The lineage is the same as with the transform in the configuration."""
    sink = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "connection.url": "jdbc:postgresql://db/shop",
        "topics": "a,b",
        "transforms": "openlineage",
        "transforms.openlineage.type": "com.acme.OpenLineageLifecycleSmt",
        "transforms.openlineage.connector.name": "orders-to-lake",
        "transforms.openlineage.topics": "a,b",
        "transforms.openlineage.dataset.namespace": "thrift://ms:9083",
        "transforms.openlineage.dataset.names": "shop.a,shop.b",
        "transforms.openlineage.value.converter.basic.auth.user.info": "me:hunter2",
    }
    fitted = fit(sink, set())
    assert fitted.kept == [
        "headwater.connector.name", "headwater.dataset.names", "headwater.dataset.namespace",
        "headwater.topics",
    ]  # fmt: skip
    assert "hunter2" not in str(fitted.config)
    before, after = (
        derive(Connector("c", "sink", config), NoMetadata(), DeriveSettings())
        for config in (sink, fitted.config)
    )
    assert before.job == after.job
    assert after.job.name == "orders-to-lake"
    datasets = [("hive://ms:9083", "shop.a"), ("hive://ms:9083", "shop.b")]
    assert [d.id for d in before.lineage.outputs] == datasets
    assert [d.id for d in after.lineage.outputs] == datasets
    own = fit({**sink, "headwater.dataset.names": "own.a,own.b"}, set())
    assert own.config["headwater.dataset.names"] == "own.a,own.b"


def test_what_would_change_shows_no_secret() -> None:
    after = {**CONFIG, "db.password": "new-secret", "odd": "declared", "file": "x"}
    del after["transforms.route.regex"]
    found = changes(CONFIG, after, {"odd"})
    assert found == [
        ("db.password", "***", "***", True),
        ("file", None, "x", False),
        ("odd", None, "***", False),
        ("transforms.route.regex", "a", None, False),
    ]
    assert changes(CONFIG, CONFIG) == []
    one, other = ({"url": f"s3://raw?name={name}&secretKey=x"} for name in ("a", "b"))
    assert changes(one, other) == [("url", "s3://raw?***", "s3://raw?***", True)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"name": "a", "config": {"connector.class": "x.Sink", "tasks.max": 3}}'),
        ("a.json", '{"connector.class": "x.Sink", "tasks.max": "3"}'),
        ("a.properties", "name=a\nconnector.class=x.Sink\ntasks.max=3\n"),
        ("c.json", '{"name": "a", "config": [CLASS, {"config": "tasks.max", "value": "3"}]}'),
    ],
)  # fmt: skip
def test_connectors_in_files(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text.replace("CLASS", '{"config": "connector.class", "value": "x.Sink"}'))
    wanted = read_connector(path)
    assert wanted.name == "a"
    assert wanted.config == {"name": "a", "connector.class": "x.Sink", "tasks.max": "3"}


def test_variables_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    config = {
        "connector.class": "x.Sink",
        "url": "http://${HOST}:${PORT_1}",
        "password": "${file:${SECRETS}:key}",
        "table": "${topic}",
        "type": "x.Time$Value",
    }
    path.write_text(json.dumps({"name": "a", "config": config}))
    variables = {"HOST": 'h"', "PORT_1": "${HOST}", "SECRETS": "/s"}
    assert read_connector(path, variables).config == {
        "name": "a",
        "connector.class": "x.Sink",
        "url": 'http://h":${HOST}',
        "password": "${file:/s:key}",
        "table": "${topic}",
        "type": "x.Time$Value",
    }
    with pytest.raises(UsageError, match=r"a\.json: not set in the environment: PORT_1, SECRETS"):
        read_connector(path, {"HOST": "h"})


def test_what_a_plug_in_finds_wrong() -> None:
    answer = {
        "error_count": 1,
        "configs": [
            {"value": {"name": "topic", "errors": ["Missing required configuration"]}},
            {"value": {"name": "file", "errors": []}},
        ],
    }
    assert faults(answer) == ["topic: Missing required configuration"]
