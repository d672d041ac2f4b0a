"""The life of batch actions, from their entry point to their end, below their application."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark
import pytest

from headwater.lab.clients import unique

from .drivers import Drivers, Told, check_lives, check_valid, names

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient, PostgresClient, S3Client

PARENT = "01a1e232-46c5-7db0-bbe3-16e3383f61c1"
ROOT = "01a1e232-4117-7682-8c12-b95d2088ad22"


class Ran(NamedTuple):
    """What the program told, and where it worked."""

    told: Told
    work: Path
    namespace: str

    def job(self, ending: str) -> str:
        (found,) = {job for job in self.told.jobs if job.endswith(ending)}
        return found


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, catalog: CatalogClient) -> Ran:
    drivers = Drivers(tmp_path_factory.mktemp("batch"), catalog)
    namespace = catalog.namespace()
    told = drivers.run(
        "batch.py",
        namespace,
        str(drivers.file),
        OPENLINEAGE_PARENT_ID=f"airflow/dag.task/{PARENT}",
        OPENLINEAGE_ROOT_PARENT_ID=f"airflow/dag/{ROOT}",
    )
    assert told.code == 0, told.error
    return Ran(told, drivers.work, namespace)


def test_every_run_has_one_life(ran: Ran) -> None:
    check_lives(ran.told.events)
    check_valid(ran.told.events)
    assert all(event["job"]["namespace"] == "tests" for event in ran.told.events)


def test_names_say_application_operation_and_table(ran: Ran) -> None:
    table = f"{ran.namespace}_supplier_stats"
    for operation in ("overwrite_by_expression", "merge_into_table"):
        assert f"supplier_stats.{operation}.{table}" in ran.told.jobs, ran.told.jobs


def test_a_table_that_a_job_makes_has_one_name(ran: Ran) -> None:
    """Its catalog decides where it lies, which nobody knows before it is there."""
    told = [
        (output["namespace"], output["name"])
        for event in ran.told.events
        for output in event["outputs"]
        if output["name"].endswith("supplier_stats")
    ]
    assert set(told) == {("s3://warehouse", f"{ran.namespace}/supplier_stats")}
    made = ran.told.of(f"supplier_stats.replace_table_as_select.{ran.namespace}_supplier_stats")
    assert names(made[-1]["outputs"]) == {f"{ran.namespace}/supplier_stats"}


def test_an_action_is_one_run_however_often_spark_calls_back(ran: Ran) -> None:
    saved = [job for job in ran.told.jobs if job.endswith("saved")]
    assert len(saved) == 1, saved
    assert ran.told.types(saved[0]) == ["START", "COMPLETE"]


def test_parents_and_root(ran: Ran) -> None:
    application = ran.told.of("supplier_stats")
    parent = application[0]["run"]["facets"]["parent"]
    assert parent["run"]["runId"] == PARENT
    assert parent["root"]["run"]["runId"] == ROOT
    for event in ran.told.events:
        if event["job"]["name"] != "supplier_stats":
            facet = event["run"]["facets"]["parent"]
            assert facet["run"]["runId"] == application[0]["run"]["runId"]
            assert facet["root"]["run"]["runId"] == ROOT


def test_start_is_told_while_the_work_goes_on(ran: Ran) -> None:
    assert (ran.work / "seen-while-running").exists()


def test_failures(ran: Ran) -> None:
    job = ran.job("broken_out")
    error = ran.told.last(job)["run"]["facets"]["errorMessage"]
    assert ran.told.types(job) == ["START", "FAIL"]
    assert "no price" in error["stackTrace"]
    assert "org.apache.spark" in error["stackTrace"]
    nowhere = ran.job("nowhere_at_all")
    assert ran.told.types(nowhere) == ["START", "FAIL"]
    assert (
        "TABLE_OR_VIEW_NOT_FOUND"
        in ran.told.last(nowhere)["run"]["facets"]["errorMessage"]["message"]
    )
    again = [
        event for event in ran.told.events
        if event["eventType"] == "FAIL" and str(ran.work / "orders") in names(event["outputs"])
    ]  # fmt: skip
    assert len(again) == 1


def test_actions_of_several_threads_keep_apart(ran: Ran) -> None:
    for at in range(3):
        job = ran.job(f"parallel_{at}")
        assert ran.told.types(job) == ["START", "COMPLETE"]
        assert names(ran.told.last(job)["outputs"]) == {str(ran.work / f"parallel_{at}")}


def test_actions_that_do_not_say_where_keep_apart_too(ran: Ran) -> None:
    for at in range(3):
        job = ran.job(f"unnamed_{at}")
        assert ran.told.types(job) == ["START", "FAIL" if at == 1 else "COMPLETE"]
        assert names(ran.told.last(job)["outputs"]) == {str(ran.work / f"unnamed_{at}")}
    error = ran.told.last(ran.job("unnamed_1"))["run"]["facets"]["errorMessage"]
    assert "no price" in error["stackTrace"]


def test_reads_are_told_without_outputs(ran: Ran) -> None:
    (job,) = {job for job in ran.told.jobs if ".count." in job}
    assert names(ran.told.last(job)["inputs"]) == {str(ran.work / "orders")}
    assert ran.told.last(job)["outputs"] == []


def test_statistics_sql_and_facets(ran: Ran) -> None:
    written = ran.told.last(ran.job("slow_out"))
    statistics = written["outputs"][0]["outputFacets"]["outputStatistics"]
    assert statistics["rowCount"] == 2
    assert statistics["size"] > 0
    assert written["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 2
    inserted = [e for e in ran.told.events if "sql" in e["job"]["facets"]]
    assert any("insert into" in e["job"]["facets"]["sql"]["query"] for e in inserted)
    engine = written["run"]["facets"]["processing_engine"]
    assert engine["name"] == "spark"
    assert written["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    assert "spark.master" in written["run"]["facets"]["headwater_spark"]["properties"]
    assert all(len(json.dumps(event)) < 1_000_000 for event in ran.told.events)


@pytest.mark.parametrize(
    ("table", "after"),
    [
        ("evolving", ["supplier", "price", "costs"]),
        ("evolving_table", ["supplier", "price", "costs", "note"]),
    ],
)
def test_an_append_that_adds_columns_ends_with_the_schema_after_it(
    ran: Ran, table: str, after: list[str]
) -> None:
    start, end = ran.told.of(ran.job(f".append.{ran.namespace}_{table}"))
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    end = end["outputs"][0]["facets"]
    assert columns(end) == after
    assert end["headwater_schemaSource"]["version"] == "1"
    fields = end["columnLineage"]["fields"]
    sources = {name: [one["field"] for one in fields[name]["inputFields"]] for name in fields}
    assert (sources["costs"], sources["supplier"]) == (["price"], ["supplier"])
    assert "price" not in sources


@pytest.mark.skipif(pyspark.__version__ < "4.1", reason="Spark 4.1 adds columns in a MERGE")
def test_a_merge_that_adds_columns_ends_with_the_schema_after_it(ran: Ran) -> None:
    (end,) = ran.told.last(f"supplier_stats.merge_into_table.{ran.namespace}_merged")["outputs"]
    assert columns(end["facets"]) == ["supplier", "total", "rank"]
    assert end["facets"]["headwater_schemaSource"]["version"] == "1"


def columns(facets: dict[str, Any]) -> list[str]:
    """The names of a dataset's columns."""
    return [field["name"] for field in facets["schema"]["fields"]]


