"""Every case's lineage is exactly its truth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from headwater.spark.read import join_batch_to_stream, read_batch, read_streaming

from .cases import CASES, Case
from .cases.truth import differences, found, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.used import UsedCatalog, UsedKafka, UsedPostgres, UsedS3
    from headwater.spark.model import PlanLineage

    from .cases.stage import Stage


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: UsedKafka,
    catalog: UsedCatalog,
    s3: UsedS3,
    postgres: UsedPostgres,
) -> Iterator[Stage]:
    from .cases.stage import Stage

    folder: Path = tmp_path_factory.mktemp("cases")
    with pytest.MonkeyPatch.context() as patch:
        # Workers must find the same packages as the driver.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        made = Stage(folder, kafka, catalog, s3, postgres)
        yield made
        made.spark.stop()


def played(stage: Stage, case: Case) -> tuple[list[PlanLineage], dict[str, str]]:
    """Run a case; the lineage of everything in it that writes."""
    stage.case = case.name
    stage.drain()
    told = case.job(stage)
    if not case.stream:
        lineages = [read_batch(stage.spark, execution) for _, execution in stage.drain()]
        return [one for one in lineages if one.outputs], told if isinstance(told, dict) else {}
    stream = read_streaming(stage.spark, told._jsq)
    if case.name == "rate_to_memory":
        told.stop()
    told.awaitTermination(60)
    if stream.operation != "foreach_batch":
        stage.drain()
        return [stream], {}
    batches = [
        join_batch_to_stream(stage.spark, execution, stream) for _, execution in stage.drain()
    ]
    return [one for one in batches if one.outputs and one.inputs], {}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lineage_is_exact(stage: Stage, case: Case) -> None:
    lineages, words = played(stage, case)
    truth = read(case.truth.format(**words) if words else case.truth)
    seen = [
        found(lineage, stage.names, output)
        for lineage in lineages
        for output in sorted(truth.outputs) or [""]
    ]
    assert seen or not truth.outputs
    # One write may end in several callbacks; the last is the command a person gave.
    wrong = differences(truth, seen[-1]) if seen else []
    problems = [problem for lineage in lineages for problem in lineage.problems]
    assert not wrong, "\n".join([*wrong, *problems])


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 60
