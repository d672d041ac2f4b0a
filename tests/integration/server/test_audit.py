"""The provenance of the demo's last table, told by hand; tags; and what a report never shows."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.errors import NotFoundError
from headwater.server.app import ServerSettings
from headwater.server.http.auth import create_token
from headwater.server.store import open_store

from .conftest import Client
from .making import dataset, event, facet, run_id, schema
from .test_answers import DEMO, KAFKA, LAKE, SHOP, Command, command, demo

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["command", "demo"]

FROM, TO = "2026-01-08T05:00:00Z", "2026-01-08T07:00:00Z"
PERIOD = {"from": FROM, "to": TO}


def audit_of(client: Client, name: str, namespace: str = LAKE, **query: str) -> dict[str, Any]:
    path = f"/api/v2/datasets/{quote(namespace, safe='')}/{quote(name, safe='')}/audit"
    found: dict[str, Any] = client.get(path, **query)
    return found


def recorded(job: str) -> list[str]:
    """The runs of a job in the recorded events, in order."""
    events = [json.loads(line) for line in DEMO.read_text().splitlines()]
    found = [one["run"]["runId"] for one in events if one["job"]["name"] == job]
    return list(dict.fromkeys(found))


def test_the_last_table_is_audited(demo: Client, command: Command) -> None:
    found = audit_of(demo, "lake/supplier_stats", **PERIOD)
    assert (found["since"], found["until"]) == (FROM, TO)
    assert set(found["sources"]) == {
        f"dataset:{SHOP}:shop.public.{name}" for name in ("orders", "order_items", "suppliers")
    }
    day = recorded("supplier_stats.by_day")
    runs = {job["name"]: [run["id"] for run in job["runs"]] for job in found["writers"]}
    # Of 18 hourly runs the two of these hours; the streams that ran then, and none before them.
    assert runs == {
        "supplier_stats.by_day": [day[12], day[11]],
        "iceberg_ingestion": [recorded("iceberg_ingestion")[1]],
        "enrich_orders": recorded("enrich_orders"),
        "orders-source": recorded("orders-source"),
    }
    states = {run["id"]: run["state"] for job in found["writers"] for run in job["runs"]}
    assert (states[day[11]], states[day[12]]) == ("FAILED", "COMPLETED")
    distance = {job["name"]: job["distance"] for job in found["writers"]}
    assert distance["supplier_stats.by_day"] == 1
    assert (distance["iceberg_ingestion"], distance["enrich_orders"]) == (2, 3)
    source = next(job for job in found["writers"] if job["name"] == "orders-source")
    (configured,) = source["configuration"]
    assert configured["content"] == {
        "cluster": "shop-connect",
        "connectorClass": "io.debezium.connector.postgresql.PostgresConnector",
        "connectorType": "source",
        "connectorVersion": "3.2.1",
        "transforms": [
            {"alias": "route", "type": "org.apache.kafka.connect.transforms.RegexRouter"}
        ],
    }
    assert configured["runs"] == recorded("orders-source")
    assert {"source": "config key", "detail": "topic.prefix", "observed": False} in source[
        "evidence"
    ]
    code = {
        (job["name"], one["facet"]): one["content"].get("url", one["content"].get("query"))
        for job in found["writers"]
        for one in job["code"]
    }
    assert set(code) == {
        ("orders-source", "sourceCodeLocation"),
        ("enrich_orders", "sourceCodeLocation"),
        ("enrich_orders", "sql"),
        ("supplier_stats.by_day", "sql"),
    }
    assert code["enrich_orders", "sourceCodeLocation"].endswith("/pipelines/enrich_orders.py")
    versions = {one["name"]: [v["since"] for v in one["schemas"]] for one in found["upstream"]}
    assert versions["lake/orders"] == ["2026-01-07T10:00:00Z"]
    assert versions["shop.orders"] == ["2026-01-05T12:00:00Z"]
    assert set(versions) == {
        "lake/supplier_stats", "lake/orders", "orders-enriched", "shop.orders", "shop.order_items",
        "shop.suppliers", "shop.public.orders", "shop.public.order_items", "shop.public.suppliers",
    }  # fmt: skip
    assert [
        (job["name"], job["owners"][0]["name"], job["runCount"]) for job in found["readers"]
    ] == [("nightly_export", "team:bi", 0)]
    assert (found["hidden"], found["truncated"]) == (0, False)
    asked = ("audit", "lake/supplier_stats", "--from", FROM, "--to", TO)
    assert json.loads(command(*asked, "--json")) == found
    said = command(*asked)
    assert day[11] in said
    assert day[10] not in said


def test_what_was_in_force_before_and_after_a_change_is_told(demo: Client) -> None:
    found = audit_of(demo, "lake/orders", **{"from": "2026-01-01", "to": "2026-01-08"})
    versions = {one["name"]: one["schemas"] for one in found["upstream"]}
    assert [(v["since"], v["until"]) for v in versions["shop.orders"]] == [
        ("2026-01-01T12:00:00Z", "2026-01-05T12:00:00Z"),
        ("2026-01-05T12:00:00Z", None),
    ]
    assert versions["shop.orders"][1]["changes"] == ["coupon was added (string)"]
    runs = {job["name"]: [run["id"] for run in job["runs"]] for job in found["writers"]}
    assert runs["iceberg_ingestion"] == recorded("iceberg_ingestion")[::-1]
    # Before the job that enriches orders was there, nothing fed the topic.
    early = audit_of(demo, "lake/orders", **{"from": "2026-01-02", "to": "2026-01-03"})
    assert [job["name"] for job in early["writers"]] == ["iceberg_ingestion"]
    assert early["sources"] == [f"dataset:{KAFKA}:orders-enriched"]
    assert [v["since"] for one in early["upstream"] for v in one["schemas"]] == [
        "2026-01-02T12:00:00Z",
        "2026-01-02T12:00:00Z",
    ]


def test_a_column_is_audited_along_its_own_path(demo: Client, command: Command) -> None:
    found = audit_of(demo, "lake/supplier_stats", column="revenue", **PERIOD)
    assert found["sources"] == [f"dataset:{SHOP}:shop.public.order_items"]
    assert {job["name"] for job in found["writers"]} == {
        "supplier_stats.by_day", "iceberg_ingestion", "enrich_orders", "orders-source",
    }  # fmt: skip
    assert "shop.suppliers" not in {one["name"] for one in found["upstream"]}
    steps = {(edge["source"]["field"], edge["target"]["name"]) for edge in found["paths"]}
    assert ("price", "shop.order_items") in steps
    asked = ("audit", "lake/supplier_stats.revenue", "--from", FROM, "--to", TO, "--json")
    assert json.loads(command(*asked)) == found


def test_a_dataset_without_a_known_writer_names_no_source(client: Client) -> None:
    client.post(event("COMPLETE", 1, job="load", inputs=["a"], outputs=["b"]))
    for name, sources in (("a", []), ("b", ["dataset:s3://lake:a"])):
        assert audit_of(client, name, "s3://lake")["sources"] == sources
    page = client.call("GET", "/api/v2/datasets/s3%3A%2F%2Flake/a/audit/report").text
    assert "No source is known." in page


def test_who_writes_a_column_that_comes_from_no_other_is_told(client: Client) -> None:
    """A job without column lineage wrote it: its dataset is no source, and the job no secret."""
    client.post(
        event("COMPLETE", 1, job="silent", inputs=["a"], outputs=[dataset("b", schema=schema("x"))])
    )
    found = audit_of(client, "b", "s3://lake", column="x")
    assert found["sources"] == []
    ((name, runs),) = [(job["name"], job["runs"]) for job in found["writers"]]
    assert (name, [run["id"] for run in runs]) == ("silent", [run_id(1)])
    assert "reads nothing known" in report(client, "b", "s3://lake", column="x")


def test_a_question_about_what_is_not_there_says_so(demo: Client, command: Command) -> None:
    failed = CliRunner().invoke(app, ["audit", "lake/suplier_stats"]).exception
    assert isinstance(failed, NotFoundError)
    assert (failed.exit_code, "lake/supplier_stats" in (failed.hint or "")) == (4, True)
    refused = demo.call(
        "GET",
        f"/api/v2/datasets/{quote(LAKE, safe='')}/lake%2Forders/audit",
        params={"from": TO, "to": FROM},
    )
    assert (refused.status_code, refused.json()["message"]) == (400, "from: is later than to")
    assert demo.call("GET", "/api/v2/tags/nobody").status_code == 404


def test_an_answer_with_too_many_runs_says_that_it_is_cut(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        client.post(event("COMPLETE", number * 10, run=number + 1, inputs=["a"], outputs=["b"]))
    assert not audit_of(client, "b", "s3://lake")["truncated"]
    monkeypatch.setattr("headwater.server.api.v2.questions.audit.RUNS", 4)
    found = audit_of(client, "b", "s3://lake")
    assert found["truncated"]
    assert [run["id"] for job in found["writers"] for run in job["runs"]] == [
        run_id(n) for n in (6, 5, 4, 3)
    ]
    assert "This report is cut" in report(client, "b", "s3://lake")


def report(client: Client, name: str, namespace: str, **query: str) -> str:
    path = f"/api/v2/datasets/{quote(namespace, safe='')}/{quote(name, safe='')}/audit/report"
    answer = client.call("GET", path, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    return answer.text


def test_a_report_can_be_printed_and_fetches_nothing(
    demo: Client, command: Command, tmp_path: Path
) -> None:
    text = report(demo, "lake/supplier_stats", LAKE, **PERIOD)
    for run in recorded("supplier_stats.by_day")[11:13]:
        assert run in text
    assert "https://git.example.com/shop/pipelines/enrich_orders.py" in text
    assert "@media print" in text
    # A key and an id stay in one piece; a time is broken before its hour alone.
    assert '<code><span class="word"><bdi>connectorClass</bdi></span></code>' in text
    assert re.search(
        r'<span class="word"><bdi>[\d-]{10}T</bdi></span><wbr><span class="word">', text
    )
    assert not re.search(r"<(script|img|link|iframe)|\b(src|href)=", text)
    file = tmp_path / "report.html"
    command("audit", "lake/supplier_stats", "--from", FROM, "--to", TO, "--html", str(file))
    made = re.compile(r"Made <bdi>[^<]*</bdi>")
    assert made.sub("", file.read_text()) == made.sub("", text)


class Elements(HTMLParser):
    """The elements and attributes of a document, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.said.append(data)


