"""Tables by the word of their catalog: what is unknown stays unknown, what was seen is kept."""

from __future__ import annotations

import importlib
import socket
import sys
import threading
import time
from concurrent.futures import wait
from importlib.abc import SourceLoader
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg import types as ice

from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.metadata import CatalogTable, NoMetadata, TopicSchema
from headwater.connect.derive.refresh import derivation, fill_gaps
from headwater.connect.model import Connector
from headwater.connect.services import iceberg_catalog as module
from headwater.connect.services.iceberg_catalog import CatalogError, Catalogs
from headwater.lineage.schema import Field, Schema
from headwater.lineage.schema.origin import iceberg_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SINK = Connector(
    "sink",
    "sink",
    {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": "orders",
        "iceberg.tables": "shop.orders",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": "http://127.0.0.1:1",
        "iceberg.catalog.warehouse": "s3://lake",
    },
    ("orders",),
)


def columns(*names: str) -> Schema:
    return Schema(tuple(Field(name, "string") for name in names))


class FakeMetadata(NoMetadata):
    """A topic of three columns, and a table of two in a catalog that may be away."""

    bootstrap = "k:9092"

    def __init__(self) -> None:
        self.away = False
        self.found: CatalogTable | None = CatalogTable(
            "s3://lake/shop/orders", columns("id", "price")
        )

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        return TopicSchema(value=columns("id", "price", "note"))

    def table(self, catalog: Mapping[str, str], name: str) -> CatalogTable | None:
        if self.away:
            raise CatalogError("away")
        return self.found


def landed(metadata: FakeMetadata) -> tuple[list[str], list[str]]:
    lineage = derivation(SINK, metadata, DeriveSettings(), derive)
    (edge,), (table,) = lineage.derived.edges, lineage.derived.lineage.outputs
    assert table.schema
    return [output for _, output in lineage.derived.columns_of(edge) or ()], [
        f.name for f in table.schema.fields
    ]


def test_a_table_is_claimed_by_its_uuid_as_in_spark() -> None:
    metadata = FakeMetadata()
    metadata.found = CatalogTable(
        "s3://lake/shop/orders", columns("id", "price"), iceberg_table("u-1", 3, 3)
    )
    (table,) = derivation(SINK, metadata, DeriveSettings(), derive).derived.lineage.outputs
    origin = table.schema_source
    assert origin is not None
    assert (origin.kind, origin.subject, origin.version) == ("catalog", "u-1", "3")


def test_only_columns_that_the_table_has_are_claimed() -> None:
    metadata = FakeMetadata()
    assert landed(metadata) == (["id", "price"], ["id", "price"])
    metadata.found = None
    assert landed(metadata) == (["id", "price", "note"], ["id", "price", "note"])


def test_evidence_says_whether_columns_were_seen() -> None:
    metadata = FakeMetadata()
    for found, said in ((metadata.found, ("catalog", True)), (None, ("rule", False))):
        metadata.found = found
        derived = derivation(SINK, metadata, DeriveSettings(), derive).derived
        for evidence in (derived.edges[0].evidence, derived.lineage.outputs[0].evidence):
            about = [(e.source, e.observed) for e in evidence if "columns" in e.detail]
            assert about == [said]


def test_a_column_added_to_the_table_is_a_change() -> None:
    metadata = FakeMetadata()
    lineage = derivation(SINK, metadata, DeriveSettings(), derive)
    assert not lineage.outdated()
    metadata.found = CatalogTable("s3://lake/shop/orders", columns("id", "price", "note"))
    assert lineage.outdated()


def test_a_catalog_that_is_away_takes_nothing_back() -> None:
    metadata = FakeMetadata()
    known = derivation(SINK, metadata, DeriveSettings(), derive).derived
    metadata.away = True
    lineage = derivation(SINK, metadata, DeriveSettings(), derive)
    assert lineage.incomplete
    assert not lineage.outdated()
    assert lineage.derived.edges != known.edges
    assert fill_gaps(known, lineage.derived) == known


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address that is taken and does not answer."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"


