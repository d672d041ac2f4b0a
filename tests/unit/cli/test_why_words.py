from __future__ import annotations

import pytest

from headwater.cli.questions.shown_names import ShownNames
from headwater.cli.questions.why import _print_inputs
from headwater.cli.server.alerts import _names, _title


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
            "kind": "run-failed",
            "title": "load failed",
            "subject": {"type": "job", "namespace": team, "name": "load"},
        }
        for team in ("red", "blue")
    )
    assert _title(red, _names([red, red])) == "load failed"
    assert _title(red, _names([red, blue])) == "red:load failed"


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("new-reader", "orders_copy began to read orders.email (pii)"),
        ("new-reader", "orders began to read orders.email (pii)"),
        ("run-failed", "orders_copy failed"),
    ],
)
def test_only_the_name_of_the_subject_gets_its_namespace(kind: str, title: str) -> None:
    one, other = (
        {
            "kind": kind,
            "title": title,
            "subject": {"type": "dataset", "namespace": space, "name": "orders"},
        }
        for space in ("s3://a", "s3://b")
    )
    assert _title(one, _names([one, other])) == title