def test_nothing_is_told_after_detach(ran: Ran) -> None:
    assert not [job for job in ran.told.jobs if "unseen" in job]
    assert ran.told.types("supplier_stats") == ["START", "COMPLETE"]


@pytest.mark.full
def test_programs_run_without_touching_their_code(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    drivers = Drivers(tmp_path_factory.mktemp("run"))
    program = drivers.work / "plain.py"
    program.write_text(
        "import sys\nfrom tests.integration.spark.programs import shapes\n"
        "spark = shapes.session('plain')\n"
        "spark.range(3).write.mode('overwrite').parquet(sys.argv[1])\n"
        "spark.stop()\nraise SystemExit(4)\n"
    )
    commit = checkout(drivers.work, "https://robot:hunter2@git.example.org/shop/jobs.git")
    events = drivers.work / f"{unique('own')}.ndjson"
    drivers.file = events
    told = drivers.run(
        "headwater", "spark", "run",
        "--conf", "spark.extraListeners=io.openlineage.spark.agent.OpenLineageSparkListener",
        "--conf", "spark.openlineage.transport.type=file",
        "--conf", f"spark.openlineage.transport.location={events}",
        "--conf", "spark.openlineage.namespace=from-conf",
        "--conf", f"spark.openlineage.parentRunId={PARENT}",
        "--conf", "spark.openlineage.parentJobName=dag.task",
        "--conf", "spark.openlineage.parentJobNamespace=airflow",
        "--conf", "spark.openlineage.facets.headwater_spark.disabled=true",
        "--conf", "spark.openlineage.job.tags=tier:gold;nightly",
        "--conf", "spark.openlineage.run.tags=attempt:2",
        "--conf", "spark.openlineage.job.owners.team=sales",
        str(program), str(drivers.work / "out"),
    )  # fmt: skip
    assert told.code == 4, told.error
    assert "is left out of spark.extraListeners" in told.error
    assert "py4j" not in told.error.lower(), "the JVM called a driver that was no longer there"
    check_lives(told.events)
    assert {event["job"]["namespace"] for event in told.events} == {"from-conf"}
    assert told.types("plain")[-1] == "FAIL"
    (written,) = told.jobs - {"plain"}
    assert told.types(written) == ["START", "COMPLETE"]
    application = told.of("plain")[0]["run"]["facets"]
    assert application["parent"]["job"] == {"namespace": "airflow", "name": "dag.task"}
    assert "headwater_spark" not in application
    for job in told.jobs:
        check_about(told.last(job), commit)
    assert "hunter2" not in json.dumps(told.events)


@pytest.mark.full
@pytest.mark.timeout(1300)
def test_a_statement_has_one_job_name_and_each_time_it_runs_is_one_run(
    tmp_path: Path, catalog: CatalogClient
) -> None:
    """Repeated without a flush: a flush lets callbacks of one statement arrive before the next."""
    namespace = catalog.namespace()
    drivers = Drivers(tmp_path, catalog)
    drivers.seconds = 1200
    told = drivers.run("repeated.py", namespace)
    assert told.code == 0, told.error
    check_lives(told.events)
    expected = {f"repeated.create_table_as_select.default_t{number}": 1 for number in range(40)}
    for thread in range(4):
        for job in (
            f"drop_table.default_c{thread}",
            f"create_table_as_select.default_c{thread}",
            f"create_table_as_select.default_s{thread}",
            f"create_table_as_select.{namespace}_i{thread}",
            f"replace_table_as_select.{namespace}_r{thread}",
            f"append.{namespace}_r{thread}",
            f"replace_table_as_select.{namespace}_w{thread}",
            f"overwrite_by_expression.{namespace}_w{thread}",
            f"insert_into_hadoop_fs_relation.{tmp_path.name}_o{thread}",
            f"insert_into_hadoop_fs_relation.{tmp_path.name}_p{thread}",
            f"multi_insert.default_m{thread}",
            # There are no scripts before Spark 4.
            *(
                f"insert_into_hadoop_fs_relation.default_{name}{thread}"
                for name in ("f" if pyspark.__version__ < "4" else "xyf")
            ),
        ):
            expected[f"repeated.{job}"] = 8
        # Inserts, and as many writes by `saveAsTable` that are refused.
        expected[f"repeated.append.{namespace}_r{thread}"] = 16
    expected[f"repeated.count.{tmp_path.name}_rows"] = 32
    runs: dict[str, set[str]] = {}
    for event in told.events:
        runs.setdefault(event["job"]["name"], set()).add(event["run"]["runId"])
    del runs["repeated"]
    counted = {job: len(ids) for job, ids in runs.items()}
    # What Iceberg does when a table to be dropped is not there is not judged here.
    counted = {job: count for job, count in counted.items() if "drop_table." + namespace not in job}
    assert counted == expected
    ends = {event["run"]["runId"]: event for event in told.events}
    reported: dict[str, set[Any]] = {}
    for event in ends.values():
        outputs = tuple(map(as_reported, event["outputs"]))
        reported.setdefault(event["job"]["name"], set()).add(outputs)
    assert {job: found for job, found in reported.items() if len(found) > 1} == {}
    for job, found in reported.items():
        operation, _, table = job.removeprefix("repeated.").partition(".")
        if operation == "create_table_as_select":
            ((output,),) = found
            change = "OVERWRITE" if table.startswith("default_s") else "CREATE"
            assert output[2:] == ("TABLE", change, (".".join(table.rsplit("_", 1)),))


def as_reported(output: dict[str, Any]) -> tuple[str, str, str, str, tuple[str, ...]]:
    """The names of a dataset, its kind, what became of all of it, and its names elsewhere."""
    facets = output["facets"]
    return (
        output["namespace"],
        output["name"],
        facets["datasetType"]["datasetType"],
        facets.get("lifecycleStateChange", {}).get("lifecycleStateChange", ""),
        tuple(one["name"] for one in facets.get("symlinks", {}).get("identifiers", ())),
    )


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(1, marks=pytest.mark.full), pytest.param(8, marks=pytest.mark.soak)],
)
@pytest.mark.timeout(3600)
def test_every_case_has_one_job_name_and_one_run_each_time_in_every_thread(
    rounds: int,
    tmp_path: Path,
    kafka: KafkaClient,
    catalog: CatalogClient,
    s3: S3Client,
    postgres: PostgresClient,
) -> None:
    """What each case's statements are called alone, they are called in four threads, again and again."""
    assert {one.lab.home.root for one in (kafka, s3, postgres)} == {catalog.lab.home.root}
    threads = 4
    drivers = Drivers(tmp_path)
    drivers.seconds = 3500
    told = drivers.run("repeated_cases.py", str(catalog.lab.home.root), str(rounds))
    assert told.code == 0, told.error
    check_lives(told.events)
    played = json.loads((tmp_path / "played.json").read_text())
    assert {n: one["writers"] for n, one in played["once"].items() if one["writers"] != 1} == {}
    expected: Counter[str] = Counter()
    for one in played["once"].values():
        expected.update({job: count * rounds * threads for job, count in one["jobs"].items()})
    runs: dict[str, set[str]] = {}
    for event in told.events[played["mark"] :]:
        name = re.sub(rf"({played['namespace']})t\d", r"\1", event["job"]["name"])
        name = re.sub(r"\.t\d_", ".default_", name)
        runs.setdefault(name, set()).add(event["run"]["runId"])
    counted = {job: len(ids) for job, ids in runs.items()}
    del counted["cases"]
    assert counted == dict(expected)


