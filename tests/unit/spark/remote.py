"""Explain texts read without a server: tables are what the test says they are."""

from __future__ import annotations

from typing import Any

from headwater.spark.columns.output import columns_of
from headwater.spark.remote.client_plan import ClientPlan, quoted
from headwater.spark.remote.explain.layout import parse_tree
from headwater.spark.remote.explain.query import QueryReader
from headwater.spark.remote.server_client import ConnectServer, ConnectTable, RemoteSession

from .plans import facts

TABLES: dict[str, dict[str, Any]] = {
    "lab.shop.orders": {
        "id": "long",
        "price": "decimal(10,2)",
        "city": "string",
        "items": {
            "type": "array",
            "elementType": {"type": "struct", "fields": [{"name": "sku", "type": "string"}]},
        },
    },
    "lab.shop.people": {"id": "integer", "name": "string"},
}
ORDERS = "RelationV2[id#1L, price#2, city#3, items#4] lab.shop.orders"
PEOPLE = "RelationV2[id#11, name#12] lab.shop.people"


class Described(ConnectServer):
    """A server that describes the tables of the test; a real one is asked in the integration tests."""

    def __init__(self) -> None:
        super().__init__(None)

    def setting(self, key: str) -> str:
        return ""

    def current(self) -> list[str]:
        return ["spark_catalog", "default"]

    def table(self, parts: list[str]) -> ConnectTable | None:
        name = ".".join(parts)
        divided = name == "lab.shop.orders"
        place = f"s3://w/{parts[-1]}"
        return ConnectTable(place, "iceberg", "", divided) if name in TABLES else None

    def columns(self, parts: list[str]) -> dict[str, Any] | None:
        return TABLES.get(".".join(parts))


class Text:
    """One plan's text as it was read."""

    def __init__(
        self,
        *lines: str,
        literals: str = "",
        python: dict[str, int] | None = None,
        sql: str = "",
    ) -> None:
        self.session = RemoteSession(Described())
        found = ClientPlan()
        found.texts = dict.fromkeys(quoted(literals))
        found.statements = [sql] if sql else []
        found.functions = {name: {kind} for name, kind in (python or {}).items()}
        text, kept = found.mask_literals("\n".join(lines))
        self.reader = QueryReader(self.session, found, "", kept)
        self.query = self.reader.query(parse_tree(text))

    @property
    def problems(self) -> list[str]:
        return list(self.session.problems)

    @property
    def columns(self) -> dict[str, list[str]]:
        """Columns and their sources as short words."""
        return facts(columns_of(self.query.columns, self.query.rows))

    @property
    def unknown(self) -> tuple[str, ...]:
        return columns_of(self.query.columns, self.query.rows).unknown

    @property
    def rows(self) -> list[str]:
        found = columns_of(self.query.columns, self.query.rows).dataset
        return [f"{one.field} {way.subtype}" for one in found for way in one.transformations]
