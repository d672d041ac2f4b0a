"""What an end of the process makes of its runs, and how it is noticed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headwater.emit.process import process_exit
from headwater.emit.process.process_exit import ProcessExit, of_exception, of_exit
from headwater.lineage.openlineage.events import EventType


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, EventType.COMPLETE),
        (SystemExit(0), EventType.COMPLETE),
        (SystemExit(None), EventType.COMPLETE),
        (SystemExit(3), EventType.FAIL),
        (SystemExit("no such file"), EventType.FAIL),
        (KeyboardInterrupt(), EventType.ABORT),
        (ValueError("x"), EventType.FAIL),
    ],
)
def test_exceptions(error: BaseException | None, expected: EventType) -> None:
    assert of_exception(error).type is expected


def test_credentials_are_taken_out() -> None:
    try:
        raise ValueError("jdbc:postgresql://u:hunter2@h/db password=hunter2")
    except ValueError as error:
        ending = of_exception(error)
    assert "hunter2" not in ending.message + ending.stack_trace
    assert "hunter2" not in of_exit("token=hunter2").message


def test_traces_of_others_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_exit, "TRACES", [lambda _: "at org.apache.spark.Here"])
    assert "org.apache.spark.Here" in of_exception(ValueError("x")).stack_trace


def test_everyone_is_told_once_and_the_latest_first() -> None:
    told: list[str] = []
    watched = ProcessExit()
    watched._installed = True
    watched.watch(lambda ending: told.append(f"first {ending.type.value}"))
    watched.watch(lambda _: told.append("second"))
    watched.program_ended(SystemExit(2))
    watched.finish()
    watched.finish()
    assert told == ["second", "first FAIL"]


def test_new_work_takes_an_exit_back() -> None:
    watched = ProcessExit()
    watched.program_ended(SystemExit(2))
    watched.alive()
    assert watched.now.type is EventType.COMPLETE


@pytest.mark.parametrize(("shell", "said"), [(True, EventType.COMPLETE), (False, EventType.FAIL)])
def test_in_a_shell_an_exception_ends_one_command_alone(
    monkeypatch: pytest.MonkeyPatch, shell: bool, said: EventType
) -> None:
    if shell:
        monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    watched = ProcessExit()
    watched.program_ended(ValueError("of an hour ago"))
    watched.alive()
    assert watched.now.type is said


def test_what_is_not_to_be_told_is_taken_out_of_message_and_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_exit, "MESSAGE_FILTERS", [lambda text: text.replace("plan", "...")])
    ending = of_exception(ValueError("the plan"))
    assert ending.message == "ValueError: the ..."
    assert "plan" not in ending.stack_trace


PROGRAM = """
import os, signal, sys
if {early}:
    signal.signal(signal.SIGTERM, lambda *_: (print("theirs"), sys.exit(0)))
from headwater.emit.process.process_exit import PROCESS_EXIT
PROCESS_EXIT.watch(lambda ending: print(ending.type.value, ending.reason, flush=True))
{end}
"""


@pytest.mark.parametrize(
    ("end", "early", "said", "code"),
    [
        ("pass", False, "COMPLETE finished", 0),
        ("sys.exit(3)", False, "FAIL exit code", 3),
        ("raise ValueError", False, "FAIL exception", 1),
        ("os.kill(os.getpid(), 15)", False, "ABORT signal SIGTERM", -15),
        ("os.kill(os.getpid(), 1)", False, "ABORT signal SIGHUP", -1),
        ("os.kill(os.getpid(), 15)", True, "theirs\nABORT signal SIGTERM", 0),
        ("os.kill(os.getpid(), 2)", False, "ABORT signal SIGINT", -2),
    ],
)
def test_processes(end: str, early: bool, said: str, code: int) -> None:
    text = PROGRAM.format(end=end, early=early)
    ended = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.stdout.strip() == said
    assert ended.returncode == code
