"""Credentials that a producer lets slip go no further than the door."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lineage.secrets import clean, holds_secret
from headwater.server.store.keep.rebuild import export, rebuild, verify

from .making import dataset, event, facet

if TYPE_CHECKING:
    from headwater.server.store import Store

    from .conftest import Client

SLIPS: dict[str, dict[str, Any]] = {
    "namespace": event("START", 0, inputs=[dataset("t", "postgres://me:hunter2@db:5432")]),
    "name": event("START", 0, inputs=[dataset("https://me:hunter2@host/x")]),
    "uri": event("START", 0, inputs=[
        dataset("t", dataSource=facet(name="db", uri="jdbc:mysql://db/x?user=me&password=hunter2"))]),
    "column": event("START", 0, outputs=[dataset("t", columnLineage=facet(fields={"id": {"inputFields": [
        {"namespace": "mongodb://me:hunter2@db:27017", "name": "a", "field": "id"}]}}))]),
    "property": event("START", 0, run_facets={"spark_properties": facet(
        properties={"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.app.name": "kept"})}),
    "producer": {**event("START", 0), "producer": "https://me:hunter2@example.com/x"},
    "job": event("START", 0, job="load postgres://me:hunter2@db/x"),
    "message": event("FAIL", 0, run_facets={"errorMessage": facet(
        message="login failed: Server=db;Password=hunter2;", programmingLanguage="JAVA",
        stackTrace="at x\nCaused by: host=db user=me password=hunter2 dbname=shop")}),
    "query": event("START", 0, job_facets={"sql": facet(query="CREATE USER me IDENTIFIED BY 'hunter2'")}),
    "environment": event("START", 0, run_facets={"environmentVariables": facet(
        environmentVariables=[{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}])}),
    "azure": event("START", 0, run_facets={"spark_properties": facet(
        properties={"spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": "hunter2"})}),
    "header": event("START", 0, run_facets={"request": facet(headers={"Authorization": "hunter2"}, token="hunter2")}),
    "webhook": event("START", 0, outputs=[dataset("t", dataSource=facet(
        name="x", uri="https://hooks.slack.com/services/T0000/B0000/hunter2hunter2"))]),
    "member": {**event("START", 0), "password": "hunter2"},
    "key of a member": {**event("START", 0), "password=hunter2": {"a": 1}},
    "key": event("START", 0, run_facets={"spark_properties": facet(
        properties={"AccountKey=hunter2==": 1, "AccountKey=hunter2hunter2==": 2})}),
    "facet of a run": event("START", 0, run_facets={"password=hunter2": facet(a=1)}),
    "facet of a job": event("START", 0, job_facets={"eyJhbGciOiJIUzI1NiJ9.eyJzdWIhunter2.x": facet(a=1)}),
    "facet of a dataset": event("START", 0, inputs=[
        {**dataset("t"), "facets": {"Server=x;Pwd=hunter2;": facet(a=1)}}]),
    "facet of an input": event("START", 0, inputs=[
        {**dataset("t"), "inputFacets": {"-----BEGIN PRIVATE KEY-----hunter2": facet(a=1)}}]),
    "column's name": event("START", 0, outputs=[dataset("t", columnLineage=facet(fields={"pwd=hunter2": {
        "inputFields": [{"namespace": "n", "name": "a", "field": "token=hunter2hunter2"}]}}))]),
}  # fmt: skip


@pytest.mark.parametrize("case", SLIPS)
@pytest.mark.parametrize("form", ["compact", "spaced", "escaped"])
def test_what_slips_in_is_masked_before_it_is_kept(store: Store, case: str, form: str) -> None:
    text = json.dumps(SLIPS[case], separators=(",", ":") if form != "spaced" else None)
    body = (text.replace("/", "\\/") if form == "escaped" else text).encode()
    first, second = store.append([body, body])
    assert (first.error, first.seq, second.duplicate) == (None, 1, True)
    assert store.append([body])[0].duplicate
    assert b"hunter2" not in b"".join(export(store))
    for table in ("namespace", "dataset", "job", "source"):
        rows = store.connection.all(f"SELECT name FROM {table}")
        assert "hunter2" not in repr(rows)
    for dictionary, packed in store.connection.all("SELECT dictionary, body FROM facet"):
        assert b"hunter2" not in store.packer.unpack(dictionary, bytes(packed))
    assert verify(store) == 1
    assert rebuild(store) == 1


def test_a_text_met_before_under_another_key_is_a_secret_under_this_one(store: Store) -> None:
    for minute, key in enumerate(("comment", "password", "producer", "clientSecret")):
        sent = {**event("START", minute), key: "hunter2"}
        sent["job"] = {**sent["job"], key: "hunter2"}
        assert store.append([json.dumps(sent, separators=(",", ":")).encode()])[0].error is None
    kept = b"".join(export(store))
    assert b'"password":"hunter2"' not in kept
    assert b'"clientSecret":"hunter2"' not in kept
    assert kept.count(b'"hunter2"') == 4  # under the keys that hold no secret


def test_facets_whose_names_are_masked_alike_are_all_kept(store: Store) -> None:
    names = [f"password=hunter2-{n}" for n in range(3)]
    sent = event("START", 0, run_facets={name: facet(a=n) for n, name in enumerate(names)})
    assert store.append([json.dumps(sent).encode()])[0].error is None
    kept = json.loads(b"".join(export(store)))
    found = {k: v["a"] for k, v in kept["run"]["facets"].items() if k.startswith("password")}
    assert found == {"password=***": 0, "password=*** (2)": 1, "password=*** (3)": 2}


REFUSED: dict[str, dict[str, Any]] = {
    "time": {**event("START", 0), "eventTime": "postgres://me:hunter2@db"},
    "depth": {**event("START", 0), "password=hunter2": json.loads("[" * 70 + "]" * 70)},
    "column": event("START", 0, outputs=[dataset("t", columnLineage=facet(fields={"pwd=hunter2": 5}))]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_the_reason_of_a_refusal_holds_no_credential(client: Client, case: str) -> None:
    sent = REFUSED[case]
    one = client.call("POST", "/api/v1/lineage", content=json.dumps(sent))
    several = client.call("POST", "/api/v1/lineage/batch", content=json.dumps([sent]))
    assert one.status_code == 422
    assert "hunter2" not in one.text + several.text
    assert "hunter2" not in client.call("GET", "/metrics").text
    assert "hunter2" not in repr(client.app.refusals)


@pytest.mark.parametrize(
    "harmless",
    [
        event("START", 0, inputs=[dataset("p", "abfss://container@account.dfs.core.windows.net")]),
        event("START", 0, outputs=[dataset("t", schema=facet(fields=[{"name": "password", "type": "s"}]))]),
        event("START", 0, job_facets={"ownership": facet(owners=[{"name": "ada@example.com"}])}),
        event("START", 0, job_facets={"sql": facet(query="SELECT token = t.token FROM t")}),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_credential_stays_as_it_was_sent(harmless: dict[str, Any]) -> None:
    body = json.dumps(harmless).encode()
    assert clean(body) is body


def test_most_events_hold_no_secret() -> None:
    body = json.dumps(event("START", 0, inputs=["a"], outputs=["b"])).encode()
    assert not holds_secret(body)
