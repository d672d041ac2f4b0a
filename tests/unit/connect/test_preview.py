"""A connector that is not deployed: the event it would send, and why."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect.commands.connector_file import (
    connector_from,
    connector_in,
    read_connector,
)  # fmt: skip
from headwater.connect.commands.preview import GivenMetadata, preview, preview_text, read_schema
from headwater.errors import UsageError
from headwater.lineage.schema import SchemaError

from .cases import cases

if TYPE_CHECKING:
    from pathlib import Path

AVRO = '{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}'
DOCUMENT: dict[str, Any] = {
    "name": "orders-s3",
    "config": {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "orders",
        "s3.bucket.name": "lake",
        "key.converter.schemas.enable": False,
    },
}


def test_the_start_event_of_a_file() -> None:
    given = GivenMetadata("k1:9092", {"orders": read_schema(AVRO)}.get)
    _, found = preview(connector_from(DOCUMENT), given)
    assert found["eventType"] == "START"
    assert (found["job"]["namespace"], found["job"]["name"]) == ("default", "orders-s3")
    assert [(d["namespace"], d["name"]) for d in found["inputs"]] == [("kafka://k1:9092", "orders")]
    assert [(d["namespace"], d["name"]) for d in found["outputs"]] == [
        ("s3://lake", "topics/orders")
    ]
    assert found["outputs"][0]["facets"]["schema"]["fields"] == [{"name": "id", "type": "long"}]
    assert found["run"]["runId"][14] == "7"


LABS = [case for case in cases() if case["file"] == "lab"]


@pytest.mark.parametrize("case", LABS, ids=lambda case: case["case"])
def test_the_six_connectors_of_the_labs_as_a_person_previews_them(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from headwater.cli.main import _run

    assert len(LABS) == 6
    file = tmp_path / "connector.json"
    file.write_text(json.dumps({"name": "as-deployed", "config": case["config"]}))
    words = ["--config", str(file), "--type", case["type"], "--kafka-bootstrap", case["bootstrap"]]
    if case.get("topics"):
        words += ["--topics", ",".join(case["topics"])]
    for topic, fields in case.get("schemas", {}).items():
        schema = tmp_path / f"{topic}.avsc"
        value = fields["value"] if isinstance(fields, dict) else fields
        listed = [
            {"name": name, "type": kind or "string"}
            for name, _, kind in (f.partition(":") for f in value)
        ]
        schema.write_text(json.dumps({"type": "record", "name": "R", "fields": listed}))
        words += ["--schema", f"{topic}={schema}"]
    assert _run(["connect", "preview", *words, "--json"], debug=False) == 0
    event = json.loads(capsys.readouterr().out)
    given = case["config"]
    assert event["job"]["name"] == given["transforms.openlineage.connector.name"]
    for side in ("inputs", "outputs"):
        shown = [f"{d['namespace']} {d['name']}" for d in event[side]]
        assert shown == [text.split(" ", 1)[1] for text in case["expected"][side]]
    pairs = [
        (f"{i['namespace']} {i['name']}", f"{e['namespace']} {e['name']}")
        for e in event["job"]["facets"]["lineage"]["entries"]
        for i in e["inputs"]
    ]
    assert sorted(pairs) == sorted((e["from"], e["to"]) for e in case["expected"]["edges"])
    assert "user.info" not in json.dumps(event)


def test_the_environment_that_others_set_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from headwater.cli.main import _run
    from headwater.emit import destinations

    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "theirs")
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "kafka-9:9094")
    file, config = tmp_path / "connector.json", tmp_path / "openlineage.yml"
    file.write_text(json.dumps(DOCUMENT))
    assert _run(["connect", "preview", "--config", str(file), "--json"], debug=False) == 0
    event = json.loads(capsys.readouterr().out)
    assert event["job"]["namespace"] == "theirs"
    assert event["inputs"][0]["namespace"] == "kafka://kafka-9:9094"
    config.write_text(f"transport: {{type: file, log_file_path: {tmp_path}/events}}")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    assert [str(tmp_path) in one.shown for one in destinations()] == [True]
    monkeypatch.delenv("OPENLINEAGE_CONFIG")
    monkeypatch.setenv("OPENLINEAGE_URL", "http://lineage:5000")
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "hunter2")
    before = dict(os.environ)
    assert ["http://lineage:5000" in one.shown for one in destinations()] == [True]
    assert dict(os.environ) == before, "the key would reach the children of this process"


def test_a_variable_of_a_pasted_configuration_is_told_as_not_filled_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARCHIVE_BUCKET", "of-the-server")
    config = {
        **DOCUMENT["config"],
        "s3.bucket.name": "${ARCHIVE_BUCKET}",
        "s3.region": "${AWS_REGION}",
        "path": "${topic}/${file:/keys:bucket}/${ARCHIVE_BUCKET}",
    }
    found = preview_text(json.dumps({"name": "a", "config": config}), "k:9092", lambda _topic: None)
    assert found["outputs"] == [{"namespace": "s3://${ARCHIVE_BUCKET}", "name": "topics/orders"}]
    assert [one.partition(" is not filled in here")[0] for one in found["problems"]] == [
        "${ARCHIVE_BUCKET}",
        "${AWS_REGION}",
    ]
    many = {**config, **{str(n): f"${{V{n}}}" for n in range(1000)}}
    assert len(preview_text(json.dumps(many), "k:9092", lambda _: None)["problems"]) == 50


def test_a_configuration_alone_is_enough() -> None:
    found = connector_from({**DOCUMENT["config"], "name": "x"})
    assert (found.name, found.type) == ("x", None)
    assert found.config["key.converter.schemas.enable"] == "false"


def test_an_array_of_pairs_is_a_configuration() -> None:
    pairs = [{"config": "connector.class", "value": "S3_SINK"}, {"config": "topics", "value": "a"}]
    assert connector_from({"name": "x", "config": pairs}).config == {
        "name": "x",
        "connector.class": "S3_SINK",
        "topics": "a",
    }


@pytest.mark.parametrize("text", ["", "[1]", "{", "{}", '{"name": "x", "config": {}}'])
def test_a_file_without_a_connector_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"c\.json"):
        read_connector(path)


@pytest.mark.parametrize("text", ["garbage {", "[1]", "{", "{}", '{"config": 7}'])
def test_a_refusal_of_a_pasted_text_says_what_is_wrong_with_what(text: str) -> None:
    with pytest.raises(UsageError, match=r"^the configuration (has|is) ") as refused:
        connector_in(text)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (AVRO, ["id"]),
        (json.dumps({"schema": AVRO}), ["id"]),
        ('{"type": "object", "properties": {"a": {"type": "string"}}}', ["a"]),
        ('{"type": "struct", "fields": [{"field": "f", "type": "int32"}]}', ["f"]),
        ('syntax = "proto3"; message M { string p = 1; }', ["p"]),
    ],
)
def test_schemas_of_every_format(text: str, names: list[str]) -> None:
    assert [field.name for field in read_schema(text).fields] == names


def test_a_schema_that_is_none() -> None:
    with pytest.raises(SchemaError):
        read_schema("{")


def test_what_a_person_gave_is_not_called_observed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from headwater.cli.main import _run

    (tmp_path / "sink.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "orders.avsc").write_text(AVRO)
    words = ["--config", str(tmp_path / "sink.json"), "--topics", "orders"]
    words += ["--schema", f"orders={tmp_path / 'orders.avsc'}", "--json"]
    assert _run(["connect", "preview", *words], debug=False) == 0
    event = json.loads(capsys.readouterr().out)
    evidence = event["job"]["facets"]["headwater_evidence"]["datasets"][0]["evidence"]
    assert [(one["source"], one["detail"], one["observed"]) for one in evidence] == [
        ("option", "--topics", False),
        ("option", "--schema", False),
    ]
    assert "runtime topics" not in json.dumps(event)


def test_the_page_says_that_the_server_knows_a_schema() -> None:
    found = preview_text(json.dumps(DOCUMENT), "k:9092", {"orders": read_schema(AVRO)}.get)
    assert not [text for text in found["edges"][0]["evidence"] if "registry" in text]
