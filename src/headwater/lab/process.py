"""The lab's processes, found in the process table and nowhere else.

Each is started with its lab and service in its environment. That mark is the record: it cannot be
stale, survives a killed command line, and never points at a process that is not ours.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

HOME_MARK = "HEADWATER_LAB_PROCESS_OF"
SERVICE_MARK = "HEADWATER_LAB_SERVICE"
PARENT_MARK = "HEADWATER_LAB_STARTED_BY"
MAX_LOG = 20 << 20

# A shell's variables for other clusters, proxies, JVMs and jobs must not reach the lab's services.
FOREIGN = re.compile(
    r"(APICURIO|AWS|CONNECT|HADOOP|HEADWATER_(CONNECT|SERVER)|HIVE|KAFKA|OPENLINEAGE|QUARKUS|S3PROXY"
    r"|SCHEMA_REGISTRY|SPARK)_|PG[A-Z]|CLASSPATH$|HEADWATER_(FLOW_SECONDS|TOKEN|WATCHDOG)$"
    r"|(AVAILABLE_NOW|CHECKPOINT|INPUT_TOPIC|OUTPUT_TOPIC)$"
    r"|_JAVA_OPTIONS$|JAVA_TOOL_OPTIONS$|JDK_JAVA_OPTIONS$|LC_|LANG|(https?|all|ftp)_proxy$",
    re.IGNORECASE,
)
# A JVM reads file names by the locale: without one it cannot open a home with an umlaut in it.
LOCALE = {"LC_ALL": "C.UTF-8"}


class Command(NamedTuple):
    """How a service is started."""

    argv: Sequence[str]
    env: Mapping[str, str] = {}


def start(command: Command, *, home: Path, service: str, cwd: Path, log: Path) -> int:
    """Start a service apart from this process and its terminal; returns its process id."""
    if log.exists() and log.stat().st_size > MAX_LOG:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as out:
        process = subprocess.Popen(
            command.argv,
            cwd=cwd,
            env=environment(home, service, command.env),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process.pid


def run(argv: Sequence[str], *, home: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end; marked too, so that it can be found should this process be killed."""
    return subprocess.run(
        argv,
        cwd=cwd,
        env=environment(home, "", {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def environment(home: Path, service: str, extra: Mapping[str, str]) -> dict[str, str]:
    """What a process of the lab sees: this process's environment less what is not its business."""
    kept = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    marks = {HOME_MARK: str(home), SERVICE_MARK: service, PARENT_MARK: str(os.getpid())}
    return {**kept, **LOCALE, **extra, **marks}


def find(home: Path) -> dict[str, psutil.Process]:
    """The leading process of each service of a lab: the one that was started, not its children."""
    leaders = [mark for mark in _marked(home) if mark.leads]
    # A service's child may lead a session of its own, and is younger.
    leaders.sort(key=lambda mark: mark.process.create_time(), reverse=True)
    return {mark.service: mark.process for mark in leaders}


def strays(home: Path) -> list[psutil.Process]:
    """Processes of the lab that no service leads: a command's own, and what the killed left."""
    return [mark.process for mark in _unled(home)]


def orphans(home: Path) -> list[psutil.Process]:
    """What a killed service or command left behind; a command that lives keeps its own."""
    unled = _unled(home)
    kept = {member.pid for mark in unled if mark.waited_for for member in family(mark.process)}
    return [mark.process for mark in unled if mark.process.pid not in kept]


def _unled(home: Path) -> list[_Mark]:
    marked = _marked(home)
    led = {mark.session for mark in marked if mark.leads}
    return [mark for mark in marked if mark.session not in led]


class _Mark(NamedTuple):
    service: str
    process: psutil.Process
    session: int
    starter: str

    @property
    def leads(self) -> bool:
        return bool(self.service) and self.session == self.process.pid

    @property
    def waited_for(self) -> bool:
        """Whether whoever started it is still its parent."""
        try:
            return str(self.process.ppid()) == self.starter
        except psutil.Error:
            return False


def _marked(home: Path) -> list[_Mark]:
    found = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
            if env.get(HOME_MARK) == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                starter = env.get(PARENT_MARK, "")
                found.append(_Mark(env[SERVICE_MARK], process, os.getsid(process.pid), starter))
        except (psutil.Error, OSError, KeyError):
            continue
    return found


def alive(process: psutil.Process) -> bool:
    """Whether it still runs; a child of ours that ended counts as ended before it is reaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def family(process: psutil.Process) -> list[psutil.Process]:
    """A process and all below it."""
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return [process]


def memory(process: psutil.Process) -> int:
    """Bytes of memory a service takes, pages shared within it counted once where the system reports them."""
    total = 0
    for member in family(process):
        try:
            info = member.memory_full_info()
            total += getattr(info, "pss", None) or info.rss
        except psutil.Error:
            continue
    return total


def stop(processes: Mapping[psutil.Process, int], seconds: float) -> None:
    """Ask each to end by its signal, wait, and kill what is left with all below it."""
    members = [member for process in processes for member in family(process)]
    for process, sign in processes.items():
        _send([process], sign)
    end(_left(members, seconds))


def end(processes: Sequence[psutil.Process]) -> None:
    """Kill what has no one left to ask it kindly, and wait until it is gone."""
    _send(processes, signal.SIGKILL)
    _left(processes, 5)


def _left(processes: Sequence[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run after a time; one that its parent has not reaped yet does not."""
    deadline = time.monotonic() + seconds
    while (left := [p for p in processes if alive(p)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in processes:
        with suppress(psutil.Error):
            process.wait(0)  # reaps it if it is a child of ours
    return left


def _send(processes: Iterable[psutil.Process], sign: int) -> None:
    for process in processes:
        try:
            process.send_signal(sign)
        except psutil.Error:
            continue
