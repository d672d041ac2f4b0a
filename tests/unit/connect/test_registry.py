"""The registry: strategies, references, every format, and what holds when it is away."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.connect.derive.refresh import RecordedMetadata
from headwater.connect.model import Connector
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.connect.services.registry import RegistryError, SchemaRegistry
from headwater.connect.services.subjects import candidates, registry_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
CUSTOMER = {
    "type": "record",
    "name": "acme.Customer",
    "fields": [{"name": "city", "type": "string"}],
}
WITH_REFERENCE = {
    "type": "record",
    "name": "acme.Sale",
    "fields": [{"name": "buyer", "type": "acme.Customer"}],
}


class Store:
    """A registry's answers, shaped as Confluent's and Apicurio's ccompat v7."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[dict[str, Any]]] = {}
        self.down: int | None = None
        self.asked: list[str] = []
        self.now = 0.0
        self.auth = ""

    def add(
        self, subject: str, schema: Any, kind: str | None = None, references: Any = None
    ) -> None:
        versions = self.subjects.setdefault(subject, [])
        found: dict[str, Any] = {
            "subject": subject,
            "id": 100 + sum(map(len, self.subjects.values())),
            "version": len(versions) + 1,
            "schema": schema if isinstance(schema, str) else json.dumps(schema),
        }
        if kind:
            found["schemaType"] = kind
        if references:
            found["references"] = references
        versions.append(found)

    def handle(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/api")
        self.asked.append(path)
        self.auth = request.headers.get("Authorization", "")
        if self.down == 0:
            raise httpx.ConnectError("refused")
        if self.down:
            return httpx.Response(self.down)
        parts = path.strip("/").split("/")
        if parts == ["subjects"]:
            return httpx.Response(200, json=list(self.subjects))
        if parts[0] == "subjects" and parts[1] in self.subjects:
            versions = self.subjects[parts[1]]
            at = -1 if parts[3] == "latest" else int(parts[3]) - 1
            return httpx.Response(200, json=versions[at])
        return httpx.Response(404, json={"error_code": 40401, "message": "not found"})

    def registry(self, **more: Any) -> SchemaRegistry:
        endpoint = Endpoint(("http://registry/api",), **more)
        transport = httpx.MockTransport(self.handle)
        return SchemaRegistry(endpoint, transport=transport, clock=lambda: self.now)


@pytest.fixture
def store() -> Store:
    return Store()


def fields(registry: SchemaRegistry, subject: str) -> list[str]:
    found = registry.latest(subject)
    assert found is not None
    assert found.schema is not None, found.problem
    return [field.name for field in found.schema.columns()]


def test_every_format_and_references(store: Store) -> None:
    store.add("customer", CUSTOMER)
    store.add("avro", ORDER)
    reference = [{"name": "acme.Customer", "subject": "customer", "version": 1}]
    store.add("sale", WITH_REFERENCE, references=reference)
    store.add("json", {"type": "object", "properties": {"id": {"type": "string"}}}, "JSON")
    store.add("proto", 'syntax = "proto3"; message Order { string id = 1; }', "PROTOBUF")
    store.add("odd", "not a schema")
    registry = store.registry()
    assert (
        fields(registry, "avro") == fields(registry, "json") == fields(registry, "proto") == ["id"]
    )
    assert fields(registry, "sale") == ["buyer.city"]
    odd = registry.latest("odd")
    assert odd is not None
    assert odd.schema is None
    assert odd.problem


def test_a_subject_is_read_again_only_when_it_may_have_changed(store: Store) -> None:
    store.add("orders-value", ORDER)
    registry = store.registry()
    first = registry.latest("orders-value")
    asked = len(store.asked)
    assert registry.latest("orders-value") is first
    assert registry.latest("orders-key") is None
    assert len(store.asked) == asked
    store.now += 30
    assert registry.latest("orders-value") is first
    store.add("orders-value", {**ORDER, "fields": [*ORDER["fields"], {"name": "n", "type": "int"}]})
    store.now += 30
    again = registry.latest("orders-value")
    assert again is not None
    assert again.version == 2


def test_a_new_subject_is_seen_by_the_next_poll(store: Store) -> None:
    registry = store.registry()
    assert registry.latest("orders-value") is None
    store.add("orders-value", ORDER)
    store.now += 5
    assert fields(registry, "orders-value") == ["id"]


def test_subjects_that_are_slow_to_list_are_listed_less_often(store: Store) -> None:
    answer = store.handle

    def slow(request: httpx.Request) -> httpx.Response:
        store.now += 2.0
        return answer(request)

    store.handle = slow  # type: ignore[method-assign]
    registry = store.registry()
    for _ in range(7):
        assert registry.latest("orders-value") is None
        store.now += 5
    assert store.asked == ["/subjects"]
    store.now += 10
    assert registry.latest("orders-value") is None
    assert store.asked == ["/subjects"] * 2


@pytest.mark.parametrize("down", [0, 500, 401])
def test_what_it_said_holds_while_it_is_away(store: Store, down: int) -> None:
    store.add("orders-value", ORDER)
    registry = store.registry()
    known = registry.latest("orders-value")
    store.down, store.now = down, 100.0
    assert registry.latest("orders-value") is known
    asked = len(store.asked)
    with pytest.raises(RegistryError):
        registry.latest("unknown-value")
    assert len(store.asked) == asked, "a registry that is away is not asked at once again"
    assert registry.problem
    store.down, store.now = None, 200.0
    assert registry.latest("unknown-value") is None
    assert not registry.problem


def test_it_is_told_who_asks(store: Store) -> None:
    store.registry(username="u", password="p").subjects()
    assert store.auth.startswith("Basic ")
    store.registry(token="t").subjects()
    assert store.auth == "Bearer t"


def config(strategy: str, side: str = "value") -> dict[str, str]:
    name = f"io.confluent.kafka.serializers.subject.{strategy}"
    return {f"{side}.converter.{side}.subject.name.strategy": name}


@pytest.mark.parametrize(
    ("settings", "topic", "expected"),
    [
        ({}, "orders", ["orders-value"]),
        (config("TopicRecordNameStrategy"), "orders", ["orders-acme.Order"]),
        (config("TopicRecordNameStrategy"), "orders-eu", ["orders-eu-acme.Order", "orders-eu-acme.Return"]),
        (config("RecordNameStrategy"), "pg.public.orders", ["pg.public.orders.Envelope"]),
        (config("RecordNameStrategy"), "orders", []),
        (
            {"value.converter.apicurio.registry.artifact-resolver-strategy":
             "io.apicurio.registry.serde.strategy.SimpleTopicIdStrategy"},
            "orders",
            ["orders"],
        ),
    ],
)  # fmt: skip
def test_naming_strategies(settings: dict[str, str], topic: str, expected: list[str]) -> None:
    listed = {
        "orders-value", "orders-acme.Order", "orders-eu-acme.Order", "orders-eu-acme.Return",
        "orders-key", "pg.public.orders.Envelope",
    }  # fmt: skip
    connector = Connector("c", "sink", settings)
    assert candidates(connector, topic, "value", lambda: listed) == expected


@pytest.mark.parametrize(
    ("settings", "url", "user"),
    [
        (
            {"value.converter.schema.registry.url": "http://r:8081,http://s:8081"},
            "http://r:8081",
            "",
        ),
        (
            {
                "value.converter.schema.registry.url": "http://r",
                "value.converter.basic.auth.credentials.source": "USER_INFO",
                "value.converter.basic.auth.user.info": "u:p",
            },
            "http://r",
            "u",
        ),
        (
            {"value.converter.apicurio.registry.url": "http://r/apis/registry/v2"},
            "http://r/apis/ccompat/v7",
            "",
        ),
        *(
            (
                {
                    "value.converter.apicurio.registry.url": "http://r/apis/registry/v3",
                    f"value.converter.{auth}.username": "lab",
                    f"value.converter.{auth}.password": password,
                },
                "http://r/apis/ccompat/v7",
                user,
            )
            for auth in ("apicurio.auth", "apicurio.registry.auth")
            for password, user in (("hunter2", "lab"), ("${file:/x:password}", ""))
        ),
        (
            {"transforms": "ol", "transforms.ol.value.converter.schema.registry.url": "http://t"},
            "http://t",
            "",
        ),
        ({"value.converter.schema.registry.url": "${file:/x:url}"}, None, ""),
        ({}, None, ""),
    ],
)
def test_a_connectors_own_registry(settings: dict[str, str], url: str | None, user: str) -> None:
    endpoint = registry_of(Connector("c", "sink", settings), "value")
    assert (endpoint.urls[0] if endpoint else None) == url
    assert (endpoint.username if endpoint else "") == user
    assert bool(endpoint and endpoint.password) == bool(user)


def test_the_world_joins_key_and_value_and_a_recorder_sees_changes(store: Store) -> None:
    store.add("orders-value", ORDER)
    store.add("orders-key", '"string"')
    metadata = RecordedMetadata(LiveMetadata(registry=store.registry()))
    found = metadata.topic_schema("orders", Connector("c", "sink", {}))
    assert found is not None
    assert found.key is not None
    assert (found.value_subject, found.value_version, found.key.type) == (
        "orders-value",
        "1",
        "string",
    )
    asked = [(one.kind, one.subject, one.version, one.part) for one in found.origins]
    assert asked == [
        ("registry", "orders-value", "1", "value"),
        ("registry", "orders-key", "1", "key"),
    ]
    assert not metadata.changed()
    store.add("orders-value", {**ORDER, "fields": []})
    store.now += 60
    assert metadata.changed()
    store.down, store.now = 500, store.now + 60
    assert metadata.changed()
    incomplete = RecordedMetadata(LiveMetadata(registry=store.registry()))
    assert incomplete.topic_schema("orders", Connector("c", "sink", {})) is None
    assert incomplete.incomplete


class Gate(BaseHTTPRequestHandler):
    """A registry with one subject that lets in one user."""

    def do_GET(self) -> None:
        login = b64encode(b"reader:hunter2").decode()
        known = self.headers["Authorization"] == f"Basic {login}"
        listing: object = ["orders-value"]
        latest = {"id": 1, "version": 1, "schema": json.dumps(ORDER)}
        body = json.dumps(listing if self.path == "/subjects" else latest).encode()
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def gate() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gate)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


