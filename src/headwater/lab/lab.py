"""The lab itself: start, look at, stop and wipe its services."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import psutil

from headwater.errors import EnvironmentProblem, HeadwaterError, UsageError
from headwater.lab import ports, process
from headwater.lab.files import fetch
from headwater.lab.files.artifacts import lock
from headwater.lab.files.cache import Cache
from headwater.lab.home import Home
from headwater.lab.launch import Launch, is_ready
from headwater.lab.services import (
    SERVICES,
    bundles,
    in_order,
    select,
    with_dependants,
    with_needs,
)
from headwater.lab.services.base import LabContext
from headwater.lab.services.pipeline_streams import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

# A service that answers its probe no more is given this long before it is called unhealthy.
STARTING_SECONDS = 60.0


TUTORIAL_PORTS = {
    "kafka": 9092,
    "connect": 8083,
    "registry": 8081,
    "hive": 9083,
    "server": 5000,
    "page": 3000,
    "spark-history": 18080,
    "spark-ui": 18081,
    "spark-worker-1-ui": 18082,
}
LAKE = "lineage-lake"
TUTORIAL_NAMES = {"namespace": "fh-local", "catalog": "demo_ib", "archive": "fh-dev-bucket"}


class ServiceStatus(msgspec.Struct, kw_only=True):
    """One row of `headwater lab status`.

    `state` is `running` (probed ready), `starting`, `unhealthy` (alive, not answering), `died`
    (was started and is gone) or `stopped`.
    """

    service: str
    state: str
    port: int | None = None
    pid: int | None = None
    memory: int | None = None
    uptime: float | None = None
    version: str
    log: str
    page: str | None = None
    """Where a person watches it, if it has such a page and runs."""


class Lab:
    """A real streaming stack below one folder."""

    def __init__(
        self,
        home: Path | None = None,
        cache: Path | None = None,
        *,
        notify: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.home = Home(home)
        self.context = LabContext(self.home, Cache(cache))
        self._notify = notify

    def up(
        self,
        names: Iterable[str] = (),
        *,
        fixed: Mapping[str, int] | None = None,
        tutorial: bool = False,
        hive: bool = False,
        secure: bool = False,
        lake: bool = False,
        progress: fetch.FetchProgress | None = None,
        changed: Callable[[str, str], None] = lambda _service, _state: None,
    ) -> list[ServiceStatus]:
        """Start services, each as soon as what it needs is ready; those that run stay as they are.

        Without names: the usual ones, and what was started before and has died.
        With `tutorial`, a lab that is new has the ports and names that tutorials use, also for services
        that are started later; with `hive`, its Iceberg tables are kept in a Hive metastore; with
        `secure`, its services ask for logins; with `lake`, its lineage server forwards its log for the
        service `lineage-lake`.
        """
        named = list(names)
        wanted = with_needs(select(named))
        with self.home.created(self._waiting):
            if not named:
                wanted = in_order({*wanted, *self.home.settings.wanted})
            if hive:
                self._begin_with("hive", "keeps its tables without Hive")
            if secure:
                self._begin_with("secure", "asks for no logins")
            if lake or LAKE in wanted:
                self._begin_with("lake", "has no lineage lake")
            if self.home.settings.hive and "catalog" in wanted:
                wanted = in_order({*wanted, "hive"})
            if tutorial:
                self._begin_tutorial()
            if self._is_tutorial():
                if "server" in wanted and self._may_have("page"):
                    wanted = in_order({*wanted, "page"})
                fixed = {**self._tutorial_ports(wanted), **(fixed or {})}
            self._fix_ports(fixed or {}, wanted)
            _ = self.context.java  # a wrong Java is reported before hundreds of megabytes come down
            fetch.ensure(self.context.cache, lock().select(bundles(wanted)), progress)
            process.end(self._remains(process.orphans))
            self.home.settings.wanted = in_order({*self.home.settings.wanted, *wanted})
            self._choose_ports(wanted)
            self.home.save()
            Launch(self.context, wanted, changed).run()
        return self.status(wanted)

    def status(self, names: Iterable[str] = ()) -> list[ServiceStatus]:
        """Every service of this lab, each probed now."""
        self.home.reload()
        running = process.find(self.home.root)
        usual = {n for n, s in SERVICES.items() if not s.optional}
        chosen = (
            select(names) if names else in_order({*self.home.settings.wanted, *running, *usual})
        )
        with ThreadPoolExecutor(len(chosen)) as pool:
            return list(pool.map(lambda name: self._row(name, running.get(name)), chosen))

    def down(self, names: Iterable[str] = ()) -> list[str]:
        """Stop this lab's services, those that others need last; returns what was stopped."""
        chosen = set(with_dependants(select(names))) if names else set(SERVICES)
        if not self.home.begun:  # or removed by hand, perhaps under running services
            return self._stop(chosen)
        with self.home.locked(self._waiting):
            stopped = self._stop(chosen)
            if not self.home.exists:
                return stopped
            try:
                self.home.settings.wanted = in_order(set(self.home.settings.wanted) - chosen)
                self.home.save()
            except EnvironmentProblem:
                self._notify(
                    "the lab's settings are damaged; its services are stopped all the same"
                )
        return stopped

    def reset(self) -> list[str]:
        """Stop everything and remove the lab's data, ports and keys."""
        if self.home.root.exists() and not self.home.exists:
            raise UsageError(
                f"{self.home.root} is not a lab's folder: nothing is wiped",
                hint="name the lab's folder: headwater lab reset --home DIR",
            )
        stopped = self.down()
        if self.home.exists:
            with self.home.locked(self._waiting):
                self.home.wipe()
            with suppress(OSError):  # it holds something else, or a new lab already
                self.home.root.rmdir()
        return stopped

    def env(self) -> dict[str, str]:
        """What a client needs for the services that were started."""
        self.home.reload()
        if not self.home.settings.wanted:
            raise HeadwaterError(
                f"no service of the lab in {self.home.root} was started",
                hint="start it: headwater lab up",
            )
        found = {"HEADWATER_LAB_HOME": str(self.home.root), "HEADWATER_PIPELINES": str(programs())}
        for name in self.home.settings.wanted:
            found |= SERVICES[name].env(self.context)
        return found

    def _row(self, name: str, leader: psutil.Process | None) -> ServiceStatus:
        service = SERVICES[name]
        row = ServiceStatus(
            service=name,
            state="stopped",
            port=next(map(self.home.settings.ports.get, service.port_names()), None),
            version=service.version(),
            log=str(self.home.log(name)),
        )
        if leader is None or not process.alive(leader):
            if name in self.home.settings.wanted:
                row.state = "starting" if self.home.busy else "died"
            return row
        try:
            row.uptime = max(0.0, round(time.time() - leader.create_time(), 1))
            row.pid, row.memory = leader.pid, process.memory(leader)
        except psutil.Error:
            row.state = "died"
            return row
        row.page = service.page(self.context)
        if is_ready(service, self.context):
            row.state = "running"
        else:
            row.state = "starting" if row.uptime < STARTING_SECONDS else "unhealthy"
        return row

    def _stop(self, chosen: AbstractSet[str]) -> list[str]:
        running = process.find(self.home.root)
        stopping = [name for name in reversed(in_order(running)) if name in chosen]
        left = list(stopping)
        while left:
            needed = {need for name in left for need in SERVICES[name].needs}
            part = [SERVICES[name] for name in left if name not in needed]
            process.stop(
                {running[service.name]: service.stop_signal for service in part},
                max(service.stop_seconds for service in part),
            )
            left = [name for name in left if name in needed]
        # A demo in another terminal may have a job at work, unless everything is to end.
        process.end(self._remains(process.strays if chosen >= SERVICES.keys() else process.orphans))
        return stopping

    def _remains(self, unled: Callable[[Path], list[psutil.Process]]) -> list[psutil.Process]:
        """What killed services and commands have left of themselves."""
        running = process.find(self.home.root)
        unmarked = [
            p for n, s in SERVICES.items() if n not in running for p in s.remains(self.home)
        ]
        return [*unled(self.home.root), *unmarked]

    def _waiting(self) -> None:
        self._notify("another command is at work on this lab, waiting for it")

    def _is_tutorial(self) -> bool:
        settings = self.home.settings
        return all(getattr(settings, name) == value for name, value in TUTORIAL_NAMES.items())

    def _begin_tutorial(self) -> None:
        """Take the tutorials' names."""
        settings = self.home.settings
        if self._is_tutorial():
            return
        if settings.ports or settings.wanted:
            raise UsageError(
                f"the lab in {self.home.root} has names of its own already",
                hint="give --tutorial when it is new: another --home, or headwater lab reset",
            )
        for name, value in TUTORIAL_NAMES.items():
            setattr(settings, name, value)

    def _tutorial_ports(self, wanted: Iterable[str]) -> dict[str, int]:
        """The tutorials' ports of services that have none yet."""
        chosen = self.home.settings.ports
        bound = {name for service in wanted for name in SERVICES[service].port_names()}
        return {
            name: port
            for name, port in TUTORIAL_PORTS.items()
            if name in bound and name not in chosen and port not in chosen.values()
        }

    def _may_have(self, name: str) -> bool:
        """Whether a service runs on its port already, or can."""
        port = self.home.settings.ports.get(name, TUTORIAL_PORTS[name])
        return name in process.find(self.home.root) or ports.is_free(port)

    def _begin_with(self, setting: str, otherwise: str) -> None:
        """Make a choice that a lab has to begin with."""
        settings = self.home.settings
        if not getattr(settings, setting) and (settings.ports or settings.wanted):
            raise UsageError(
                f"the lab in {self.home.root} {otherwise} already",
                hint="choose it when the lab is new: another --home, or headwater lab reset",
            )
        setattr(settings, setting, True)

    def _fix_ports(self, fixed: Mapping[str, int], wanted: Iterable[str]) -> None:
        taken = self.home.settings.ports
        owners = {name: service for service in wanted for name in SERVICES[service].port_names()}
        running = process.find(self.home.root) if fixed else {}
        for name, port in fixed.items():
            owner = owners.get(name)
            if owner is None:
                raise UsageError(
                    f"no port is called {name!r}", hint=f"ports: {', '.join(sorted(owners))}"
                )
            if owner in running and taken.get(name) != port:
                raise UsageError(
                    f"{owner} already runs on port {taken.get(name)}",
                    hint=f"stop it first: headwater lab down {owner}",
                )
            if other := next((n for n, p in taken.items() if p == port and n != name), None):
                raise UsageError(
                    f"port {port} cannot be for {name}: it is {other}'s", hint="give each its own"
                )
            taken[name] = port

    def _choose_ports(self, wanted: Iterable[str]) -> None:
        for service in wanted:
            for name in SERVICES[service].port_names():
                self.home.port(name)