def checkout(folder: Path, remote: str) -> str:
    """Make a folder a git checkout of one commit, and tell the commit."""

    def git(*argv: str) -> str:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        ran = subprocess.run(["git", *who, *argv], cwd=folder, capture_output=True, check=True)
        return ran.stdout.decode().strip()

    git("init", "-q", "-b", "trunk")
    git("remote", "add", "origin", remote)
    git("add", "plain.py")
    git("commit", "-q", "-m", "A job")
    return git("rev-parse", "HEAD")


def check_about(event: dict[str, Any], commit: str) -> None:
    """Where the program comes from, what it is tagged with, and who owns it."""
    job, run = event["job"]["facets"], event["run"]["facets"]
    code = job["sourceCodeLocation"]
    assert (code["type"], code["path"], code["version"], code["branch"]) == (
        "git",
        "plain.py",
        commit,
        "trunk",
    )
    assert code["repoUrl"].endswith("git.example.org/shop/jobs.git")
    assert {tag["key"]: tag["value"] for tag in job["tags"]["tags"]} == {
        "tier": "gold",
        "nightly": "true",
    }
    assert {tag["key"]: tag["value"] for tag in run["tags"]["tags"]} == {"attempt": "2"}
    assert job["ownership"]["owners"] == [{"name": "sales", "type": "team"}]
