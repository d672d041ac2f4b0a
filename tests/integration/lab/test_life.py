"""A lab's life as its user leads it: by the command, with kills, strangers and other labs about."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from headwater.lab import process
from headwater.lab.lab import Lab
from headwater.lab.ports import LOOPBACK
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HEADWATER = [sys.executable, "-c", "from headwater.cli.main import main; main()", "lab"]
CHEAP = ["s3", "postgres"]


def headwater(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `headwater lab`."""
    return subprocess.run(
        [*HEADWATER, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


def started(*arguments: object) -> subprocess.Popen[str]:
    """Start `headwater lab` and do not wait for it."""
    return subprocess.Popen(
        [*HEADWATER, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def status(home: Path) -> dict[str, dict[str, Any]]:
    told = headwater("status", "--json", "--home", home)
    return {row["service"]: row for row in json.loads(told.stdout)}


def of_lab(home: Path) -> list[psutil.Process]:
    """Every process that has to do with a home, whoever started it and whatever mark it has."""
    found = []
    for each in psutil.process_iter():
        try:
            told = [*each.cmdline(), each.cwd(), each.environ().get(process.HOME_MARK, "")]
        except (psutil.Error, OSError):
            continue
        if each.pid != os.getpid() and process.alive(each) and any(str(home) in t for t in told):
            found.append(each)
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lab with its cheapest services, below a path with a space and an umlaut."""
    folder = tmp_path_factory.mktemp("läb one") / "home"
    up = headwater("up", *CHEAP, "--home", folder)
    assert up.returncode == 0, up.stderr
    yield folder
    Lab(folder).reset()


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Path]:
    """The folder of a lab that is not there yet."""
    yield tmp_path / "another"
    Lab(tmp_path / "another").down()
    shutil.rmtree(tmp_path / "another", ignore_errors=True)


def test_what_runs_is_told_and_a_second_up_changes_nothing(home: Path) -> None:
    before = status(home)
    assert {name: row["state"] for name, row in before.items()} == {
        **dict.fromkeys(["kafka", "connect", "registry", "catalog"], "stopped"),
        **dict.fromkeys(CHEAP, "running"),
    }
    for name in CHEAP:
        row = before[name]
        assert psutil.pid_exists(row["pid"])
        assert row["memory"] > 1 << 20
        assert row["uptime"] > 0
        assert row["log"] == str(home / "logs" / f"{name}.log")
    assert headwater("status", "--home", home).returncode == 0
    assert headwater("up", *CHEAP, "--home", home).returncode == 0
    after = status(home)
    assert [after[name]["pid"] for name in CHEAP] == [before[name]["pid"] for name in CHEAP]


def test_a_killed_service_has_died_and_comes_back(home: Path) -> None:
    with (home / "logs" / "s3.log").open("a") as log:
        log.write("the last words\n")
    os.kill(status(home)["s3"]["pid"], signal.SIGKILL)
    wait_until(lambda: "s3" not in process.find(home), seconds=120, what="the end of s3")
    told = headwater("status", "--home", home)
    assert told.returncode == 1
    assert [line.split()[1] for line in told.stdout.splitlines() if line[:3] == "s3 "] == ["died"]
    assert "s3 has died; the end of its log:" in told.stderr
    assert "  the last words" in told.stderr
    assert "hint: start it again: headwater lab up" in told.stderr
    assert status(home)["postgres"]["state"] == "running"
    assert headwater("up", *CHEAP, "--home", home).returncode == 0
    assert status(home)["s3"]["state"] == "running"


@pytest.mark.full
def test_a_service_that_does_not_answer_is_not_called_running(home: Path) -> None:
    leader = process.find(home)["s3"]
    leader.suspend()
    try:
        told = headwater("status", "s3", "--json", "--home", home)
    finally:
        leader.resume()
    assert told.returncode == 1
    assert json.loads(told.stdout)[0]["state"] in {"starting", "unhealthy"}


@pytest.mark.full
def test_a_killed_postgres_leaves_nothing_that_hinders_its_successor(home: Path) -> None:
    process.find(home)["postgres"].kill()
    up = headwater("up", "postgres", "--home", home)  # at once: its children may still live
    assert up.returncode == 0, up.stderr


@pytest.mark.full
def test_two_labs_run_side_by_side(home: Path, another: Path) -> None:
    assert headwater("up", *CHEAP, "--home", another).returncode == 0
    here, there = status(home), status(another)
    for name in CHEAP:
        assert here[name]["port"] != there[name]["port"]
        assert here[name]["pid"] != there[name]["pid"]
    down = headwater("down", "--json", "--home", another)
    assert json.loads(down.stdout) == {"stopped": ["postgres", "s3"]}
    assert of_lab(another) == []
    assert [path.name for path in another.glob("*lock*")] == []
    assert {row["state"] for row in status(another).values()} == {"stopped"}
    after = status(home)
    assert {after[name]["state"] for name in CHEAP} == {"running"}


def test_a_taken_port_names_who_has_it_and_the_way_out(another: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind((LOOPBACK, 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        told = headwater("up", "s3", "--port", f"s3={port}", "--home", another)
    assert told.returncode == 3
    name = psutil.Process().name()
    assert f"s3 cannot have port {port}: it is taken by {name} (pid {os.getpid()})" in told.stderr
    assert "headwater lab up --port s3=PORT" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.full
def test_down_spares_strangers_however_like_a_service_they_look(another: Path) -> None:
    assert headwater("up", "s3", "--home", another).returncode == 0
    leader = process.find(another)["s3"]
    idle = [sys.executable, "-c", "import time; time.sleep(100)"]
    alike = subprocess.Popen([*idle, *leader.cmdline()[1:]], cwd=leader.cwd())
    try:
        assert headwater("down", "--home", another).stdout == "stopped s3\n"
        assert alike.poll() is None
        assert [each.pid for each in of_lab(another)] == [alike.pid]
    finally:
        alike.kill()
        alike.wait()


@pytest.mark.full
def test_down_finds_services_whose_home_was_removed(another: Path) -> None:
    assert headwater("up", "s3", "--home", another).returncode == 0
    shutil.rmtree(another)
    assert headwater("down", "--home", another).stdout == "stopped s3\n"
    assert of_lab(another) == []


def lock_is_there(home: Path) -> object:
    return (home / "lab.lock").exists()


def storage_is_being_made(home: Path) -> object:
    return process.strays(home)


def storage_is_half_made(home: Path) -> object:
    return list(home.glob("data/postgres/cluster.new/PG_VERSION"))


def a_service_was_started(home: Path) -> object:
    return process.find(home)


def all_were_started(home: Path) -> object:
    return len(process.find(home)) == len(CHEAP)


@pytest.mark.parametrize(
    "instant",
    [
        pytest.param(lock_is_there, marks=pytest.mark.full),
        pytest.param(storage_is_being_made, marks=pytest.mark.full),
        pytest.param(storage_is_half_made, marks=pytest.mark.full),
        pytest.param(a_service_was_started, marks=pytest.mark.full),
        pytest.param(all_were_started, marks=pytest.mark.full),
    ],
)
def test_down_works_after_the_command_was_killed(
    another: Path, instant: Callable[[Path], object]
) -> None:
    up = started("up", *CHEAP, "--home", another)
    wait_until(lambda: instant(another), seconds=120, what=instant.__name__, interval=0.002)
    up.kill()
    up.communicate()
    assert headwater("down", "--home", another).returncode == 0
    assert of_lab(another) == []
    assert not (another / "lab.lock").exists()
    again = headwater("up", *CHEAP, "--home", another)
    assert again.returncode == 0, again.stderr


def test_an_interrupt_ends_up_soon_and_says_what_goes_on(another: Path) -> None:
    up = started("up", *CHEAP, "--home", another)
    wait_until(lambda: process.find(another), seconds=120, what="a service")
    os.killpg(up.pid, signal.SIGINT)  # as a terminal does
    _, err = up.communicate(timeout=20)
    assert up.returncode == 130
    assert f"headwater lab down --home {another}" in err
    assert "Traceback" not in err
    assert headwater("down", "--home", another).returncode == 0
    assert of_lab(another) == []


@pytest.mark.full
def test_a_second_up_waits_for_the_first(another: Path) -> None:
    commands = [started("up", *CHEAP, "--json", "--home", another) for _ in range(2)]
    told = [command.communicate(timeout=60) for command in commands]
    assert [command.returncode for command in commands] == [0, 0]
    one, two = (
        {row["service"]: (row["state"], row["pid"], row["port"]) for row in json.loads(out)}
        for out, _ in told
    )
    assert one == two
    assert sum("another command is at work on this lab" in err for _, err in told) == 1


@pytest.mark.full
def test_reset_wipes_everything_and_keys_are_new(another: Path) -> None:
    assert headwater("up", "s3", "--home", another).returncode == 0
    before = Lab(another).home.settings
    reset = headwater("reset", "--json", "--home", another)
    assert json.loads(reset.stdout) == {"stopped": ["s3"], "wiped": str(another)}
    assert of_lab(another) == []
    assert not another.exists()
    assert headwater("up", "s3", "--home", another).returncode == 0
    assert Lab(another).home.settings.s3_secret_key != before.s3_secret_key


def test_following_a_log_ends_quietly_on_an_interrupt(home: Path) -> None:
    with (home / "logs" / "s3.log").open("a") as log:
        log.write("something\n")
    follow = started("logs", "s3", "-f", "-n", "1", "--home", home)
    assert follow.stdout is not None
    assert follow.stdout.readline() == "something\n"
    with (home / "logs" / "s3.log").open("a") as log:
        log.write("more\n")
    assert follow.stdout.readline() == "more\n"
    os.killpg(follow.pid, signal.SIGINT)
    _, err = follow.communicate(timeout=10)
    assert follow.returncode == 130
    assert "Traceback" not in err
