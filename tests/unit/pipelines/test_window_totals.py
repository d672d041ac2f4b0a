"""What the stream of window totals asks Spark for, by its options; what Spark makes of it is in `test_windows.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import orders
import pytest
import registry
import supplier_stats_stream

GIVEN = ["--bootstrap", "k:9092", "--registry-url", "http://r:8081"]
WRITER = registry.Writer(7, "{}")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start the job with options: the writer of its records, and the sink that is started."""
    spark = supplier_stats_stream

    def start(*options: str) -> Any:
        sink, found = MagicMock(), SimpleNamespace(registered=0)

        def register(*_: Any) -> registry.Writer:
            found.registered += 1
            return WRITER

        def to_records(_stats: Any, writer: Any) -> Any:
            found.writer = writer
            return SimpleNamespace(writeStream=sink)

        for place, name, made in (
            (orders, "read_orders", lambda *_: None),
            (orders, "good", lambda records: records),
            (orders, "started", lambda *_: None),
            (registry, "register", register),
            (spark, "once", lambda records, _: records),
            (spark, "totals", lambda records, _: records),
            (spark, "to_records", to_records),
        ):
            monkeypatch.setattr(place, name, made)
        spark.start(MagicMock(), spark.arguments().parse_args([*GIVEN, *options]))
        (found.mode,) = sink.outputMode.call_args.args
        return found

    return start


@pytest.mark.parametrize(
    ("options", "mode"), [([], "update"), (["--emit", "update"], "update"), (["--emit", "final"], "append")]
)  # fmt: skip
def test_a_window_is_written_when_the_option_says(
    asked: Any, options: list[str], mode: str
) -> None:
    assert asked(*options).mode == mode


@pytest.mark.parametrize(
    ("options", "writer", "registered"), [([], WRITER, 1), (["--format", "json"], None, 0)]
)
def test_totals_have_a_subject_unless_they_are_json(
    asked: Any, options: list[str], writer: Any, registered: int
) -> None:
    found = asked(*options)
    assert (found.writer, found.registered) == (writer, registered)
