"""Statements that do more, or less, than one write, judged by the events of a real session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark
import pytest

from .drivers import Drivers, Told, check_lives, check_valid, names

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import CatalogClient

SCRIPTS = pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 4 has scripts")
RECURSIVE = pytest.mark.skipif(
    pyspark.__version__ < "4.1", reason="Spark 4.1 has recursive queries"
)

pytestmark = pytest.mark.full


class Ran(NamedTuple):
    """What the program told, and where it worked."""

    told: Told
    work: Path

    def runs(self, ending: str) -> dict[str, list[dict[str, Any]]]:
        """The events of the job whose name ends so, by run."""
        (job,) = {job for job in self.told.jobs if job.endswith(f".{ending}")}
        found: dict[str, list[dict[str, Any]]] = {}
        for event in self.told.of(job):
            found.setdefault(event["run"]["runId"], []).append(event)
        return found

    def last(self, ending: str) -> dict[str, Any]:
        """The last event of the only run of a job."""
        (events,) = self.runs(ending).values()
        return events[-1]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    drivers = Drivers(tmp_path_factory.mktemp("statements"))
    told = drivers.run("statements.py")
    assert told.code == 0, told.error
    check_lives(told.events)
    check_valid(told.events)
    return Ran(told, drivers.work)


def columns(output: dict[str, Any]) -> dict[str, set[tuple[str, str]]]:
    """The sources of each column: the last part of the dataset's name, and the column."""
    fields = output["facets"]["columnLineage"]["fields"]
    return {
        name: {(one["name"].rpartition("/")[2], one["field"]) for one in field["inputFields"]}
        for name, field in fields.items()
    }


def test_a_multi_insert_is_one_run_with_the_columns_of_each_output(ran: Ran) -> None:
    done = ran.last("multi_insert.default_a")
    assert done["eventType"] == "COMPLETE"
    assert names(done["inputs"]) == {str(ran.work / "warehouse/o")}
    first, second = done["outputs"]
    assert [first["name"], second["name"]] == [str(ran.work / f"warehouse/{n}") for n in "ab"]
    assert columns(first) == {"x": {("o", "id")}, "y": {("o", "v")}}
    assert columns(second) == {"x": {("o", "id")}, "y": {("o", "k")}}
    rows = [one["outputFacets"]["outputStatistics"]["rowCount"] for one in (first, second)]
    assert rows == [18, 20]
    named = ran.last("multi_insert.default_f")
    assert [columns(one) for one in named["outputs"]] == [
        {"x": {("o", "id")}, "y": {("o", "v")}},
        {"x": {("o", "v")}, "y": {("o", "id")}},
    ]
    rows = [one["outputFacets"]["outputStatistics"]["rowCount"] for one in named["outputs"]]
    assert rows == [20, 20]


def test_a_short_name_is_of_the_database_of_its_session(ran: Ran) -> None:
    done = ran.last("create_table_as_select.shop_short")
    assert names(done["outputs"]) == {str(ran.work / "warehouse/shop.db/short")}
    assert not [job for job in ran.told.jobs if job.endswith("default_short")]