HOSTILE = [
    '<img src=x onerror="alert(1)">',
    '"><svg/onload=alert(2)>',
    "</title></style></script><script>alert(3)</script>",
    "' onmouseover='alert(4)",
    "<!-- ]]> &lt;b&gt;",
    "{{7*7}}<%= 7*7 %>",
    "\u202egnp.exe\u2066x\u2069",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text(client: Client, name: str) -> None:
    made = event(
        "FAIL", 1, job=name, inputs=[dataset(name, name)],
        outputs=[
            dataset(
                f"{name}/out", name, schema=facet(fields=[{"name": name, "type": name}]),
                columnLineage=facet(fields={name: {"inputFields": [
                    {"namespace": name, "name": name, "field": name,
                     "transformations": [{"type": "DIRECT", "subtype": name}]}]}}),
            )
        ],
        job_facets={
            "sql": facet(query=f"{name}\n{name}"), "ownership": facet(owners=[{"name": name}]),
            "sourceCodeLocation": facet(type=name, url=name),
            "headwater_evidence": facet(datasets=[
                {"namespace": name, "name": name, "evidence": [{"source": name, "detail": name}]}]),
        },
        run_facets={
            "errorMessage": facet(message=name, programmingLanguage=name),
            "headwater_connect": facet(connectorClass=name, tasks=[], transforms=[{"alias": name}]),
        },
    )  # fmt: skip
    made["job"]["namespace"] = name
    client.post(made)
    for query in ({}, {"column": name}):
        read = Elements(report(client, f"{name}/out", name, **query))
        assert read.found <= {
            "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li",
            "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "bdi", "span", "section",
            "wbr",
        }  # fmt: skip
        assert read.attributes <= {
            "lang",
            "charset",
            "http-equiv",
            "content",
            "name",
            "class",
            "scope",
        }
        said = "".join(read.said)
        # What would turn the direction of writing is shown instead.
        assert said.count(re.sub("[\u202e\u2066\u2069]", lambda one: ascii(one[0])[1:-1], name)) > 5
        assert not re.search("[\u202e\u2066\u2069]", said)


def test_a_secret_in_a_configuration_never_shows(client: Client) -> None:
    secrets = {
        "database.password": "hunter2-of-the-database",
        "connection.url": "jdbc:postgresql://db/shop?user=app&password=hunter2-in-a-url",
        "sasl.jaas.config": 'x required username="u" password="hunter2-in-jaas";',
    }
    configured = {
        "debezium_config": facet(configs=[f"{k}={v}" for k, v in secrets.items()]),
        "spark_properties": facet(properties=secrets),
        "headwater_connect": facet(connectorClass="a.Sink", tasks=[], transforms=[], extra=secrets),
    }
    code = {"sourceCode": facet(language="sql", sourceCode="x password='hunter2-in-code'")}
    client.post(
        event("START", 1, inputs=["a"], outputs=["b"], run_facets=configured, job_facets=code)
    )
    found = audit_of(client, "b", "s3://lake")
    shown = {one["facet"]: one["content"] for one in found["writers"][0]["configuration"]}
    assert set(shown) == set(configured)
    assert shown["spark_properties"]["properties"]["database.password"] == "***"
    text = json.dumps(found) + report(client, "b", "s3://lake")
    assert "hunter2" not in text
    assert "a.Sink" in text


def test_a_tag_goes_along_columns_until_it_is_masked(demo: Client, command: Command) -> None:
    found = demo.get("/api/v2/tags/pii")
    assert [(one["name"], one["field"], one["set"]) for one in found["columns"]] == [
        ("shop.orders", "customer_email", True)
    ]
    (stop,) = found["stopped"]
    assert (stop["source"]["field"], stop["target"]["name"], stop["target"]["field"]) == (
        "customer_email", "orders-enriched", "customer",
    )  # fmt: skip
    assert stop["jobs"] == ["job:shop:enrich_orders"]
    # The sink reads the tagged topic and says nothing of columns: nobody can tell.
    assert [(one["job"], one["destination"]) for one in found["unknown"]] == [
        ("job:shop:audit-sink", "dataset:s3://audit:orders/")
    ]
    space, name = quote(SHOP, safe=""), "shop.public.order_items"
    path = f"/api/v1/namespaces/{space}/datasets/{name}/fields/price/tags/money"
    assert demo.call("POST", path).status_code == 201
    reached = {
        (one["name"], one["field"]): [step["name"] for step in one["path"]]
        for one in demo.get("/api/v2/tags/money")["columns"]
    }
    assert set(reached) == {
        ("shop.public.order_items", "price"), ("shop.order_items", "price"),
        ("orders-enriched", "amount"), ("lake/orders", "amount"), ("supplier-stats", "revenue"),
        ("lake/supplier_stats", "revenue"), ("bi.public.supplier_stats", "revenue"),
        ("nightly/supplier_stats.parquet", "revenue"),
    }  # fmt: skip
    assert reached["lake/supplier_stats", "revenue"] == [
        "shop.public.order_items", "shop.order_items", "orders-enriched", "lake/orders",
        "lake/supplier_stats",
    ]  # fmt: skip
    here = f"/api/v2/datasets/{quote(LAKE, safe='')}/lake%2Fsupplier_stats/tags"
    (one,) = demo.get(here)["columns"]
    assert (one["tag"], one["field"], one["set"]) == ("money", "revenue", False)
    assert demo.get(here, column="country")["columns"] == []
    said = command("tags", "lake/supplier_stats.revenue")
    assert "money lake/supplier_stats.revenue s3://warehouse propagated" in said
    assert "shop.public.order_items.price → orders-source → shop.order_items.price" in said
    assert "stopped shop.orders.customer_email → orders-enriched.customer" in command(
        "tags", "--tag", "pii"
    )
    counts = {
        one["name"]: (one["columns"], one["datasets"]) for one in demo.get("/api/v2/tags")["tags"]
    }
    assert counts == {"pii": (1, 0), "money": (1, 0), "domain=orders": (0, 1)}
    assert "money" in command("tags")
    for wrong, near in (("monney", "money"), ("PII", "pii"), ("ordrs", "domain=orders")):
        failed = CliRunner().invoke(app, ["tags", "--tag", wrong]).exception
        assert isinstance(failed, NotFoundError)
        assert failed.names[0] == near
        assert (failed.hint or "").startswith(f"near it: {near}")
    # Off again, it is nowhere.
    assert demo.call("DELETE", path).is_success
    assert demo.get(here)["columns"] == []


def test_two_writers_of_a_column_do_not_hide_each_other(client: Client) -> None:
    """One job masks what another one copies: the value is there in the clear."""

    def copying(*how: dict[str, Any]) -> dict[str, Any]:
        source = {"namespace": "s3://lake", "name": "a", "field": "x", "transformations": how}
        lineage = facet(fields={"y": {"inputFields": [source]}})
        return dataset("b", schema=schema("y"), columnLineage=lineage)

    masked = {"type": "DIRECT", "subtype": "TRANSFORMATION", "masking": True}
    client.post(event("START", 1, job="m", inputs=[dataset("a", schema=schema("x"))],
                      outputs=[copying(masked)]))  # fmt: skip
    assert client.call(
        "POST", "/api/v1/namespaces/s3%3A%2F%2Flake/datasets/a/fields/x/tags/pii"
    ).is_success
    found = client.get("/api/v2/tags/pii")
    assert [one["name"] for one in found["columns"]] == ["a"]
    assert len(found["stopped"]) == 1
    client.post(event("START", 2, run=2, job="z", inputs=["a"], outputs=[copying()]))
    found = client.get("/api/v2/tags/pii")
    assert [one["name"] for one in found["columns"]] == ["a", "b"]
    assert found["stopped"] == []


def test_a_limited_token_sees_only_how_much_is_hidden(store_url: str) -> None:
    store = open_store(store_url)
    token = create_token(store, "lake", "read", ["shop", "s3://*"])
    client = Client(store, ServerSettings(tokens=["whole"], stale_every=3_600))
    path = f"/api/v2/datasets/{quote(LAKE, safe='')}/lake%2Fsupplier_stats/audit"
    try:
        admin, limited = ({"authorization": f"Bearer {one}"} for one in ("whole", token))
        sent = client.call("POST", "/api/v2/events", content=DEMO.read_bytes(), headers=admin)
        assert sent.status_code == 201
        whole = client.call("GET", path, headers=admin, params=PERIOD).json()
        part = client.call("GET", path, headers=limited, params=PERIOD)
        found = part.json()
        assert {job["name"] for job in found["writers"]} < {job["name"] for job in whole["writers"]}
        assert (found["hidden"] > 0, whole["hidden"]) == (True, 0)
        printed = client.call("GET", f"{path}/report", headers=limited, params=PERIOD).text
        assert f"{found['hidden']} jobs or datasets next to those shown are hidden" in printed
        for text in (part.text, printed):
            assert "lake/orders" in text
            assert not [one for one in ("kafka://", "postgres://", "shop.public") if one in text]
        record = client.call("GET", "/api/v2/log/head", headers=limited, params={"seq": "3"})
        assert record.status_code == 403
    finally:
        client.close()
