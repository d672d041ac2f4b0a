"""However a driver ends, each of its runs gets the one right terminal event."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from .drivers import Drivers, Told, check_lives

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient

SHAPES = ("kafka_to_kafka", "kafka_to_iceberg", "merge", "stream_stream", "stream_static",
          "file_to_file")  # fmt: skip
ENDS = {
    "raise": ("FAIL", 1),
    "exit": ("FAIL", 3),
    "sigterm": ("ABORT", -15),
    "ctrl_c": ("ABORT", None),
    "killed": ("ABORT", -9),
    "jvm_killed": ("FAIL", 1),
}


def order(number: int, supplier: str = "acme") -> str:
    at = f"2026-01-01T00:00:{number % 60:02d}.000Z"
    return json.dumps({"order_id": f"o-{number}", "supplier": supplier, "price": 1.5,
                       "bid_time": at})  # fmt: skip


def place(kafka: KafkaClient, catalog: CatalogClient, work: Path) -> str:
    """Somewhere for a shape to read and write, with a few orders in it."""
    topic, other = kafka.topic("orders"), kafka.topic("payments")
    for one in (topic, other):
        kafka.produce(one, [order(number) for number in range(20)])
    work.mkdir(parents=True, exist_ok=True)
    (work / "in").mkdir(exist_ok=True)
    (work / "in" / "orders.json").write_text("\n".join(order(number) for number in range(20)))
    given = {"bootstrap": kafka.bootstrap, "topic": topic, "other": other,
             "out": kafka.topic("out"), "namespace": catalog.namespace(), "work": str(work)}  # fmt: skip
    return json.dumps(given)


class Ended:
    """Programs that ended with every shape running; a start of Spark takes a core, so two a time."""

    def __init__(self, work: Path, kafka: KafkaClient, catalog: CatalogClient) -> None:
        def end(how: str) -> Told:
            given = place(kafka, catalog, work / how / "place")
            return Drivers(work / how, catalog).run("ends.py", how, ",".join(SHAPES), given)

        with ThreadPoolExecutor(2) as pool:
            self.told = dict(zip(ENDS, pool.map(end, ENDS), strict=True))

    def check(self, how: str, shape: str) -> None:
        told, (expected, code) = self.told[how], ENDS[how]
        assert code is None or told.code == code, told.error
        check_lives(told.events)
        assert told.types(shape)[-1] == expected
        assert told.types(f"ends_{how}")[-1] == expected
        assert told.last(shape)["outputs"], "the end still says where the query wrote"
        last = told.last(shape)["run"]["facets"]
        assert ("errorMessage" in last) == (expected == "FAIL")
        assert "hunter2" not in json.dumps(told.events)
        if how == "jvm_killed":
            assert "JVM" in last["errorMessage"]["message"]
        if how == "exit":
            assert "exit code 3" in last["errorMessage"]["message"]


@pytest.fixture(scope="module")
def many(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaClient, catalog: CatalogClient
) -> Ended:
    return Ended(tmp_path_factory.mktemp("many"), kafka, catalog)


@pytest.mark.full
@pytest.mark.timeout(900)  # the first of them waits for all six drivers, six queries in each
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", ENDS)
def test_ends_of_drivers_with_every_shape(how: str, shape: str, many: Ended) -> None:
    many.check(how, shape)