@SCRIPTS
def test_each_statement_of_a_script_is_a_run_of_its_own(ran: Ran) -> None:
    for job, count in (
        ("insert_into_hadoop_fs_relation.default_c", 1),
        ("create_table_as_select.default_made", 1),
        ("insert_into_hadoop_fs_relation.default_d", 2),
    ):
        runs = ran.runs(job)
        assert len(runs) == count, job
        for events in runs.values():
            assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
            assert events[-1]["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 20


def test_a_statement_that_fails_ends_no_other_one(ran: Ran) -> None:
    ends = ["COMPLETE", "FAIL", "FAIL"]
    if pyspark.__version__ >= "4":
        (fine,) = ran.runs("insert_into_hadoop_fs_relation.default_made").values()
        assert fine[-1]["eventType"] == "COMPLETE"
        ends.insert(0, "FAIL")
    runs = list(ran.runs("insert_into_hadoop_fs_relation.default_e").values())
    assert [events[-1]["eventType"] for events in runs] == ends
    error = runs[ends.index("FAIL")][-1]["run"]["facets"]["errorMessage"]
    assert "UNRESOLVED_COLUMN" in error["message"]


def test_a_refused_statement_has_the_name_that_it_would_have_otherwise(ran: Ran) -> None:
    """The inserts into `e` above are one job; these never succeed."""
    for job in ("create_table_as_select.default_refused", "merge_into_table.default_gone"):
        assert ran.last(job)["eventType"] == "FAIL", job
    runs = ran.runs("create_table_as_select.default_refused_too").values()
    assert [events[-1]["eventType"] for events in runs] == ["COMPLETE", "FAIL"]


def test_a_refused_overwrite_in_dynamic_mode_has_the_name_of_one_that_is_done(
    tmp_path: Path, catalog: CatalogClient
) -> None:
    namespace = catalog.namespace()
    told = Drivers(tmp_path, catalog).run("dynamic_overwrites.py", namespace)
    assert told.code == 0, told.error
    dynamic, whole = "overwrite_partitions_dynamic", "overwrite_by_expression"
    expected = {
        f"dynamic_overwrites.{operation}.{namespace}_{table}": ["COMPLETE", "FAIL"]
        for table, operation in (
            ("flat_sql", dynamic),
            ("flat_writer", whole),
            ("divided_sql", dynamic),
            ("divided_writer", dynamic),
        )
    }
    jobs = told.jobs - {"dynamic_overwrites"}
    ends = {job: [kind for kind in told.types(job) if kind != "START"] for job in jobs}
    assert ends == expected


@SCRIPTS
def test_an_error_of_spark_is_logged_once(ran: Ran) -> None:
    called = re.findall(r"SQLQueryContextLogger.*?calling o\d+\.(\w+)", ran.told.error)
    assert called == ["sql"] * 4, "one for each statement that failed"


@RECURSIVE
def test_a_recursive_query_has_the_sources_of_every_step(ran: Ran) -> None:
    (output,) = ran.last("create_table_as_select.default_chain")["outputs"]
    assert columns(output) == {"n": {("o", "id"), ("o", "v")}, "m": {("o", "id"), ("o", "v")}}
    rows = {
        (one["field"], way["subtype"])
        for one in output["facets"]["columnLineage"]["dataset"]
        for way in one["transformations"]
    }
    assert rows == {
        ("k", "JOIN"), ("id", "JOIN"), ("v", "JOIN"), ("id", "FILTER"), ("v", "FILTER"),
    }  # fmt: skip


def test_a_glob_over_part_files_reads_their_dataset(ran: Ran) -> None:
    for out, source in (("globbed", "flat"), ("globbed_parts", "parts")):
        done = ran.last(f"insert_into_hadoop_fs_relation.{ran.work.name}_{out}")
        assert names(done["inputs"]) == {str(ran.work / source)}, out


def test_a_partition_that_is_given_is_the_dataset_that_its_writer_named(ran: Ran) -> None:
    for out in ("one_part", "globbed_part"):
        done = ran.last(f"insert_into_hadoop_fs_relation.{ran.work.name}_{out}")
        assert names(done["inputs"]) == {str(ran.work / "parts")}, out
    (output,) = ran.last(f"insert_into_hadoop_fs_relation.{ran.work.name}_parts")["outputs"]
    assert output["name"] == str(ran.work / "parts")
    # What it does to one partition it does not do to the dataset.
    assert output["outputFacets"]["headwater_overwrite"]["partial"] is True


def test_facts_about_files_are_no_columns(ran: Ran) -> None:
    (output,) = ran.last(f"insert_into_hadoop_fs_relation.{ran.work.name}_about_files")["outputs"]
    assert columns(output) == {"id": {("flat", "id")}, "p": set()}
    assert "dataset" not in output["facets"]["columnLineage"]


def test_an_rdd_that_is_written_is_reported_and_noop_is_not(ran: Ran) -> None:
    done = ran.last(f"save_as_text_file.{ran.work.name}_lines")
    assert done["eventType"] == "COMPLETE"
    assert names(done["inputs"]) == {str(ran.work / "flat")}
    assert names(done["outputs"]) == {str(ran.work / "lines")}
    assert not [job for job in ran.told.jobs if "noop" in job or "overwrite" in job]
