"""Of generated estates, the lake's tables as the program writes them answer as a server does."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import lake_ask
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from headwater.lake import tables
from headwater.lake.answers import answer
from tests.unit.lake import questions
from tests.unit.lake.estates import BASE, DATASETS, JOBS, NAMESPACE, P, commanded_estate, moment
from tests.unit.lake.test_projection import served

from .local import LocalLake, forwarded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headwater.server.store import Store
    from tests.unit.lake.estates import Arrived
    from tests.unit.lake.questions import Question

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
MOMENTS = [(BASE + minute * 60 + 30) * 1_000_000 for minute in (0, 13, 27)] + [questions.LATER]
ESTATES = 5


def every_question() -> Iterator[Question]:
    """Each kind of question about each node, at several moments, with and without a column."""
    for number, at in enumerate(MOMENTS):
        later = MOMENTS[(number + 1) % len(MOMENTS)]
        field = ("", "id", "price", "name")[number]
        yield questions.difference(at, later)
        for node in ("", *(f"job:jobs:{job}" for job in (*JOBS, "refresh"))):
            yield questions.map_around(node, at)
        for name in DATASETS:
            for down in (False, True):
                yield questions.trace(name, None if number == 2 else at, field, down=down)
            yield questions.difference_around(name, at, later, number)
            yield questions.audit(name, at, later, field)
            yield questions.columns(name, at, field, 1 + number % 3)


def returning() -> list[bytes]:
    """An edge that leaves and comes back; that it left is reported last."""
    made = [(0, "orders"), (20, "orders"), (10, "totals")]
    return [
        msgspec.json.encode(
            {
                "eventType": "COMPLETE",
                "eventTime": moment(minute * 60),
                "producer": P,
                "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
                "run": {"runId": f"00000000-0000-4000-9000-{minute:012d}"},
                "job": {"namespace": "jobs", "name": "refresh"},
                "inputs": [{"namespace": NAMESPACE, "name": "raw"}],
                "outputs": [{"namespace": NAMESPACE, "name": name}],
            }
        )
        for minute, name in made
    ]


def ask_spark(lake: LocalLake, store: Store) -> Iterator[int]:
    """Each kind of question once; answers the status codes."""
    spark, at, later = lake_ask.SparkLake(lake.lake), MOMENTS[1], MOMENTS[2]
    for question in (
        questions.difference(at, later),
        questions.map_around("job:jobs:refresh", at),
        questions.trace("orders", at, "", down=False),
        questions.difference_around("orders", at, later, 1),
        questions.audit("orders", at, later, ""),
        questions.columns("orders", at, "", 1),
    ):
        expected = questions.asked(store, question.path, question.query)
        found = answer(spark, f"{question.path}?{urlencode(question.query)}")
        assert (found.status_code, found.json()) == expected
        yield found.status_code


def test_the_tables_of_the_program_answer_as_the_server_does(
    local_spark: SparkSession, warehouse: Path
) -> None:
    statuses: Counter[int] = Counter()
    by_spark: Counter[int] = Counter()
    numbers = itertools.count()

    @seed(20260101)
    @settings(
        max_examples=ESTATES, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(commanded_estate(), st.floats(0.1, 0.9))
    def agree(arrivals: list[Arrived], cut: float) -> None:
        lake = LocalLake(local_spark, warehouse, f"estate{next(numbers)}")
        with tempfile.TemporaryDirectory() as folder:
            store, _ = served([*returning()[:2], *arrivals, *returning()[2:]], folder)
            log = forwarded(store)
            # Of what the first part made, the second changes some rows; the third repeats what was there.
            half = max(2, round(len(log) * cut))
            for part in filter(None, (log[:half], log[half:], log[:3])):
                lake.take(part)
                lake.settle()
            held = [row for row in lake.rows(tables.EDGES) if row["job_name"] == "refresh"]
            assert sorted(row["dataset_name"] for row in held) == [
                "orders",
                "orders",
                "raw",
                "totals",
            ]
            opened = lake.opened()
            statuses.update(questions.agree(opened, store, one) for one in every_question())
            by_spark.update(ask_spark(lake, store))
            store.close()

    agree()
    # What no event names, or somebody has deleted, is not found by either.
    assert statuses[200] > statuses[404]
    assert by_spark[200] > by_spark[404]
    assert set(statuses) <= {200, 400, 404}
