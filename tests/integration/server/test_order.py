"""Whatever the order, repetition and grouping of events, one set of them makes one graph."""

from __future__ import annotations

import json
import tempfile
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headwater.server.store import open_store
from tests.properties import examples, in_another_order

from .making import dataset, event, schema

times = st.integers(0, 40)


@st.composite
def some_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    made = []
    for _ in range(draw(st.integers(1, 9))):
        state = draw(st.sampled_from(["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER"]))
        names = draw(st.sets(st.sampled_from("abcd"), max_size=2))
        second = draw(times)
        made.append(
            event(
                state,
                second,
                run=draw(st.integers(1, 3)),
                inputs=["x"] if names and second % 2 else None,
                outputs=[dataset(n, schema=schema(f"c{second}")) for n in sorted(names)] or None,
            )
        )
    return made


def drawn(groups: list[list[dict[str, Any]]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/x.db")
        for group in groups:
            for receipt in store.append([json.dumps(e).encode() for e in group]):
                assert receipt.error is None
        edges = store.connection.all(
            "SELECT j.name, d.name, e.direction, e.since, e.until FROM edge e"
            " JOIN job j ON j.id = e.job JOIN dataset d ON d.id = e.dataset"
        )
        runs = store.connection.all(
            "SELECT uuid, status, created, updated, ended, deadline FROM run"
        )
        ((job,),) = store.connection.all("SELECT r.uuid FROM job j JOIN run r ON r.id = j.latest")
        store.close()
        return {"edges": sorted(edges, key=repr), "runs": sorted(runs), "latest": job}


@examples(40)
@given(st.data(), some_events())
def test_order_repetition_and_grouping_change_nothing(
    data: st.DataObject, sent: list[dict[str, Any]]
) -> None:
    one_by_one = [[e] for e in sent]
    assert drawn(in_another_order(data, sent)) == drawn(one_by_one)
