"""Every supported pair of PySpark and Python: the same cases, and real drivers with their queries."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyspark
import pytest

from headwater.lab.files.jars import connect_jars, pipeline_jars
from headwater.lab.java import find_java

from . import matrix
from .matrix import PAIRS, Pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lab.clients import CatalogClient, KafkaClient, PostgresClient, S3Client

# The first test waits until twelve environments are installed.
pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

HERE = "tests/integration/spark/"
CASES = f"{HERE}test_cases.py"
# The rest of this run is a pair of its own, and plays everything on the lab's Spark.
OWN = Pair(".".join(pyspark.__version__.split(".")[:2]), ".".join(map(str, sys.version_info[:2])))
# What can differ by Python is Python's own: functions, pickling, callbacks. What plans look like is
# Spark's doing: each other Spark gets every case once, on the newest Python it knows, in `make soak`,
# since that takes two cores for most of an hour.
WHOLE = {
    Pair(spark, pythons[-1]) for spark, pythons in matrix.SUPPORTED.items() if spark != OWN.spark
}
SLICE = [
    f"{CASES}::test_lineage_is_exact[{case}]"
    for case in ("python_udf", "pandas_udfs", "python_table_function", "rdd_round_trip",
                 "merge_by_clause", "topic_to_table", "merge_for_each_batch")
]  # fmt: skip
STREAMS = f"{HERE}test_streaming_shapes.py"
QUERIES = f"{HERE}test_queries.py"
STATEMENTS = f"{HERE}test_statements.py"
REMOTE_LIVES = f"{HERE}remote/test_remote_life.py"
REMOTE = [
    f"{HERE}remote/test_remote_cases.py",
    f"{REMOTE_LIVES}::test_batches_have_one_life_each",
    f"{REMOTE_LIVES}::test_statements_that_write_several_tables",
    f"{REMOTE_LIVES}::test_queries_are_one_run_each_whatever_their_end",
    f"{REMOTE_LIVES}::test_queries_that_end_with_the_program_end_as_they_did",
]
LIVES = f"{HERE}test_life_of_batches.py"
PLAIN = ("-p", "no:cacheprovider", "--tb=short", "-q")
NAME = "test_pairs_of_pyspark_and_python"
EVERY = "test_every_case_on_another_spark"
CLIENTS = "test_clients_of_spark_connect"

Played = dict[tuple[str, Pair], "Future[tuple[int, str]]"]


def _asked(name: str) -> list[str]:
    if name == NAME:
        return [*SLICE, STREAMS]
    # Programs started by our command are the same on every Spark, and the command is not installed.
    return [
        CASES,
        STREAMS,
        QUERIES,
        STATEMENTS,
        LIVES,
        "--deselect",
        f"{LIVES}::test_programs_run_without_touching_their_code",
    ]


def _play(name: str, pair: Pair, home: str) -> tuple[int, str]:
    remote = name == CLIENTS
    found = matrix.environment(pair, remote=remote) | {"HEADWATER_LAB_HOME": home}
    asked = ["-m", "full", *REMOTE] if remote else ["-m", "not soak and not timed", *_asked(name)]
    ended = subprocess.run(
        [str(matrix.interpreter(pair)), "-m", "pytest", *PLAIN, *asked],
        env=found, cwd=matrix.ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stdout[-6000:] + ended.stderr[-2000:]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest,
    kafka: KafkaClient, catalog: CatalogClient, s3: S3Client, postgres: PostgresClient,
) -> Iterator[Played]:  # fmt: skip
    """What is asked for, two at a time, long ones first; what that needs is fetched before."""
    asked = {item.name for item in request.session.items}
    able = [
        (name, pair)
        for name in (EVERY, CLIENTS, NAME)
        for pair in PAIRS
        if f"{name}[{pair}]" in asked and matrix.find_python(pair.python) is not None
    ]
    for name, pair in able:
        matrix.environment(pair, remote=name == CLIENTS)
        matrix.interpreter(pair)
        pipeline_jars(spark=pair.spark)
        connect_jars(pair.spark)
    home = str(kafka.lab.home.root)
    with ThreadPoolExecutor(2) as pool:
        yield {one: pool.submit(_play, *one, home) for one in able}


def _check(name: str, pair: Pair, played: Played) -> None:
    if (name, pair) not in played:
        pytest.skip(f"no Python {pair.python} on this machine")
    if find_java().major != 17 and pair.spark == "3.5":
        pytest.skip("Spark 3.5 needs Java 17")
    code, told = played[name, pair].result()
    assert code == 0, told


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair != OWN], ids=str)
def test_pairs_of_pyspark_and_python(pair: Pair, played: Played) -> None:
    _check(NAME, pair, played)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("pair", sorted(WHOLE), ids=str)
def test_every_case_on_another_spark(pair: Pair, played: Played) -> None:
    _check(EVERY, pair, played)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("pair", sorted(WHOLE), ids=str)
def test_clients_of_spark_connect(pair: Pair, played: Played) -> None:
    _check(CLIENTS, pair, played)
