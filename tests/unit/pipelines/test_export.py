"""The export's own parts: what it asks of a catalog, and what it writes."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import supplier_stats_export

if TYPE_CHECKING:
    import pytest


def test_rows_become_csv_that_a_spreadsheet_reads() -> None:
    hour = datetime(2026, 3, 1, 12)  # noqa: DTZ001
    rows: list[dict[str, Any]] = [
        {"hour": hour, "supplier": 'ac"me, ltd', "total_price": Decimal("3.30")},
        {"hour": hour, "supplier": None, "total_price": Decimal("1.00")},
    ]
    text = supplier_stats_export.as_csv(rows, ["hour", "supplier", "total_price"]).decode()
    assert text.split("\r\n") == [
        "hour,supplier,total_price",
        '2026-03-01 12:00:00,"ac""me, ltd",3.30',
        "2026-03-01 12:00:00,,1.00",
        "",
    ]


def test_a_catalog_is_asked_without_a_key_in_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    given = ["--catalog-uri", "http://c:8181", "--s3-endpoint", "http://s3:9000", "--warehouse", ""]
    found = supplier_stats_export.catalog(supplier_stats_export.arguments().parse_args(given))
    assert found == {
        "type": "rest",
        "uri": "http://c:8181",
        "s3.endpoint": "http://s3:9000",
        "s3.region": "eu-west-1",
    }
