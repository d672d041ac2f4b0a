"""Which call an execution belongs to: facts decide, and where they do not, it is attributed to none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from headwater.lineage.model import Dataset, Symlink
from headwater.spark import job_names
from headwater.spark.batch.action import Action, EndedExecution
from headwater.spark.batch.attribution import (
    CallMark,
    ExecutionAttribution,
    UnattributedExecutions,
    by_target,
    same_error,
)
from headwater.spark.batch.tracker import ActionTracker
from headwater.spark.driver.wrapped_methods import EntryPoint, MicroBatch, statement
from headwater.spark.model import PlanLineage
from headwater.spark.plan import refused
from headwater.spark.plan.refused import _insert, as_sql, read_refused

V2 = "DataSourceV2Relation"


class Thrown:
    """A throwable: equal to itself alone."""

    def equals(self, other: object) -> bool:
        return self is other


class Raised(Exception):
    def __init__(self, origin: Thrown) -> None:
        super().__init__("raised")
        self._origin = origin


def action(target: str = "", kind: str = "write", first: int = 0) -> Action:
    made = Action(EntryPoint(kind, "save", target), 0.0)
    made.mark = CallMark(first, None, True)
    return made


def test_a_plan_made_after_the_call_is_not_its_own() -> None:
    last, following = action(first=3), action(first=7)
    last.end_plan = 7
    assert [last.made(number) for number in (2, 3, 6, 7)] == [False, True, True, False]
    assert following.made(7)


def test_the_call_that_names_the_place_is_chosen_over_those_that_name_another() -> None:
    one, ten = action("/data/out_1"), action("/data/out_10")
    assert by_target([one, ten], [Dataset("file", "/data/out_10")]) == [ten]
    assert by_target([one, ten], [Dataset("file", "/data/out_1")]) == [one]


def test_tables_and_buckets_are_compared_by_whole_parts_of_their_names() -> None:
    table, other = action("db.orders"), action("db.old_orders")
    link = Symlink("hive://h", "lab.db.orders")
    written = Dataset("s3://lake", "w/db/orders-1", symlinks=(link,))
    assert by_target([table, other], [written]) == [table]
    away = action("s3a://lake/raw/orders")
    assert by_target([away, other], [Dataset("s3://lake", "raw/orders")]) == [away]


def test_a_call_that_names_the_place_is_chosen_over_those_that_name_none() -> None:
    says, silent, again = action("/out"), action(), action("/out")
    out = [Dataset("file", "/out")]
    assert by_target([says, silent], out) == [says]
    assert by_target([says, again], out) == [says, again]
    assert by_target([silent, action(kind="read")], out) == [silent]
    assert by_target([silent, action("/other")], out)[0] is silent


def test_a_query_of_another_thread_does_not_hide_who_writes() -> None:
    writes = action()
    for sql in (
        "SELECT a FROM t",
        " (select 1) union (select 2)",
        "-- nightly\nEXPLAIN INSERT INTO t1 VALUES (1)",
    ):
        query = Action(statement(sql), 0.0)
        assert by_target([writes, query], [Dataset("file", "/warehouse/t1")]) == [writes], sql
    for sql in ("FROM t INSERT INTO a SELECT b", "CALL system.rewrite('t1')"):
        command = Action(statement(sql), 0.0)
        assert len(by_target([writes, command], [Dataset("file", "/warehouse/t1")])) == 2, sql


@pytest.mark.parametrize(
    ("method", "mode", "target", "sql"),
    [
        ("insertInto", "ErrorIfExists", "db.a", "INSERT INTO db.a VALUES (1)"),
        ("insertInto", "Overwrite", "db.a", "INSERT OVERWRITE db.a VALUES (1)"),
        ("saveAsTable", "Ignore", "a", "CREATE TABLE a AS SELECT 1"),
        ("saveAsTable", "Append", "a", "INSERT INTO a VALUES (1)"),
        ("saveAsTable", "Overwrite", "a", "INSERT OVERWRITE a VALUES (1)"),
        ("overwritePartitions", "", "a", "INSERT OVERWRITE a VALUES (1)"),
        ("createOrReplace", "", "a", "REPLACE TABLE a AS SELECT 1"),
        ("append", "", "", ""),
        ("parquet", "Append", "/out", ""),
    ],
)
def test_a_writer_as_the_statement_that_writes_alike(
    method: str, mode: str, target: str, sql: str
) -> None:
    assert as_sql(EntryPoint("write", job_names.operation(method), target), mode) == sql


@pytest.mark.parametrize(
    ("method", "relation", "exists", "overwrites", "operation"),
    [
        ("insertInto", V2, True, True, "overwrite_by_expression"),
        ("insertInto", V2, False, False, "append"),
        ("saveAsTable", V2, True, False, "append"),
        ("saveAsTable", V2, False, False, "create_table_as_select"),
        ("saveAsTable", V2, True, True, "replace_table_as_select"),
        ("saveAsTable", V2, False, True, "replace_table_as_select"),
        ("saveAsTable", "LogicalRelation", True, False, "create_table_as_select"),
        ("overwritePartitions", V2, True, True, "overwrite_partitions_dynamic"),
    ],
)
def test_a_writer_does_what_it_would_have_done(
    monkeypatch: pytest.MonkeyPatch,
    method: str, relation: str, exists: bool, overwrites: bool, operation: str,
) -> None:  # fmt: skip
    table = SimpleNamespace() if exists else None
    monkeypatch.setattr(refused, "_target", lambda *_: (None, relation, table))
    plan = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getName=lambda: "logical.InsertIntoStatement"),
        overwrite=lambda: overwrites,
    )
    session: Any = SimpleNamespace(setting=lambda _: "static")
    assert read_refused(session, plan, job_names.operation(method)).operation == operation


@pytest.mark.parametrize(
    ("overwrites", "dynamic", "operation"),
    [
        (False, True, "append"),
        (True, False, "overwrite_by_expression"),
        (True, True, "overwrite_partitions_dynamic"),
    ],
)
def test_an_insert_that_is_refused_does_what_it_would_have_done(
    overwrites: bool, dynamic: bool, operation: str
) -> None:
    plan = SimpleNamespace(overwrite=lambda: overwrites)
    assert _insert(plan, V2, dynamic=dynamic) == operation


class Plans:
    """A reader of plans that are their own lineage."""

    def batch(self, execution: Any) -> PlanLineage:
        lineage: PlanLineage = execution.lineage
        return lineage


def execution(number: int, operation: str, output: str) -> Any:
    logical = SimpleNamespace(nodeName=lambda: operation)
    lineage = PlanLineage(operation=operation, outputs=(Dataset("file", output),))
    return SimpleNamespace(id=lambda: number, lineage=lineage, logical=lambda: logical)


def test_the_second_write_to_a_place_is_not_of_the_call_that_names_it() -> None:
    """Else one of two calls that write there would be lost in the run of the other."""
    reader: Any = Plans()
    attribution = ExecutionAttribution(reader)
    says, silent = action("/out"), action()
    attribution.open += [says, silent]
    for _ in range(2):
        assert candidates(attribution, execution(3, "append", "/out")) == [says]
    assert candidates(attribution, execution(4, "append", "/out")) == [says, silent]
    assert candidates(attribution, execution(5, "create_table_as_select", "/out")) == [says]


def candidates(attribution: ExecutionAttribution, one: Any) -> list[Action]:
    return attribution.candidates(one.id(), one)


def query(number: int, *inputs: str) -> Any:
    lineage = PlanLineage(inputs=tuple(Dataset("file", name) for name in inputs))
    return SimpleNamespace(id=lambda: number, lineage=lineage)


def test_a_count_beside_a_write_is_known_by_what_its_frame_reads() -> None:
    """`count` makes a plan of its own, so its number fits the calls of other threads too."""
    reader: Any = Plans()
    attribution = ExecutionAttribution(reader)
    counts, other, writes = action(kind="read"), action(kind="read"), action("/out")
    for one, number, name in ((counts, 1, "/in"), (other, 2, "/else")):
        frame = query(number, name)
        one.owner = SimpleNamespace(_jdf=SimpleNamespace(queryExecution=lambda frame=frame: frame))
    attribution.open += [counts, other, writes]
    assert candidates(attribution, query(5, "/in")) == [counts]
    assert candidates(attribution, query(6, "/in", "/else")) == [counts, other, writes]
    counts.callbacks = 1
    assert candidates(attribution, query(7, "/in")) == [counts, other, writes]


def test_what_was_attributed_before_counts_as_written() -> None:
    reader: Any = Plans()
    attribution = ExecutionAttribution(reader)
    says, silent = action("/out"), action(first=5)
    says.ended.append(EndedExecution(3, execution(3, "append", "/out"), None, 0.0, 0.0))
    attribution.open += [says, silent]
    assert candidates(attribution, execution(6, "append", "/out")) == [says, silent]


@pytest.mark.parametrize(
    ("sql", "operation", "targets"),
    [
        ("insert into table a values (1)", "insert_into_table", ("a",)),
        ("/* one */ -- two\n insert overwrite `db`.a select 1", "insert_overwrite", ("db.a",)),
        ("with x as (select 1) insert into a select * from x", "insert_into", ("a",)),
        ("merge into a using b on 1 = 1", "merge_into", ("a",)),
        ("merge with schema evolution into a using b on 1 = 1", "merge_into", ("a",)),
        ("drop table if exists a", "drop_table_if_exists", ("a",)),
        ("from o insert into a select b insert overwrite c select d", "multi_insert", ("a", "c")),
        ("with x as (select 'insert into q' s from y) -- from\n from x insert into a select b insert overwrite `c` select d",
         "multi_insert", ("a", "c")),
        ("with x as (select 1 from y) insert into a select (select max(b) from c)", "insert_into", ("a",)),
        ("with x as (from y select 1) insert into a select * from x", "insert_into", ("a",)),
        ("from o select 'insert into a'", "", ()),
        ("from (select 1 as `insert into a`) select 1", "", ()),
        ("begin insert into a select 1; update c set d = 1; end", "", ("a", "c")),
        ("begin insert into a select 1; execute immediate 'drop table c'; end", "", ()),
        ("select 1", "", ()),
        ("/* open", "", ()),
    ],
)  # fmt: skip
def test_what_a_statement_says_before_it_runs(
    sql: str, operation: str, targets: tuple[str, ...]
) -> None:
    entry = statement(sql)
    assert (entry.operation, entry.targets, entry.sql) == (operation, targets, sql)
    assert entry.script is sql.startswith("begin")


def test_the_outer_execution_is_found_when_both_begin_between_two_questions() -> None:
    """Else START would have the name of what a command executes inside of it."""
    begun: dict[str, str] = {}

    class Thread:
        def getProperty(self, key: str) -> str | None:  # noqa: N802
            found = begun.get(key)
            begun.update({"spark.sql.execution.root.id": "4", "spark.sql.execution.id": "5"})
            return found

    mark = CallMark(0, Thread(), pinned=True)
    assert mark.running() == []
    assert mark.running() == [4, 5]


def test_an_error_is_known_by_the_throwable_itself() -> None:
    thrown = Thrown()
    assert same_error(Raised(thrown), thrown)
    assert not same_error(Raised(Thrown()), thrown)
    assert not same_error(ValueError(), thrown)
    assert not same_error(None, thrown)


def ended(name: str, number: int, node: str = "append") -> Action:
    made = Action(EntryPoint("write", "save"), 0.0)
    made.number, made.node = number, node
    made.lineage = PlanLineage(outputs=(Dataset("file", name),))
    return made


def test_a_flush_goes_on_when_no_execution_is_left_to_attribute() -> None:
    executions = UnattributedExecutions()
    assert executions.wait(0)
    executions.add(ended("/out", 1))
    assert executions
    assert not executions.wait(0)
    assert [one.number for one in executions.expired([], at_once=True)] == [1]
    assert executions.wait(0)
    assert not executions


def test_an_execution_waits_for_its_call() -> None:
    executions = UnattributedExecutions()
    executions.add(ended("/out", 1))
    assert not list(executions.expired([]))
    assert not executions.wait(0)


def test_the_command_around_a_step_is_the_run() -> None:
    executions = UnattributedExecutions()
    executions.add(ended("/out", 2))
    executions.add(ended("/other", 2))
    executions.add(ended("/out", 1, "create_table_as_select"))
    assert [one.number for one in executions.expired([], at_once=True)] == [2, 1]


def test_two_commands_at_once_lose_one_step_each() -> None:
    executions = UnattributedExecutions()
    for number, operation in (
        (13, "append"),
        (11, "append"),
        (10, "create"),
        (12, "create"),
    ):
        executions.add(ended("/out", number, operation))
    assert [one.number for one in executions.expired([], at_once=True)] == [10, 12]


def test_two_writes_of_one_kind_are_no_steps_of_each_other() -> None:
    executions = UnattributedExecutions()
    for number in (2, 1):
        executions.add(ended("/out", number))
    assert len(list(executions.expired([], at_once=True))) == 2


def test_a_step_of_a_reported_command_is_no_run_whatever_else_is_under_way() -> None:
    command, silent = ended("/out", 4, "create_table_as_select"), action()
    command.life = cast("Any", object())
    for number, operation, runs in (
        (5, "append", 0),
        (5, "create_table_as_select", 1),
        (3, "append", 1),
    ):
        executions = UnattributedExecutions()
        step = ended("/out", number, operation)
        step.candidates = [command, silent]
        executions.add(step)
        assert len(list(executions.expired([], at_once=True))) == runs, (number, operation)


def test_the_outer_command_names_the_job_whichever_is_read_first() -> None:
    outer = PlanLineage(operation="create_table_as_select", outputs=(Dataset("file", "/t"),))
    inner = PlanLineage(operation="append", outputs=(Dataset("file", "/t"),))
    query = PlanLineage(inputs=(Dataset("file", "/source"),))
    for order in ([4, 5, 6], [6, 5, 4], [5, 6, 4]):
        made = action()
        for number in order:
            made.learn(number, {4: outer, 5: inner, 6: query}[number], "")
        assert made.lineage is outer, order


def test_a_read_is_named_by_the_first_query_with_inputs() -> None:
    made = action(kind="read")
    first = PlanLineage(inputs=(Dataset("file", "/one"),))
    made.learn(3, PlanLineage(), "")
    made.learn(4, first, "")
    made.learn(5, PlanLineage(inputs=(Dataset("file", "/two"),)), "")
    assert made.lineage is first


def test_a_call_is_marked_before_executions_of_others_can_be_taken_for_its_own() -> None:
    """Else the end of the last call's execution, processed just then, fits both and is unattributed."""
    open_at_mark: list[list[Action]] = []

    class Bridge:
        next_execution = 0
        pinned = False

        @property
        def next_plan(self) -> int:
            open_at_mark.append(tracker.open)
            return 8

    application: Any = SimpleNamespace(
        bridge=Bridge(), reader=None, worker=SimpleNamespace(post=lambda _task: None)
    )
    tracker = ActionTracker(application)
    following = Action(EntryPoint("sql", ""), 0.0)
    assert tracker.call_started(following)
    assert open_at_mark == [[]]
    assert tracker.open == [following]
    assert not following.made(7)


