"""The lab's processes, found in the process table and nowhere else.

Each is started with its lab and service in its environment. That mark is the record: it cannot be
stale, survives a killed command line, and never points at a process that is not ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

HOME_MARK = "HEADWATER_LAB_PROCESS_OF"
SERVICE_MARK = "HEADWATER_LAB_SERVICE"
MAX_LOG = 20 << 20


class Command(NamedTuple):
    """How a service is started."""

    argv: Sequence[str]
    env: Mapping[str, str] = {}


def start(command: Command, *, home: Path, service: str, cwd: Path, log: Path) -> int:
    """Start a service apart from this process and its terminal; returns its process id."""
    if log.exists() and log.stat().st_size > MAX_LOG:
        log.replace(log.with_suffix(".log.1"))
    env = {**os.environ, **command.env, HOME_MARK: str(home), SERVICE_MARK: service}
    with log.open("ab") as out:
        process = subprocess.Popen(
            command.argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process.pid


def find(home: Path) -> dict[str, psutil.Process]:
    """The leading process of each service of a lab."""
    found: dict[str, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            env = process.environ()
            if env.get(HOME_MARK) != str(home) or process.status() == psutil.STATUS_ZOMBIE:
                continue
            service = env[SERVICE_MARK]
            known = found.get(service)
            if known is None or process.create_time() < known.create_time():
                found[service] = process
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
    """Bytes of memory a service takes, pages shared within it counted once where the system says."""
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
    _, left = psutil.wait_procs(members, timeout=seconds)
    _send(left, signal.SIGKILL)
    psutil.wait_procs(left, timeout=5)


def _send(processes: Iterable[psutil.Process], sign: int) -> None:
    for process in processes:
        try:
            process.send_signal(sign)
        except psutil.Error:
            continue
