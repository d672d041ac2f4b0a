"""A lab's processes: found by their mark, the leader told from what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from headwater.errors import HeadwaterError
from headwater.lab import process
from headwater.lab.lab import Lab
from headwater.lab.process import Command
from headwater.lab.services.postgres import NOBODY, unprivileged
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SLEEP = [sys.executable, "-IS", "-c", "import time; time.sleep(60)"]
# Says when its child runs, and would outlive a polite request.
PARENT = (
    "import os, signal, subprocess, sys, time; signal.signal(15, signal.SIG_IGN);"
    "subprocess.Popen([sys.executable, '-IS', '-c', 'import time; time.sleep(60)']);"
    "print('up', flush=True); time.sleep(60)"
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    process.end([*process.find(tmp_path).values(), *process.strays(tmp_path)])


def start(home: Path, argv: list[str], service: str = "kafka") -> psutil.Process:
    log = home / f"{service}.log"
    pid = process.start(Command(argv), home=home, service=service, cwd=home, log=log)
    wait_until(lambda: service in process.find(home), seconds=120, what="the process")
    return psutil.Process(pid)


def test_a_process_is_found_by_its_mark_and_only_in_its_lab(home: Path) -> None:
    started = start(home, SLEEP)
    assert process.find(home) == {"kafka": started}
    assert process.find(home.parent) == {}
    assert os.getsid(started.pid) == started.pid  # a terminal's Ctrl-C does not reach it


def test_a_foreign_process_of_the_same_looks_is_not_found(home: Path) -> None:
    mine = start(home, SLEEP)
    foreign = subprocess.Popen(SLEEP, cwd=home)
    try:
        assert Lab(home).down() == ["kafka"]
        assert not mine.is_running()
        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


def test_what_does_not_listen_is_killed_with_its_children(home: Path) -> None:
    leader = start(home, [sys.executable, "-IS", "-c", PARENT])
    wait_until(lambda: "up" in (home / "kafka.log").read_text(), seconds=120, what="its child")
    members = process.family(leader)
    assert len(members) == 2
    process.stop({leader: signal.SIGTERM}, 0.2)
    assert not any(process.alive(member) for member in members)


def test_a_child_without_its_leader_is_a_stray_and_not_the_service(home: Path) -> None:
    leader = start(home, [sys.executable, "-IS", "-c", PARENT])
    wait_until(lambda: "up" in (home / "kafka.log").read_text(), seconds=120, what="its child")
    (child,) = leader.children()
    assert process.strays(home) == []
    leader.kill()
    leader.wait()
    assert process.find(home) == {}
    assert process.strays(home) == [child]
    assert Lab(home).down() == []
    assert not process.alive(child)


def test_a_tool_of_a_killed_command_is_a_stray(home: Path) -> None:
    program = (
        "import pathlib, sys; from headwater.lab import process;"
        f"process.run({SLEEP!r}, home=pathlib.Path(sys.argv[1]), cwd=sys.argv[1])"
    )
    command = subprocess.Popen([sys.executable, "-c", program, str(home)])
    (tool,) = wait_until(lambda: process.strays(home), seconds=120, what="the tool")
    assert process.orphans(home) == []
    command.kill()
    command.wait()
    assert process.find(home) == {}
    assert process.orphans(home) == [tool]
    assert Lab(home).down() == []
    assert not process.alive(tool)


def test_a_commands_own_job_outlives_the_start_and_stop_of_other_services(home: Path) -> None:
    Lab(home).home.save()
    env = process.environment(home, "", {})
    job = subprocess.Popen([sys.executable, "-IS", "-c", PARENT], env=env, stdout=subprocess.PIPE)
    assert job.stdout
    job.stdout.readline()
    members = process.family(psutil.Process(job.pid))
    try:
        assert set(process.strays(home)) == set(members)
        assert process.orphans(home) == []
        leader = start(home, SLEEP)
        assert Lab(home).down(["kafka"]) == ["kafka"]
        assert not leader.is_running()
        assert all(process.alive(member) for member in members)
        assert len(members) == 2
        assert Lab(home).down() == []
        assert not any(process.alive(member) for member in members)
    finally:
        job.kill()
        job.communicate()


def test_what_the_shell_says_about_other_clusters_stays_outside(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = {
        "AWS_PROFILE": "work",
        "JAVA_TOOL_OPTIONS": "-XX:+UseG1GC",
        "_JAVA_OPTIONS": "-Xmx1m",
        "PGPASSWORD": "secret",
        "SPARK_CONF_DIR": "/etc/spark",
        "SCHEMA_REGISTRY_TOKEN": "secret",
        "HEADWATER_TOKEN": "secret",
        "OPENLINEAGE_API_KEY": "secret",
        "OPENLINEAGE_DISABLED": "true",
        "OPENLINEAGE_JOBNAME": "mine",
        "OPENLINEAGE__TRANSPORT__TYPE": "console",
        "HEADWATER_SERVER_TOKEN_FILE": "/mine",
        "HEADWATER_CONNECT_CLUSTERS": "/mine",
        "HEADWATER_WATCHDOG": "0",
        "INPUT_TOPIC": "mine",
        "AVAILABLE_NOW": "1",
        "http_proxy": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "LANG": "C",
    }
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MY_OWN", "kept")
    seen = process.environment(home, "kafka", {"AWS_REGION": "us-east-1"})
    assert not foreign.keys() & seen.keys()
    assert seen["MY_OWN"] == "kept"
    assert seen["AWS_REGION"] == "us-east-1"
    assert seen["LC_ALL"] == "C.UTF-8"


def test_a_log_that_has_grown_long_is_put_aside(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_LOG", 10)
    (home / "kafka.log").write_text("a long story\n")
    start(home, SLEEP)
    assert (home / "kafka.log.1").read_text() == "a long story\n"
    assert (home / "kafka.log").read_text() == ""


def test_waiting_has_an_end_and_says_for_what() -> None:
    with pytest.raises(HeadwaterError, match=r"waited 0\.05 s in vain for godot"):
        wait_until(lambda: False, seconds=0.05, what="godot", interval=0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="PostgreSQL becomes another user for root alone")
def test_programs_below_a_closed_folder_are_found_by_the_user_that_runs_postgresql(
    tmp_path: Path,
) -> None:
    closed = tmp_path / "root"
    closed.mkdir(mode=0o700)
    program = closed / "python"
    program.symlink_to(sys.executable)
    asked = "import os, sys; print(os.geteuid(), os.access(sys.argv[1], os.X_OK))"
    argv = unprivileged([str(program), "-IS", "-c", asked, str(program)])
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == [str(NOBODY), "True"], ran.stderr