PREFIX = "value.converter."
LOGIN = {
    f"{PREFIX}basic.auth.credentials.source": "USER_INFO",
    f"{PREFIX}basic.auth.user.info": "reader:hunter2",
}


@pytest.mark.parametrize(
    ("address", "settings", "let_in"),
    [
        ("http://{gate}/", LOGIN, True),
        ("http://reader:hunter2@{gate}", {f"{PREFIX}basic.auth.credentials.source": "URL"}, True),
        ("http://{gate}", {}, False),
        ("http://elsewhere:8081", LOGIN, False),
    ],
)
def test_the_login_of_a_connector_is_used_at_the_registry_that_it_is_for(
    gate: str, address: str, settings: dict[str, str], let_in: bool
) -> None:
    config = {f"{PREFIX}schema.registry.url": address.format(gate=gate), **settings}
    metadata = LiveMetadata(registry=SchemaRegistry(Endpoint((f"http://{gate}",))))
    recorded = RecordedMetadata(metadata)
    try:
        found = recorded.topic_schema("orders", Connector("c", "sink", config))
        assert (found is not None) == let_in
        assert recorded.incomplete != let_in
        assert "hunter2" not in str(metadata.problems)
    finally:
        metadata.close()


def test_a_login_given_for_the_registry_wins_over_the_connectors(gate: str) -> None:
    config = {
        f"{PREFIX}schema.registry.url": f"http://{gate}",
        **LOGIN,
        f"{PREFIX}basic.auth.user.info": "somebody:else",
    }
    given = Endpoint((f"http://{gate}",), username="reader", password="hunter2")
    metadata = LiveMetadata(registry=SchemaRegistry(given))
    try:
        assert metadata.topic_schema("orders", Connector("c", "sink", config)) is not None
    finally:
        metadata.close()
