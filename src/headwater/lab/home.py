"""A lab's home: one folder with its settings, ports, keys, data and logs."""

from __future__ import annotations

import base64
import fcntl
import os
import secrets
import shutil
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from headwater.errors import EnvironmentProblem, UsageError
from headwater.lab import ports
from headwater.lab.files.cache import refuse_odd, write_atomically
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SETTINGS = "lab.json"
LOCK = "lab.lock"
LOCK_SECONDS = 240.0


def default_home() -> Path:
    """`HEADWATER_LAB_HOME`, else a folder in the user's data directory."""
    if configured := os.environ.get("HEADWATER_LAB_HOME"):
        return Path(configured).expanduser().absolute()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser().absolute() / "headwater" / "lab"


def _cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


def _secret() -> str:
    return secrets.token_hex(16)


class Logins(msgspec.Struct, kw_only=True):
    """The secrets of a lab with logins."""

    kafka: str = msgspec.field(default_factory=_secret)
    connect: str = msgspec.field(default_factory=_secret)
    registry: str = msgspec.field(default_factory=_secret)
    server: str = msgspec.field(default_factory=_secret)
    """A token that may do everything."""
    producer: str = ""
    """A token that may report lineage; the server makes it at its first start."""


class LabSettings(msgspec.Struct, kw_only=True):
    """What must stay the same while a lab lives, and what it was asked to run."""

    cluster_id: str = msgspec.field(default_factory=_cluster_id)
    s3_access_key: str = "headwater"
    s3_secret_key: str = msgspec.field(default_factory=_secret)
    postgres_password: str = msgspec.field(default_factory=_secret)
    logins: Logins = msgspec.field(default_factory=Logins)
    namespace: str = "shop"
    """Of the jobs in lineage."""
    catalog: str = "lab"
    """The name of the Iceberg catalog."""
    archive: str = "raw"
    """The bucket of raw records."""
    hive: bool = False
    """Whether a Hive metastore keeps the Iceberg tables."""
    secure: bool = False
    """Whether Kafka, Connect, the registry and the lineage server ask for logins."""
    lake: bool = False
    """Whether the lineage server forwards its log, which a stream keeps in the lineage lake."""
    ports: dict[str, int] = {}
    wanted: list[str] = []


_settings = msgspec.json.Decoder(LabSettings)


class Home:
    """The folder of one lab. Ports and keys are chosen once and kept until a reset."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or default_home()).expanduser().absolute().resolve()
        self.logs = self.root / "logs"
        self._settings: LabSettings | None = None

    @property
    def settings(self) -> LabSettings:
        if self._settings is None:
            self._settings = self._read()
        return self._settings

    @property
    def exists(self) -> bool:
        return (self.root / SETTINGS).is_file()

    @property
    def begun(self) -> bool:
        """Whether a command was at work here, be it one that was killed at its very start."""
        lock = self.root / LOCK
        return self.exists or (lock.is_file() and lock.stat().st_size == 0 and not self._foreign())

    @property
    def busy(self) -> bool:
        """Whether a command holds the lab now."""
        try:
            with (self.root / LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def conf(self, name: str) -> Path:
        return self.root / "conf" / name

    def data(self, service: str) -> Path:
        return self.root / "data" / service

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    @contextmanager
    def created(self, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the lab, making its folder first unless that holds something else."""
        refuse_odd(self.root, "--home DIR")
        try:
            self._require_ours()
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        with self.locked(waiting):
            try:
                self.root.chmod(0o700)
                self.save()  # first of all: from now on the folder is known as a lab's
                for folder in (self.logs, self.root / "conf", self.root / "tmp"):
                    folder.mkdir(exist_ok=True)
            except OSError as error:
                raise self._unwritable(error) from error
            yield

    def save(self) -> None:
        write_atomically(
            self.root / SETTINGS, msgspec.json.format(msgspec.json.encode(self.settings)), 0o600
        )

    def reload(self) -> None:
        self._settings = None

    def port(self, name: str) -> int:
        """The port of a name, chosen at its first use."""
        if name not in self.settings.ports:
            self.settings.ports[name] = ports.free(set(self.settings.ports.values()))
            self.save()
        return self.settings.ports[name]

    @contextmanager
    def locked(self, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        """Hold the lab for one command; the lock goes with the process, however that ends."""
        path = self.root / LOCK
        try:
            lock = _take(path)
        except OSError as error:
            raise self._unwritable(error) from error
        if lock is None and waiting:
            waiting()
        lock = lock or wait_until(
            lambda: _take(path),
            seconds=LOCK_SECONDS,
            what=f"the other command that is at work on the lab in {self.root}",
        )
        try:
            self.reload()
            yield
        finally:
            path.unlink(missing_ok=True)
            lock.close()

    def wipe(self) -> None:
        """Remove everything a lab put here; the folder itself stays if it holds anything else."""
        for name in ("data", "conf", "logs", "tmp"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            if (self.root / name).exists():
                raise EnvironmentProblem(
                    f"{self.root / name} could not be removed whole",
                    hint="remove it as the user who owns it, then: headwater lab reset",
                )
        for left in self.root.glob(f".{SETTINGS}-*"):
            left.unlink(missing_ok=True)
        (self.root / SETTINGS).unlink(missing_ok=True)
        self.reload()

    def _require_ours(self) -> None:
        if self.root.exists() and not self.exists and self._foreign():
            raise UsageError(
                f"{self.root} holds files that are not a lab's",
                hint="give --home an empty or a new folder",
            )

    def _foreign(self) -> bool:
        ours = (LOCK, f".{SETTINGS}-")
        return any(not entry.name.startswith(ours) for entry in self.root.iterdir())

    def _unwritable(self, error: OSError) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"the lab's home {self.root} cannot be written: {error.strerror or error}",
            hint="make it writable, or give another with --home DIR",
        )

    def _read(self) -> LabSettings:
        path = self.root / SETTINGS
        try:
            return _settings.decode(path.read_bytes())
        except FileNotFoundError:
            return LabSettings()
        except OSError as error:
            raise EnvironmentProblem(
                f"{path} cannot be read: {error.strerror or error}",
                hint="give another folder with --home DIR",
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise EnvironmentProblem(
                f"{path} is damaged ({error})",
                hint="start afresh, without the lab's data: headwater lab reset",
            ) from error


def _take(path: Path) -> IO[str] | None:
    """The locked file, or nothing while another holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)  # a reset may have taken it away meanwhile
    lock = path.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The holder before removes the file: what we have locked must still be what is there.
        if path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    lock.close()
    return None
