"""SQL scripts: which of their executions are statements, and the run of each."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.emit.process.process_exit import failed
from headwater.lineage.model import Dataset
from headwater.spark.batch.action import Action, EndedExecution
from headwater.spark.batch.attribution import CallMark
from headwater.spark.batch.script import Script
from headwater.spark.driver.config import SparkSettings
from headwater.spark.driver.wrapped_methods import statement
from headwater.spark.model import PlanLineage

SCRIPT = "BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END"


class Life:
    """A run that keeps its events."""

    def __init__(self, events: list[tuple[str, str, float]], name: str) -> None:
        self._events, self._name = events, name
        self.lineage: Any = None

    def start(self, moment: float) -> None:
        self._events.append(("START", self._name, moment))

    def end(self, ending: Any, moment: float | None = None) -> None:
        self._events.append((str(ending.type.value), self._name, moment or -1.0))


class Application:
    """What a script needs of an application: a JVM's answers, a reader, and runs."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, float]] = []
        self.settings = SparkSettings(namespace="n", app_name="app")
        self.running: dict[int, Any] = {}
        self.bridge = SimpleNamespace(alive=True, spark=None, execution=self.running.get)
        self.reader = SimpleNamespace(batch=lambda execution: execution.lineage)
        self.queries = SimpleNamespace(altered=lambda _datasets: None)

    def child(self, name: str, _processing: str, _kind: str) -> Any:
        return Life(self.events, name)


def execution(number: int, operation: str = "append", output: str = "") -> Any:
    outputs = (Dataset("file", f"/{output}"),) if output else ()
    return SimpleNamespace(
        id=lambda: number,
        logical=lambda: SimpleNamespace(nodeName=lambda: operation),
        lineage=PlanLineage(operation=operation, outputs=outputs),
    )


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
def call(application: Application) -> Action:
    made = Action(statement(SCRIPT), 0.0)
    made.mark = CallMark(1, None, pinned=True)
    given: Any = application
    made.script = Script(given, made)
    return made


def ended(call: Action, given: Any, began: float, at: float, *, fails: bool = False) -> None:
    failure = failed("exception", "no", "") if fails else None
    call.ended.append(EndedExecution(given.id(), given, failure, began, at))


def end(call: Action) -> None:
    assert call.script is not None
    call.script.end(None)


def test_each_statement_is_a_run_with_its_own_end(application: Application, call: Action) -> None:
    ended(call, execution(2, output="a"), 10.0, 11.0)
    ended(call, execution(3, "collect"), 11.0, 12.0)
    ended(call, execution(4, output="b"), 12.0, 13.0, fails=True)
    ended(call, execution(1, "CompoundBody"), 10.0, 13.0, fails=True)
    end(call)
    assert application.events == [
        ("START", "app.append.a", 10.0),
        ("COMPLETE", "app.append.a", 11.0),
        ("START", "app.append.b", 12.0),
        ("FAIL", "app.append.b", 13.0),
    ]


def test_a_statement_in_a_loop_is_a_run_each_time(application: Application, call: Action) -> None:
    for number in (2, 3, 4):
        ended(call, execution(number, output="a"), number, number + 0.5)
    end(call)
    assert [kind for kind, *_ in application.events] == ["START", "COMPLETE"] * 3


def test_what_a_statement_executes_inside_of_it_is_no_run(
    application: Application, call: Action
) -> None:
    ended(call, execution(3, "append", "c"), 10.2, 10.8)
    ended(call, execution(2, "create", "c"), 10.0, 11.0)
    ended(call, execution(5, "append", "d"), 12.2, 12.8)
    ended(call, execution(4, "create", "d"), 12.0, 13.0)
    end(call)
    assert [name for _, name, _ in application.events] == ["app.create.c"] * 2 + [
        "app.create.d"
    ] * 2


def test_a_statement_starts_while_the_script_runs_and_ends_before_the_next(
    application: Application, call: Action
) -> None:
    first, second = execution(2, output="a"), execution(4, output="b")
    assert call.script is not None
    call.script.poll(first)
    call.script.poll(first)
    assert [(kind, name) for kind, name, _ in application.events] == [("START", "app.append.a")]
    ended(call, first, 10.0, 11.0)
    call.script.poll(second)
    assert application.events[1] == ("COMPLETE", "app.append.a", 11.0)
    assert application.events[2][:2] == ("START", "app.append.b")
    assert len(application.events) == 3
    ended(call, second, 11.0, 15.0)
    end(call)
    assert application.events[3:] == [("COMPLETE", "app.append.b", 15.0)]


def test_a_statement_that_runs_when_the_process_ends_ends_with_it(
    application: Application, call: Action
) -> None:
    assert call.script is not None
    call.script.poll(execution(2, output="a"))
    call.script.end(failed("exit code", "1", ""))
    assert [kind for kind, *_ in application.events] == ["START", "FAIL"]


def test_many_ended_statements_are_reported_while_the_script_goes_on(
    application: Application, call: Action
) -> None:
    application.running[9] = execution(4, "create", "d")
    properties = {"spark.sql.execution.id": "9", "spark.sql.execution.root.id": "9"}
    call.mark = CallMark(1, SimpleNamespace(getProperty=properties.get), pinned=True)
    ended(call, execution(2, output="a"), 10.0, 11.0)
    ended(call, execution(5, "append", "d"), 12.0, 12.5)
    assert call.script is not None
    call.script.end_before_running()
    assert [name for _, name, _ in application.events] == ["app.append.a"] * 2
    assert [one.number for one in call.ended] == [5], "the step of the statement that runs"
