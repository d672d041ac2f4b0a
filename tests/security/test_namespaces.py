"""A token limited to namespaces reads nothing of any other, whatever is asked."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timezone
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.cli.server.serve import _with_preview
from headwater.errors import UsageError
from headwater.server.alerts.rules import read_rules
from headwater.server.api.openapi import document
from headwater.server.app import ServerSettings
from headwater.server.http.auth import create_token, list_tokens
from headwater.server.live import Message
from headwater.server.store import open_store
from headwater.server.store.database.schema import ALL_TABLES
from headwater.server.store.read.namespace_limit import LIMITED, UNLIMITED, Limit
from tests.integration.server.conftest import Client
from tests.integration.server.making import columns, dataset, event, facet, run_id, schema
from tests.integration.server.test_answers import Command
from tests.security.attacks import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

    from headwater.server.store import Store

MARK = "hidxyz"
SPACE, TEAM = f"postgres://{MARK}-db:5432", f"{MARK}-team"
ADMIN = "an-admin-key"
SEEN = ("shop", "s3://lake")


def of(namespace: str, made: dict[str, Any]) -> dict[str, Any]:
    made["job"]["namespace"] = namespace
    return made


def hidden(name: str, **facets: Any) -> dict[str, Any]:
    return dataset(f"{MARK}_{name}", SPACE, **facets)


def estate() -> list[dict[str, Any]]:
    """Two teams whose data flows into each other's in every way that events can say."""
    source = {"namespace": SPACE, "name": f"{MARK}_raw", "field": f"{MARK}_id"}
    mixed = columns(id=("raw", "id"))
    mixed["fields"]["id"]["inputFields"].append(source)
    symlinks = facet(identifiers=[{"namespace": SPACE, "name": f"{MARK}_link", "type": "TABLE"}])
    wrote = dataset("orders", schema=schema("id"), columnLineage=mixed, symlinks=symlinks)
    parent = facet(run={"runId": run_id(7)}, job={"namespace": TEAM, "name": f"{MARK}_parent"})
    part = facet(namespace=TEAM, name=f"{MARK}_whole")
    kind = facet(processingType="STREAMING", integration="KAFKA_CONNECT", jobType="CONNECTOR")
    connect = facet(connectorClass=f"{MARK}.Connector", state="RUNNING", tasks=[])
    raw = hidden("raw", schema=schema(f"{MARK}_id"),
                 dataSource=facet(name=f"{MARK}-source", uri=SPACE),
                 columnLineage=columns(**{f"{MARK}_id": ("orders", "id")}))  # fmt: skip
    found: list[dict[str, Any]] = []
    for run, state in ((1, "START"), (1, "COMPLETE"), (2, "START")):
        second = 10 * run + len(found)
        found.append(of("shop", event(state, second, run=run, job="load",
                        inputs=[dataset("raw", schema=schema("id")), raw, hidden("in")],
                        outputs=[wrote, hidden("copy")], run_facets={"parent": parent})))  # fmt: skip
    found.append(of("shop", event("START", 60, run=3, job="task", outputs=["orders"],
                                  job_facets={"headwater_partOf": part})))  # fmt: skip
    for run, job in ((4, "other"), (7, "parent"), (8, "whole")):
        found.append(of(TEAM, event("START", 70 + run, run=run, job=f"{MARK}_{job}", inputs=["orders"],
                        outputs=[raw], job_facets={"jobType": kind},
                        run_facets={"headwater_connect": connect})))  # fmt: skip
    failed = facet(message=f"{MARK} failed", programmingLanguage="JAVA")
    found.append(of(TEAM, event("FAIL", 99, run=4, job=f"{MARK}_other", run_facets={"errorMessage": failed})))  # fmt: skip
    alone = event("START", 98)
    for key in ("run", "job", "eventType"):
        del alone[key]
    found.append({**alone, "dataset": hidden("alone", schema=schema(f"{MARK}_col"))})
    return found


