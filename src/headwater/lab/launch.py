"""One start of several services side by side."""

from __future__ import annotations

import errno
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psutil

from headwater.errors import EnvironmentProblem, HeadwaterError
from headwater.lab import ports, process
from headwater.lab.logs import tail
from headwater.lab.services import SERVICES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headwater.lab.services.base import LabContext, Service

START_SECONDS = 180.0
DYING_SECONDS = 5.0
POLL_SECONDS = 0.15


class Launch:
    """Starts each service as soon as what it needs is ready, and waits until all are."""

    def __init__(
        self, lab: LabContext, names: list[str], changed: Callable[[str, str], None]
    ) -> None:
        self.lab = lab
        self.names = names
        self.changed = changed
        self.running = process.find(lab.home.root)
        self.done = {name: threading.Event() for name in names}
        self.failures: dict[str, HeadwaterError] = {}
        self.cancelled = threading.Event()

    def run(self) -> None:
        with ThreadPoolExecutor(len(self.names)) as pool:
            try:
                list(pool.map(self._bring_up, self.names))
            except BaseException:
                self.cancelled.set()
                raise
        if self.failures:
            first = next(name for name in self.names if name in self.failures)
            also = [name for name in self.failures if name != first]
            error = self.failures[first]
            if also:
                error.message += f"\n(not started either: {', '.join(also)})"
            raise error

    def _bring_up(self, name: str) -> None:
        service = SERVICES[name]
        try:
            for need in service.needs:
                self.done[need].wait()
                if need in self.failures:
                    raise HeadwaterError(f"{name} was not started, since {need} is not up")
            if self.cancelled.is_set():
                raise HeadwaterError(f"{name} was not started, since the command was interrupted")
            self._start(service)
            self.changed(name, "running")
        except Exception as error:  # noqa: BLE001
            self.failures[name] = _start_error(name, error, self.lab.home.root)
            self.changed(name, "failed")
        finally:
            self.done[name].set()

    def _start(self, service: Service) -> None:
        leader = self.running.get(service.name)
        # One that was killed a moment ago may still be found, and is gone by now.
        if leader is None or not self._becomes_ready(service, leader):
            self.changed(service.name, "starting")
            if not self._becomes_ready(service, self._spawn(service)):
                raise self._died(service, "ended before it was ready")
        service.started(self.lab)

    def _spawn(self, service: Service) -> psutil.Process:
        home = self.lab.home
        process.end(service.remains(home))
        for port in service.port_names():
            self._require_free(service, port)
        home.data(service.name).mkdir(parents=True, exist_ok=True)
        service.prepare(self.lab)
        pid = process.start(
            service.command(self.lab),
            home=home.root,
            service=service.name,
            cwd=home.data(service.name),
            log=home.log(service.name),
        )
        return psutil.Process(pid)

    def _becomes_ready(self, service: Service, leader: psutil.Process) -> bool:
        """Wait until it answers; false when it ends before."""
        deadline = time.monotonic() + START_SECONDS
        while process.alive(leader):
            if is_ready(service, self.lab):
                return True
            if time.monotonic() > deadline or self.cancelled.is_set():
                raise self._died(service, f"was not ready within {START_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)
        return False

    def _require_free(self, service: Service, name: str) -> None:
        port = self.lab.home.port(name)
        deadline = time.monotonic() + DYING_SECONDS
        # A server's socket outlives it by a moment; nobody is named as its holder then.
        while (why := ports.refusal(port)) == ports.TAKEN and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if why:
            raise EnvironmentProblem(
                f"{service.name} cannot have port {port}: {why}",
                hint=f"end that process, or choose another: headwater lab up --port {name}=PORT",
            )

    def _died(self, service: Service, what: str) -> HeadwaterError:
        log = self.lab.home.log(service.name)
        end = "\n".join(f"  {line}" for line in tail(log))
        full = any(word in end for word in ("No space left on device", "disk quota exceeded"))
        hint = (
            f"the disk of {self.lab.home.root} is full: free some space and try again"
            if full
            else f"the whole log: headwater lab logs {service.name}; try again: headwater lab up; "
            "start afresh: headwater lab reset"
        )
        return HeadwaterError(f"{service.name} {what}; the end of {log}:\n{end}", hint=hint)


def is_ready(service: Service, lab: LabContext) -> bool:
    """The service's own probe; what goes wrong in it means not ready, unless it cannot even run."""
    try:
        return service.ready(lab)
    except ImportError:
        raise
    except Exception:  # noqa: BLE001
        return False


def _start_error(name: str, error: Exception, home: Path) -> HeadwaterError:
    """Wrap any start failure in an error that names the service."""
    if isinstance(error, HeadwaterError):
        return error
    if not isinstance(error, OSError):
        return HeadwaterError(f"{name} was not started: {type(error).__name__}: {error}")
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return EnvironmentProblem(
            f"{name} was not started: the disk of {home} is full",
            hint="free some space, or give the lab another folder with --home DIR",
        )
    where = f" ({error.filename})" if error.filename else ""
    return HeadwaterError(f"{name} was not started: {error.strerror or error}{where}")
