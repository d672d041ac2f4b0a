from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.cli.questions.shown_names import ShownNames
from headwater.cli.questions.why import _print_inputs
from headwater.cli.server.alerts import _names, _title

if TYPE_CHECKING:
    import pytest


def test_one_column_is_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    one = {
        "namespace": "s3://lake",
        "name": "orders",
        "field": "price",
        "change": "",
        "changedAt": None,
    }
    names = ShownNames([])
    _print_inputs("price", [one], [], names)
    assert capsys.readouterr().out.startswith("price comes from 1 column:\n")
    _print_inputs("price", [one, one], [], names)
    first = "price comes from 2 columns, the one that changed last first:\n"
    assert capsys.readouterr().out.startswith(first)


def test_two_jobs_of_one_name_have_two_incidents() -> None:
    red, blue = (
        {
            "title": "load failed",
            "subject": {"type": "job", "namespace": team, "name": "load"},
        }
        for team in ("red", "blue")
    )
    assert _title(red, _names([red, red])) == "load failed"
    assert _title(red, _names([red, blue])) == "red:load failed"
