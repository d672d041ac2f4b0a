"""Queries as they stand in `tests/fixtures/lineage/queries.json`: tables and columns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headwater.lineage.sql import parse

PATH = Path(__file__).parents[2] / "fixtures" / "lineage" / "queries.json"
CASES = json.loads(PATH.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_query_is_read(case: dict[str, Any]) -> None:
    found = parse(case["query"], case.get("store", ""))
    if "tables" not in case:
        assert found is None
        return
    assert found is not None
    assert found.tables == case["tables"]
    assert found.whole is case.get("whole", False)
    columns = None
    if found.columns is not None:
        columns = {
            name: [f"{table}.{column} {how}" for table, column, how in made.sources]
            for name, made in found.columns.items()
        }
    assert columns == case.get("columns")


def test_without_sqlglot_nothing_is_known() -> None:
    script = (
        "import sys; sys.modules['sqlglot'] = None\n"
        "from headwater.lineage.sql import parse\n"
        "assert parse('select a from t') is None"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_query_is_not_parsed_beyond_a_length() -> None:
    assert parse("select a from t -- " + "x" * 50_000) is None