@pytest.fixture
def limited(store_url: str) -> Iterator[tuple[Client, str]]:
    """A server with that estate, and a token that may read only one team's part."""
    store = open_store(store_url)
    token = create_token(store, "shop", "read", ["shop", "s3://*"])
    client = Client(store, ServerSettings(tokens=[ADMIN]))
    for made in estate():
        assert ask(
            client, ADMIN, "/api/v1/lineage", method="POST", content=json.dumps(made)
        ).is_success
    by_hand(client)
    yield client, token
    client.close()


def by_hand(client: Client) -> None:
    now = datetime.now(timezone.utc).isoformat()
    space = quote(SPACE, safe="")
    sample = {"run": run_id(4), "time": now, "direction": "input", "recordsPerSecond": 5,
              "dataset": {"namespace": SPACE, "name": f"{MARK}_raw"}}  # fmt: skip
    for method, path, body in (
        ("PUT", f"/api/v1/tags/{MARK}-tag", {"description": f"of {MARK}"}),
        ("POST", f"/api/v1/namespaces/{space}/datasets/{MARK}_raw/tags/{MARK}-tag", None),
        ("POST", "/api/v2/aliases", {"dataset": {"namespace": "s3://lake", "name": "orders"},
                                     "alias": {"namespace": SPACE, "name": f"{MARK}_alias"}}),
        ("PUT", f"/api/v1/namespaces/{TEAM}", {"ownerName": MARK, "description": MARK}),
        ("POST", "/api/v2/flow", {"samples": [sample]}),
    ):  # fmt: skip
        answer = ask(client, ADMIN, path, method=method, content=json.dumps(body) if body else b"")
        assert answer.is_success, (path, answer.text)


