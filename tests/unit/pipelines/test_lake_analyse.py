"""What of an estate counts as deleted when the lake is analysed."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from headwater.lineage.openlineage.checks import Limits
from headwater.server.store.write.incoming.event_reader import EventReader

EVENT = (
    '{"eventTime":"2026-01-01T00:00:00Z","eventType":"COMPLETE","producer":"urn:test",'
    '"schemaURL":"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",'
    '"run":{"runId":"01890000-0000-7000-8000-000000000001"},"job":{"namespace":"shop","name":"j"},'
    '"outputs":[{"namespace":"s3://lake","name":"t"}]}'
)


def program() -> Any:
    return importlib.import_module("lake_analyse")


@pytest.mark.parametrize("times", [(5, 9), (9, 5)])
def test_the_last_deletion_counts_by_whatever_name_it_was_asked_for(times: tuple[int, int]) -> None:
    found: dict[str, int] = {}
    for at in times:
        program().deleted(found, ["job:a:b"], at)
    assert found == {"job:a:b": 9}


@pytest.mark.parametrize(
    "spelled",
    [
        '"name":"b\u00fccher"',  # as Java's producers and ours send it
        '"name":"b\\u00fccher"',  # as Python's json does
    ],
)
def test_a_name_is_found_however_a_producer_wrote_it(spelled: str) -> None:
    kept = EventReader(Limits()).prepare(EVENT.replace('"name":"t"', spelled).encode()).raw
    assert any(one in kept.decode() for one in program().spellings("b\u00fccher"))