def test_a_catalog_that_cannot_be_reached_is_said_and_asked_again(
    deaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = Catalogs._ask

    def counted(self: Catalogs, *args: Any) -> Any:
        asked.append(args[1])
        return ask(self, *args)

    monkeypatch.setattr(Catalogs, "_ask", counted)
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    catalogs = Catalogs()
    config = {"uri": deaf, "type": "rest", "token": "hunter2-token"}
    try:
        for _ in range(3):
            with pytest.raises(CatalogError):
                catalogs.table(config, "shop.orders")
        assert asked == ["shop.orders"]
        assert deaf in catalogs.problem
        assert "hunter2" not in catalogs.problem
        monkeypatch.setattr(module, "RETRY", -1.0)
        monkeypatch.setattr(module, "REFRESH", 60.0)
        catalogs._known.clear()
        for _ in range(2):
            with pytest.raises(CatalogError):
                catalogs.table(config, "shop.orders")
        assert len(asked) == 3
        for other in (
            {"uri": "thrift://h:9083", "type": "hive"},
            {"uri": "${file:/x:y}"},
            {**config, "token": "${file:/x:token}"},
        ):
            assert catalogs.table(other, "shop.orders") is None
    finally:
        catalogs.close()


def test_a_slow_catalog_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, answers = threading.Event(), [CatalogTable("s3://lake/a"), CatalogTable("s3://lake/b")]

    def ask(self: Catalogs, *args: Any) -> CatalogTable:
        if len(answers) == 1:
            slow.wait(30)
        return answers.pop(0)

    monkeypatch.setattr(Catalogs, "_ask", ask)
    monkeypatch.setattr(module, "REFRESH", 0.05)
    monkeypatch.setattr(module, "FRESH", 0.0)
    catalogs = Catalogs()
    config = {"uri": "http://catalog", "type": "rest"}
    try:
        for _ in range(20):  # the first answer stands while the second is awaited
            assert catalogs.table(config, "shop.orders") == CatalogTable("s3://lake/a")
        slow.set()
        wait(list(catalogs._asked.values()), 30)
        assert next(iter(catalogs._known.values())).found == CatalogTable("s3://lake/b")
    finally:
        slow.set()
        catalogs.close()


class SlowImport(SourceLoader):
    """Finds the catalog's library, and takes longer to load it than a catalog may take."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == "pyiceberg.catalog.rest" else None

    def get_filename(self, fullname: str) -> str:
        return fullname

    def get_data(self, path: str) -> bytes:
        time.sleep(0.5)
        return b"class RestCatalog: pass"


def test_the_time_to_load_the_library_is_not_the_catalogs(monkeypatch: pytest.MonkeyPatch) -> None:
    found = CatalogTable("s3://lake/a")

    def ask(*args: object) -> CatalogTable:
        importlib.import_module("pyiceberg.catalog.rest")
        return found

    monkeypatch.setattr(Catalogs, "_ask", ask)
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    monkeypatch.delitem(sys.modules, "pyiceberg.catalog.rest", raising=False)
    monkeypatch.setattr(sys, "meta_path", [SlowImport(), *sys.meta_path])
    catalogs = Catalogs()
    try:
        assert catalogs.table({"uri": "http://catalog", "type": "rest"}, "shop.orders") == found
        assert catalogs.problem == ""
    finally:
        catalogs.close()


def test_a_table_that_is_created_is_seen_by_the_next_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[CatalogTable] = []
    monkeypatch.setattr(Catalogs, "_ask", lambda *args: made[0] if made else None)
    monkeypatch.setattr(module, "REFRESH", 30.0)
    catalogs = Catalogs()
    config = {"uri": "http://catalog", "type": "rest"}
    try:
        assert catalogs.table(config, "shop.orders") is None
        made.append(CatalogTable("s3://lake/a"))
        next_poll = time.monotonic() + 5
        monkeypatch.setattr(time, "monotonic", lambda: next_poll)
        assert catalogs.table(config, "shop.orders") == made[0]
    finally:
        catalogs.close()


def test_types_are_written_as_everywhere() -> None:
    struct = ice.StructType(ice.NestedField(2, "city", ice.StringType(), required=True))
    listed = ice.ListType(3, ice.StringType(), element_required=False)
    mapped = ice.MapType(4, ice.StringType(), 5, struct, value_required=True)
    wanted = {
        ice.DecimalType(10, 2): "decimal(10,2)",
        ice.TimestampType(): "timestamp_ntz",
        ice.TimestamptzType(): "timestamp",
        ice.BinaryType(): "bytes",
        ice.LongType(): "long",
        listed: "array<string>",
        mapped: "map",
        struct: "struct",
    }
    for kind, text in wanted.items():
        assert module._field(ice.NestedField(1, "c", kind)).type == text
    nested = Schema((module._field(ice.NestedField(1, "c", mapped)),))
    assert [f.name for f in nested.columns()] == ["c.key", "c.value.city"]