def ask(client: Client, token: str, path: str, method: str = "GET", **more: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    return client.call(method, path, headers=headers, **more)


VALUES = {
    "namespace": ["shop", "s3://lake", SPACE, TEAM], "dataset": ["orders", f"{MARK}_raw"],
    "job": ["load", f"{MARK}_other"], "id": [run_id(1), run_id(3), run_id(4)], "runId": [run_id(1), run_id(4)],
    "source": ["s3://lake", f"{MARK}-source"], "q": ["o", MARK], "run": ["", run_id(4)],
    "node": ["job:shop:load", "dataset:s3://lake:orders", f"job:{TEAM}:{MARK}_other", f"dataset:{SPACE}:{MARK}_raw"],
    "origin": ["job:shop:load", f"job:{TEAM}:{MARK}_other", f"dataset:{SPACE}:{MARK}_raw"],
    "destination": ["dataset:s3://lake:orders", f"dataset:{SPACE}:{MARK}_raw", "job:shop:load"],
    "from": ["2025-01-01T00:00:00Z"], "withDownstream": ["true"], "columns": ["true"],
    "version": [run_id(1)], "tag": [f"{MARK}-tag"],
}  # fmt: skip
VALUES["nodeId"] = VALUES["node"]


def calls(client: Client) -> Iterator[tuple[str, dict[str, str]]]:
    """Every GET of the description, with what is visible and with what is hidden."""
    for path, methods in document(client.app)["paths"].items():
        if "get" not in methods or methods["get"]["x-role"] == "none" or path == "/api/v2/live":
            continue
        asked = [p for p in methods["get"]["parameters"] if p["name"] in VALUES]
        for chosen in product(*(VALUES[p["name"]] for p in asked)):
            filled, query = path, {}
            for parameter, value in zip(asked, chosen, strict=True):
                if parameter["in"] == "path":
                    filled = filled.replace("{" + parameter["name"] + "}", quote(value, safe=""))
                elif value:
                    query[parameter["name"]] = value
            yield filled, query


def test_no_route_names_what_is_hidden(limited: tuple[Client, str]) -> None:
    client, token = limited
    told: set[str] = set()
    leaks, wrong = [], []
    for path, query in calls(client):
        whole = ask(client, ADMIN, path, params=query)
        part = ask(client, token, path, params=query)
        if part.status_code >= 500 or part.status_code in (401, 403):
            wrong.append((path, query, part.status_code, whole.status_code))
        if whole.is_success and MARK in whole.text:
            told.add(path)
        text = part.text
        if not part.is_success:  # it may repeat the question
            for value in (
                *query.values(),
                SPACE,
                TEAM,
                f"{MARK}_raw",
                f"{MARK}_other",
                f"{MARK}-source",
                f"{MARK}-tag",
            ):
                text = text.replace(value, "")
        if MARK in text or (part.is_success and MARK in quote(path)):
            leaks.append((path, query, text[:600]))
        elif part.is_success and part.headers["content-type"] == "application/json":
            assert part.headers["x-headwater-hidden"].startswith("jobs=3, datasets=4, beside="), (
                path
            )
    assert wrong == []
    assert leaks == []
    assert len(told) > 30  # the same questions of an administrator do name it


REFUSED = [
    {**estate()[0], f"{MARK}_deep": json.loads("[" * 70 + "]" * 70)},
    {**estate()[0], "eventTime": f"{MARK} o'clock"},
    {**estate()[0], "run": {"runId": 5}, f"{MARK}_other": 1},
    of("shop", event("START", 1, outputs=[dataset("t", columnLineage=facet(fields={MARK: 5}))])),
]


@pytest.mark.parametrize("path", ["/api/v1/lineage", "/api/v2/events"])
def test_reasons_of_refusals_are_counted_in_words_of_a_fixed_set(
    limited: tuple[Client, str], path: str
) -> None:
    client, token = limited
    bodies = [json.dumps(one) for one in REFUSED]
    bodies.append(f'{{"{MARK}": 1, "{MARK}": 2}}')
    for body in bodies:
        ask(client, ADMIN, path, method="POST", content=body)
    before = set(client.app.refusals)
    for number in range(30):
        where = {
            f"{MARK}_{number}": json.loads("[" * 70 + "]" * 70),
            "run": {f"{MARK}.{number}": {}},
        }
        ask(client, ADMIN, path, method="POST", content=json.dumps({**estate()[0], **where}))
    assert set(client.app.refusals) == before
    text = ask(client, token, "/api/v2/metrics").text
    assert 'reason="event: nested deeper"' in text
    assert 'reason="eventTime: not an RFC 3339 time"' in text
    assert MARK not in text
    assert MARK not in ask(client, ADMIN, "/api/v2/metrics").text


def test_what_may_be_read_is_answered(limited: tuple[Client, str]) -> None:
    client, token = limited
    found = ask(client, token, "/api/v1/lineage", params={"nodeId": "job:shop:load"}).json()
    assert {node["id"] for node in found["graph"]} >= {"job:shop:load", "dataset:s3://lake:orders"}
    job = ask(client, token, "/api/v1/namespaces/shop/jobs/load")
    assert job.headers["x-headwater-hidden"].endswith("beside=6")  # raw, in, copy; orders' readers
    names = [one["name"] for one in ask(client, token, "/api/v1/namespaces").json()["namespaces"]]
    assert sorted(names) == sorted(SEEN)
    paths = ask(client, token, "/api/v2/columns", params={"node": "dataset:s3://lake:orders"})
    assert "raw" in paths.text
    (one,) = ask(client, token, "/api/v1/namespaces/shop/jobs?limit=1").json()["jobs"]
    assert one["namespace"] == "shop"
    assert ask(client, token, "/api/v1/tags/x", method="PUT", content=b"{}").status_code == 403


def test_nothing_is_called_unused_because_its_users_are_hidden(limited: tuple[Client, str]) -> None:
    client, token = limited
    # A dataset that only a hidden team uses, under a name that is hidden too; and one that none uses.
    made = [
        of(TEAM, event("START", 80, run=20, job=f"{MARK}_clear", outputs=[hidden("users")])),
        of("shop", event("START", 81, run=21, job="export", inputs=[hidden("in")])),
        of("shop", event("START", 82, run=22, job="idle")),
    ]
    for name in ("users", "lonely"):
        alone = {**event("START", 83), "dataset": dataset(name)}
        for key in ("run", "job", "eventType"):
            del alone[key]
        made.append(alone)
    for one in made:
        sent = ask(client, ADMIN, "/api/v1/lineage", method="POST", content=json.dumps(one))
        assert sent.is_success, sent.text
    alias = {"dataset": {"namespace": "s3://lake", "name": "users"},
             "alias": {"namespace": SPACE, "name": f"{MARK}_users"}}  # fmt: skip
    sent = ask(client, ADMIN, "/api/v2/aliases", method="POST", content=json.dumps(alias))
    assert sent.is_success, sent.text
    found = ask(client, token, "/api/v2/doctor").json()
    unused = {f["node"] for f in found["findings"] if f["kind"] in ("orphan", "no outputs")}
    assert {"dataset:s3://lake:lonely", "job:shop:idle"} <= unused
    assert not {"dataset:s3://lake:users", "job:shop:export"} & unused
    assert found["counts"]["orphan"] == sum(f["kind"] == "orphan" for f in found["findings"])
    for question in ("why", "freshness"):
        path = f"/api/v2/datasets/{quote('s3://lake', safe='')}/users/{question}"
        answer = ask(client, token, path)
        assert (answer.json()["verdict"], answer.json()["hidden"]) == ("unknown", 1)
        assert ask(client, ADMIN, path).json()["hidden"] == 0
    asked = {"node": "dataset:s3://lake:users"}
    traced = ask(client, token, "/api/v2/trace", params=asked)
    assert traced.headers["x-headwater-hidden"].endswith("beside=1")
    assert traced.json()["hidden"] == 1
    assert ask(client, ADMIN, "/api/v2/trace", params=asked).json()["hidden"] == 0


def test_what_a_limited_reader_seeks_first_is_found_by_others_later(
    limited: tuple[Client, str],
) -> None:
    client, token = limited
    query = {"q": f"{MARK}_raw"}
    assert ask(client, token, "/api/v2/search", params=query).json()["results"] == []
    assert ask(client, ADMIN, "/api/v2/search", params=query).json()["results"]
    assert ask(client, token, "/api/v2/names", params={"q": f"{MARK}_ra"}).json()["nearest"] == []
    near = ask(client, ADMIN, "/api/v2/names", params={"q": f"{MARK}_ra"}).json()["nearest"]
    assert near[0]["name"] == f"{MARK}_raw"


def test_the_live_stream_is_limited_too(limited: tuple[Client, str]) -> None:
    client, token = limited
    limit = client.app.auth.limit(f"Bearer {token}".encode())

    async def read() -> str:
        found, stream = b"", client.app.live.listen(0, limit)
        async for chunk in stream:
            found += chunk
            if b'"task"' in chunk and b"event: run" in chunk:
                return found.decode()
        return ""

    text = asyncio.run(asyncio.wait_for(read(), 20))
    assert '"shop"' in text
    assert MARK not in text
    sample = {"dataset": {"namespace": SPACE, "name": "x"}}
    assert not Message(0, "flow", json.dumps(sample).encode()).seen(limit)


def test_of_an_address_in_a_text_nothing_is_left_and_its_likes_stay(store_url: str) -> None:
    """What follows a namespace in an address is the name of a dataset."""
    store = open_store(store_url)
    token = create_token(store, "shop", "read", ["shop", "s3://team-b", "postgres://db:54321"])
    client = Client(store, ServerSettings(tokens=[ADMIN]))
    seen = "s3://team-b/x, postgres://db:54321/y and s3://team.c/z"
    left = [
        ("s3://team", f"{MARK}/a"), ("s3://team-b/deep", f"{MARK}/b"), ("postgres://db:5432", f"{MARK}.c"),
        ("S3://Odd", f"{MARK}/d"), ("kafka://a:9092,b:9092", f"{MARK}-e"),
    ]  # fmt: skip
    texts = [f"{space}/{name}" for space, name in left]
    texts += [f"s3a://team/{MARK}", f'{{"jdbc:postgresql://db:5432/{MARK}"}}']
    failed = facet(message=f"none of {' '.join(texts)}: {seen}", programmingLanguage="JAVA")
    inputs = [dataset(name, space) for space, name in left]
    inputs += [dataset("x", "s3://team-b"), dataset("y", "postgres://db:54321")]
    made = of("shop", event("FAIL", 1, inputs=inputs, run_facets={"errorMessage": failed}))
    try:
        sent = ask(client, ADMIN, "/api/v1/lineage", method="POST", content=json.dumps(made))
        assert sent.is_success, sent.text
        for path in (f"/api/v2/runs/{run_id(1)}", "/api/v1/events"):
            answer = ask(client, token, path)
            assert answer.is_success
            assert MARK not in answer.text
            assert seen in answer.text
        spaces = ask(client, token, "/api/v1/namespaces").json()["namespaces"]
        assert {one["name"] for one in spaces} == {"shop", "s3://team-b", "postgres://db:54321"}
    finally:
        client.close()


def test_every_table_is_limited_or_holds_no_names() -> None:
    assert set(ALL_TABLES) == LIMITED.keys() | UNLIMITED
    assert not LIMITED.keys() & UNLIMITED


def test_patterns() -> None:
    limit = Limit(("shop", "team-*"))
    assert [n for n in ("shop", "shop2", "team-", "team-a", "tea", "") if limit.allows(n)] == [
        "shop", "team-", "team-a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("role", "names"),
    [("write", ["a"]), ("admin", ["a"]), ("read", ["*"]), ("read", ["a*b"]), ("read", [""])],
)
def test_a_limit_that_would_not_hold_is_refused(store: Store, role: str, names: list[str]) -> None:
    with pytest.raises(UsageError):
        create_token(store, "x", role, names)
    assert list_tokens(store.connection) == []


def test_every_answer_that_a_limited_token_gets_counts_what_it_hides(
    limited: tuple[Client, str],
) -> None:
    client, token = limited

    def both(path: str, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        whole, part = (ask(client, one, path, **more) for one in (ADMIN, token))
        assert part.is_success, part.text
        assert MARK not in part.text, path
        return whole.json(), part.json()

    body = {"node": "dataset:s3://lake:orders", "changes": [{"kind": "drop", "column": "id"}]}
    asked = {"method": "POST", "content": json.dumps(body)}
    whole, part = both("/api/v2/impact", **asked)
    # Three jobs of the other team read it; nobody whom the token may see does.
    assert (whole["coverage"]["hidden"], part["coverage"]["hidden"]) == (0, 3)
    assert (part["jobs"], part["verdict"], part["counts"]["unknown"]) == ([], "unknown", 3)
    assert (part["coverage"]["complete"], part["truncated"]) == (False, False)
    body["node"] = "dataset:s3://lake:raw"
    whole, part = both("/api/v2/impact", **{**asked, "content": json.dumps(body)})
    assert (part["verdict"], part["coverage"]["hidden"]) == (whole["verdict"], 4)  # `copy` too

    orders = f"/api/v2/datasets/{quote('s3://lake', safe='')}/orders"
    for path in (f"{orders}/why", f"{orders}/freshness"):
        whole, part = both(path)
        assert (whole["hidden"], part["hidden"]) == (0, 2), path  # raw, in
    since = {"from": "2025-01-01T00:00:00Z"}
    for path, params in (
        ("/api/v2/graph/diff", since),
        ("/api/v2/graph/diff", {**since, "node": "dataset:s3://lake:orders"}),
        ("/api/v2/trace", {"node": "dataset:s3://lake:orders"}),
        (f"{orders}/audit", {}),
        ("/api/v2/doctor", {}),
    ):
        whole, part = both(path, params=params)
        assert whole["hidden"] == 0
        assert part["hidden"] > 0, path
    never = [{"one": "s3://lake:orders", "other": "s3://lake:raw"}]
    asked["content"] = json.dumps({"rules": {"never": never}})
    whole, part = both("/api/v2/doctor/findings", **asked)
    assert (whole["hidden"], part["hidden"]) == (0, view_hides(client, token))


def test_a_job_that_makes_columns_of_what_is_hidden_reports_columns(
    limited: tuple[Client, str],
) -> None:
    client, token = limited
    secret = {"namespace": SPACE, "name": f"{MARK}_secret", "field": f"{MARK}_k"}
    of_secret = facet(fields={"k": {"inputFields": [secret]}})
    made = dataset("made", schema=schema("k"), columnLineage=of_secret)
    for run, output in ((20, made), (21, dataset("quiet", schema=schema("k")))):
        inputs, name = ["raw", hidden("secret")], output["name"]
        sent = event("COMPLETE", 200, run=run, job=f"makes {name}", inputs=inputs, outputs=[output])
        posted = {"method": "POST", "content": json.dumps(of("shop", sent))}
        assert ask(client, ADMIN, "/api/v1/lineage", **posted).is_success

    def unknown(path: str, **params: str) -> tuple[list[str], int]:
        answer = ask(client, token, path, params=params)
        assert answer.is_success, answer.text
        assert MARK not in answer.text
        found = answer.json()
        return [one["job"] for one in found["unknown"]], found["hidden"]

    silent = "job:shop:makes quiet"
    for name, jobs in (("made", []), ("quiet", [silent])):
        found, count = unknown("/api/v2/trace", node=f"datasetField:s3://lake:{name}:k")
        assert (found, count) == (jobs, 0 if jobs else 1)
        why = f"/api/v2/datasets/{quote('s3://lake', safe='')}/{name}/why"
        assert unknown(why, column="k")[0] == jobs
    found, _ = unknown("/api/v2/trace", node="datasetField:s3://lake:raw:id", direction="down")
    assert silent in found
    assert "job:shop:makes made" not in found


def view_hides(client: Client, token: str) -> int:
    """How many jobs and datasets the header says are hidden from a token."""
    header = ask(client, token, "/api/v2/doctor").headers["x-headwater-hidden"]
    found = dict(one.split("=") for one in header.split(", "))
    return int(found["jobs"]) + int(found["datasets"])


def test_a_preview_has_no_columns_of_a_topic_that_is_hidden(limited: tuple[Client, str]) -> None:
    client, token = limited
    _with_preview(client.app)
    topic = dataset("clicks", "kafka://broker:9092", schema=schema(f"{MARK}_id"))
    sent = of(TEAM, event("START", 100, run=9, job=f"{MARK}_clicks", outputs=[topic]))
    assert ask(client, ADMIN, "/api/v1/lineage", "POST", content=json.dumps(sent)).is_success
    config = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": "clicks",
        "connection.url": "jdbc:postgresql://reports:5432/bi",
    }
    body = {"config": json.dumps({"name": "copy", "config": config}), "bootstrap": "broker:9092"}

    def previewed(who: str) -> list[Any]:
        asked = {"method": "POST", "content": json.dumps(body)}
        answer = ask(client, who, "/api/v2/connectors/preview", **asked)
        assert answer.is_success, answer.text
        return [edge["columns"] for edge in answer.json()["edges"]]

    assert previewed(ADMIN) == [[[f"{MARK}_id", f"{MARK}_id"]]]
    assert previewed(token) == [None]


def test_the_commands_say_how_much_is_hidden(
    limited: tuple[Client, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client, token = limited
    Command(client, monkeypatch)
    file = tmp_path / "token"
    file.write_text(token)

    def say(*words: str, code: int = 0) -> str:
        answer = CliRunner().invoke(app, [*words, "--token-file", str(file)])
        assert answer.exit_code == code, answer.output
        assert MARK not in answer.output
        return " ".join(answer.output.split())

    drop = ("impact", "s3://lake:orders", "--drop", "id")
    behind = "0 unaffected, 3 unknown (3 jobs or datasets behind it are hidden from you)"
    assert behind in say(*drop)
    shown = say(*drop, "--markdown")
    assert "3 unknown" in shown.split("|")[0]
    assert behind in shown
    say(*drop, "--strict", code=5)
    shown = say("why", "s3://lake:orders")
    assert "2 jobs or datasets upstream are hidden from you" in shown
    assert "7 jobs or datasets in the estate are hidden" in say("diff", "--from", "2025-01-01")
    around = say("diff", "--from", "2025-01-01", "--around", "s3://lake:orders")
    assert "jobs or datasets next to these are hidden" in around
    assert "7 jobs or datasets are hidden from you" in say("doctor", code=6)


def test_an_incident_names_no_hidden_job(store_url: str, tmp_path: Path) -> None:
    """Neither in its title nor by who owns the job."""
    file = tmp_path / "alerts.toml"
    file.write_text(
        '[channels.none]\ncommand = ["true"]\n'
        '[rules.readers]\nwhen = "new-reader"\nto = ["none"]\ntags = ["pii"]\n'
        '[rules.schema]\nwhen = "schema-breaks"\nto = ["none"]\n'
    )
    store = open_store(store_url)
    token = create_token(store, "shop", "read", ["s3://*", "jobs"])
    settings = ServerSettings(tokens=[ADMIN], alerts=read_rules(file), alerts_every=0.05)
    client = Client(store, settings)

    def listed() -> Any:
        return ask(client, ADMIN, "/api/v2/alerts").json()

    def made(namespace: str, number: int, *, job: str, **sides: Any) -> None:
        one = event("COMPLETE", 0, run=number, job=job, **sides)
        one["eventTime"] = datetime.now(timezone.utc).isoformat()
        body = json.dumps(of(namespace, one))
        assert ask(client, ADMIN, "/api/v1/lineage", method="POST", content=body).is_success

    people = dataset("people", schema=schema("id", "email"))
    owners = {"ownership": facet(owners=[{"name": f"team:{MARK}"}])}
    try:
        made("jobs", 1, job="make", outputs=[people])
        tag = "/api/v1/namespaces/s3%3A%2F%2Flake/datasets/people/fields/email/tags/pii"
        assert ask(client, ADMIN, tag, method="POST").is_success
        eventually(lambda: listed()["lookedAt"])
        for number, space, job in ((2, "jobs", "seen"), (3, TEAM, f"{MARK}_reader")):
            into = dataset(f"of-{number}", columnLineage=columns(x=("people", "email")))
            made(space, number, job=job, job_facets=owners, inputs=["people"], outputs=[into])
        eventually(lambda: len(listed()["open"]) == 2)
        made("jobs", 4, job="make", outputs=[dataset("people", schema=schema("id"))])
        eventually(lambda: len(listed()["open"]) == 3)
        for path in ("/api/v2/alerts", "/api/v2/overview"):
            assert f"{MARK}_reader" in ask(client, ADMIN, path).text
            assert f"{MARK}_reader" not in ask(client, token, path).text
        found = ask(client, token, "/api/v2/alerts").json()["open"]
        assert {one["title"] for one in found} == {
            "seen began to read people.email (pii)",
            "(hidden) began to read people.email (pii)",
            "people changed its schema and breaks seen, (hidden)",
        }
        assert [one["owners"] for one in found if "(hidden) began" in one["title"]] == [[]]
        # Members are no more than 20, and the title counts all that break.
        orders = dataset("orders", schema=schema("id", "price"))
        made("jobs", 5, job="sell", outputs=[orders])
        for number in range(10, 33):
            into = dataset(f"of-{number}", columnLineage=columns(x=("orders", "price")))
            made(TEAM, number, job=f"{MARK}_{number}", inputs=["orders"], outputs=[into])
        made("jobs", 6, job="sell", outputs=[dataset("orders", schema=schema("id"))])
        eventually(lambda: len(listed()["open"]) == 4)
        titles = {one["title"] for one in ask(client, token, "/api/v2/alerts").json()["open"]}
        breaks = "orders changed its schema and breaks"
        assert f"{breaks} (hidden), (hidden), (hidden) and 20 more" in titles
    finally:
        client.close()