class Writer:
    """A DataFrameWriter as the JVM has it, or one of a JVM that is gone."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self._jwrite = self

    def getClass(self) -> Any:  # noqa: N802
        if not self.mode:
            raise ConnectionError
        field = SimpleNamespace(
            getName=lambda: "curmode",
            setAccessible=lambda _: None,
            get=lambda _: SimpleNamespace(toString=lambda: self.mode),
        )
        return SimpleNamespace(getDeclaredFields=lambda: [field])


def test_a_refused_write_has_the_name_of_the_mode_that_its_writer_had_then() -> None:
    asked: list[str] = []

    def statement(sql: str, _: str) -> PlanLineage:
        asked.append(sql)
        return PlanLineage(operation="append")

    application: Any = SimpleNamespace(
        bridge=SimpleNamespace(next_execution=0, alive=True, next_plan=1),
        reader=SimpleNamespace(statement=statement),
        worker=SimpleNamespace(post=lambda _task: None),
    )
    tracker = ActionTracker(application)
    for writer in (Writer("Append"), Writer("")):
        call = Action(EntryPoint("write", "save_as_table", "t"), 0.0, writer)
        tracker.call_returned(call, ValueError())
        writer.mode = "Overwrite"  # for its next call
        tracker._read_statement(call)
    # Of a JVM that is gone, the mode is not known; its run still ends.
    assert asked == ["INSERT INTO t VALUES (1)", "CREATE TABLE t AS SELECT 1"]


def in_micro_batch(session: str) -> Action:
    made = action()
    made.micro_batch = MicroBatch(None)
    made.micro_batch._session = session
    return made


def test_a_write_in_a_micro_batch_is_its_querys() -> None:
    class Query:
        def __init__(self, reads: object) -> None:
            self.reads = reads

        def reads_batch(self, execution: object) -> bool:
            return execution is self.reads

    mine, other = object(), object()
    queries = {"one": Query(mine), "two": Query(other)}
    tracker = ActionTracker.__new__(ActionTracker)
    tracker._app = SimpleNamespace(queries=SimpleNamespace(of_session=queries.get))  # type: ignore[assignment]
    one, two, plain = in_micro_batch("one"), in_micro_batch("two"), action()

    def found(calls: list[Action], execution: object) -> object:
        return tracker._in_micro_batch(calls, execution)

    assert found([one], None) is found([one, one], None) is queries["one"]
    assert found([plain], mine) is None
    assert found([one, two], mine) is found([one, plain], mine) is queries["one"]
    assert found([one, two], None) is found([one, plain], None) is None
