"""The event of a connector's run: every facet, strictly valid, no secrets."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from headwater.connect.derive.lineage import derive
from headwater.connect.model import Connector, ConnectorStatus, Task
from headwater.connect.run_event import failure_of, run_event
from headwater.lineage.model import Failure
from headwater.lineage.openlineage import events
from headwater.lineage.openlineage.writer import encode
from tests.strict_events import check

from .cases import CaseMetadata, cases, connector, settings

ROOT = Path(__file__).parents[3]
RUN = "01a1e237-b8ae-70df-b35d-2ffa4216251b"
NOW = datetime(2026, 8, 1, 12, tzinfo=timezone.utc)
STATUS = ConnectorStatus(
    "RUNNING", "w1:8083", "3.6.2",
    tasks=(Task(0, "RUNNING", "w1:8083", "3.6.2"), Task(1, "FAILED", "w2:8083", trace="boom")),
)  # fmt: skip


def made(case: dict[str, Any], **more: Any) -> dict[str, Any]:
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    given: dict[str, Any] = {
        "run_id": RUN,
        "state": events.EventType.RUNNING,
        "time": NOW,
        "status": STATUS,
    }
    return run_event(
        derived, connector(case), heartbeat=300, engine_version="4.3.1", **given | more
    )


def named(file: str, name: str) -> dict[str, Any]:
    return next(c for c in cases() if (c["file"], c["case"]) == (file, name))


def test_the_facets_of_a_run() -> None:
    found = made(named("jdbc", "a table for each topic") | {"cluster_id": "abc"}, cluster="shop")
    run, job = found["run"]["facets"], found["job"]["facets"]
    assert run["processing_engine"]["name"] == "kafka-connect"
    assert run["processing_engine"]["version"] == "4.3.1"
    assert run["headwater_connect"]["connectorVersion"] == "3.6.2"
    assert run["headwater_connect"]["cluster"] == "shop"
    assert [t["state"] for t in run["headwater_connect"]["tasks"]] == ["RUNNING", "FAILED"]
    assert job["jobType"]["processingType"] == "STREAMING"
    assert job["jobType"]["integration"] == "KAFKA_CONNECT"
    assert job["jobType"]["jobType"] == "JDBC"
    assert job["jobType"]["emissionPattern"] == {
        "eventTrigger": "PERIODIC",
        "eventContentMode": "COMPLETE_SNAPSHOT",
        "windowDuration": 300,
    }
    topic = found["inputs"][0]["facets"]
    assert topic["datasetType"]["datasetType"] == "TOPIC"
    assert topic["headwater_cluster"]["clusterId"] == "abc"
    assert topic["headwater_cluster"]["bootstrap"] == ["k1:9092"]
    assert topic["version"]["datasetVersion"] == "1"
    assert topic["dataSource"]["uri"] == "kafka://k1:9092"


def test_what_plain_keys_say_of_a_connector() -> None:
    base = named("jdbc", "a table for each topic")
    said = {
        "headwater.documentation": "Copies orders for the shop.",
        "headwater.owners": "shop-team=maintainer, ann",
        "headwater.tags": "tier=gold, pii",
    }
    case = {**base, "config": {**base["config"], **said}}
    job = made(case)["job"]["facets"]
    assert job["documentation"]["description"] == "Copies orders for the shop."
    owners = [(o["name"], o.get("type")) for o in job["ownership"]["owners"]]
    assert owners == [("shop-team", "maintainer"), ("ann", None)]
    tags = [(t["key"], t["value"]) for t in job["tags"]["tags"]]
    assert tags == [("tier", "gold"), ("pii", "true")]


def test_lineage_is_pair_by_pair() -> None:
    found = made(named("jdbc", "a table for each topic"))
    entries = found["job"]["facets"]["lineage"]["entries"]
    pairs = {entry["name"]: [item["name"] for item in entry["inputs"]] for entry in entries}
    assert pairs == {"shop.public.orders": ["orders"], "shop.public.items": ["items"]}
    assert set(entries[0]["fields"]) == {"id", "name", "price"}
    older = {o["name"]: o["facets"]["columnLineage"]["fields"] for o in found["outputs"]}
    assert {f["name"] for f in older["shop.public.items"]["sku"]["inputFields"]} == {"items"}


def test_catalog_and_symlinks() -> None:
    found = made(named("iceberg", "a REST catalog that answers"))
    facets = found["outputs"][0]["facets"]
    assert facets["catalog"]["framework"] == "iceberg"
    assert facets["catalog"]["type"] == "rest"
    assert facets["catalog"]["name"] == "lab"
    assert facets["symlinks"]["identifiers"] == [
        {"namespace": "http://127.0.0.1:28181", "name": "default.orders", "type": "TABLE"}
    ]


def test_evidence_of_every_edge() -> None:
    found = made(named("object_stores", "S3"))
    edges = found["job"]["facets"]["headwater_evidence"]["edges"]
    assert [e["evidence"][0]["observed"] for e in edges] == [True, True]
    assert edges[0]["evidence"][1] == {
        "source": "config key", "detail": "s3.bucket.name", "observed": False,
    }  # fmt: skip


def test_a_failure_names_what_caused_it_and_not_only_what_connect_made_of_it() -> None:
    trace = (
        "org.x.ConnectException: Exiting WorkerSinkTask\n\tat a.b(C.java:1)\n"
        "Caused by: org.x.DataException: topic orders\n\tat a.c(C.java:2)\n"
        "Caused by: java.io.IOException: Unknown magic byte!\n\t... 11 more\n"
        "\tSuppressed: org.x.CloseException: consumer\n\t\tat a.d(C.java:3)\n"
        "\tCaused by: java.net.SocketException: Broken pipe\n\t\t... 12 more\n"
    )
    status = ConnectorStatus("RUNNING", tasks=(Task(0, "FAILED", trace=trace),))
    found = failure_of(status, Connector("c", "sink", {"topics": "t"}))
    assert found is not None
    assert found.message == (
        "task 0 FAILED: org.x.ConnectException: Exiting WorkerSinkTask;"
        " caused by: java.io.IOException: Unknown magic byte!"
    )


def test_a_failure_names_the_tasks_and_hides_secrets() -> None:
    item = Connector("c", "sink", {"connection.password": "hunter22", "topics": "t"})
    status = ConnectorStatus("RUNNING", tasks=(
        Task(0, "RUNNING"),
        Task(1, "FAILED", trace="java.lang.X: login with hunter22 failed\n\tat a.b(C.java:1)"),
        Task(2, "FAILED", trace="java.lang.Y: jdbc:mysql://u:hunter22@h/x"),
    ))  # fmt: skip
    found = failure_of(status, item)
    assert found is not None
    assert found.message == "task 1, task 2 FAILED: java.lang.X: login with *** failed"
    assert "C.java:1" in found.stack_trace
    assert "task 2: java.lang.Y" in found.stack_trace
    assert "hunter22" not in found.message + found.stack_trace
    assert failure_of(ConnectorStatus("RUNNING", tasks=(Task(0, "RUNNING"),)), item) is None
    whole = failure_of(ConnectorStatus("FAILED", trace="no class"), item)
    assert whole is not None
    assert whole.message == "connector FAILED: no class"


def test_an_error_is_scrubbed_again_in_the_event() -> None:
    case = named("jdbc", "a table for each topic")
    found = made(
        case, state=events.EventType.FAIL, failure=Failure("wrong s3cr3t-pg", "at s3cr3t-pg")
    )
    assert found["run"]["facets"]["errorMessage"]["message"] == "wrong ***"
    assert found["run"]["facets"]["errorMessage"]["programmingLanguage"] == "JAVA"
    assert "s3cr3t-pg" not in json.dumps(found)


def test_the_same_arguments_give_the_same_bytes() -> None:
    case = named("jdbc", "a table for each topic")
    derived = derive(connector(case), CaseMetadata(case), settings(case))
    args: dict[str, Any] = {"run_id": RUN, "state": events.EventType.COMPLETE, "time": NOW}
    first = encode(run_event(derived, connector(case), **args))
    assert first == encode(run_event(derived, connector(case), **args))
    read = events.read(first, now=NOW + timedelta(hours=1))
    assert read.type is events.EventType.COMPLETE
    assert {d.name for d in read.datasets} >= {"orders", "shop.public.orders"}


def test_more_run_facets() -> None:
    found = made(named("jdbc", "a table for each topic"), facets={"headwater_flow": {"rate": 1.5}})
    facet = found["run"]["facets"]["headwater_flow"]
    assert facet["rate"] == 1.5
    assert facet["_producer"].startswith("urn:headwater:connect:")


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        made(named("jdbc", "quoted names"), time=datetime(2026, 8, 1))  # noqa: DTZ001


def test_a_source_has_an_address_only_where_its_namespace_is_one() -> None:
    found = {
        d["namespace"]: d["facets"]["dataSource"].get("uri")
        for case in cases()
        for d in (made(case)["inputs"] + made(case)["outputs"])
    }
    assert found["kafka://k1:9092"] == "kafka://k1:9092"
    assert found["file"] is None
    assert [space for space in found if space.startswith("spanner://")]
    for namespace, uri in found.items():
        if namespace.startswith("spanner://"):
            assert uri is None
        if uri:
            assert urlsplit(uri).scheme


def test_every_event_is_valid() -> None:
    told = [made(case | {"cluster_id": "abc"}, inferred=True, cluster="shop") for case in cases()]
    told += [
        made(case, state=events.EventType.FAIL, failure=Failure("no", "trace"), inferred=True)
        for case in cases()[:20]
    ]
    check(told)
    for event in told:
        events.read(json.dumps(event).encode(), now=NOW + timedelta(hours=1))
