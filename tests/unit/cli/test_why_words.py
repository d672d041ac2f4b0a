from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.cli.questions.why import _print_inputs

if TYPE_CHECKING:
    import pytest


def test_one_column_is_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    one = {"name": "orders", "field": "price", "change": "", "changedAt": None}
    _print_inputs("price", [one])
    assert capsys.readouterr().out.startswith("price comes from 1 column:\n")
    _print_inputs("price", [one, one])
    first = "price comes from 2 columns, the one that changed last first:\n"
    assert capsys.readouterr().out.startswith(first)
