"""The download cache, shared between checkouts: verified files and what was unpacked from them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headwater.lab.artifacts import Artifact

CHUNK = 1 << 20


def default_cache() -> Path:
    """`HEADWATER_CACHE`, else the user's cache folder."""
    if told := os.environ.get("HEADWATER_CACHE"):
        return Path(told).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "headwater"


class Cache:
    """Files by coordinate below one folder, each checked against the lock before it is used."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or default_cache()
        self.jars = self.root / "jars"

    def path(self, artifact: Artifact) -> Path:
        return self.jars / artifact.path

    def prepare(self) -> None:
        """Make sure that files can be written here."""
        try:
            self.jars.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise EnvironmentProblem(
                f"the cache {self.root} cannot be written: {error.strerror or error}",
                hint="make it writable, or set HEADWATER_CACHE to a folder that is",
            ) from error

    @contextmanager
    def locked(self, waiting: Callable[[], None] | None = None) -> Iterator[int]:
        """Hold the cache for one writer; yields the lock's descriptor for children to share."""
        with (self.root / "fetch.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waiting:
                    waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock.fileno()

    def missing(self, artifacts: Iterable[Artifact]) -> list[Artifact]:
        """What is absent, or was never verified as it lies there now (no hash is computed)."""
        stamps = self._stamps()
        return [a for a in artifacts if stamps.get(str(a.path)) != self._stamp(a)]

    def verify(self, artifact: Artifact, progress: Callable[[int], None] | None = None) -> bool:
        """Whether the file is there and is, byte for byte, the one in the lock."""
        path = self.path(artifact)
        if not path.is_file() or path.stat().st_size != artifact.size:
            return False
        return digest(path, progress) == artifact.sha256

    def mark_verified(self, artifacts: Iterable[Artifact]) -> None:
        """Remember what was verified, so that a start need not hash hundreds of megabytes."""
        stamps = self._stamps()
        for artifact in artifacts:
            if stamp := self._stamp(artifact):
                stamps[str(artifact.path)] = stamp
        write_atomically(self.root / "verified.json", msgspec.json.encode(stamps))

    def unpacked(self, artifact: Artifact) -> Path:
        """The folder an archive was unpacked into, unpacking it when that was not done yet."""
        folder = self.root / "unpacked" / artifact.sha256[:16]
        if not folder.is_dir():
            with self.building(folder) as fresh:
                unpack(self.path(artifact), fresh)
        return folder

    @contextmanager
    def building(self, folder: Path) -> Iterator[Path]:
        """Make a folder that appears whole or not at all, whoever else makes it meanwhile."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
        try:
            fresh.chmod(0o755)
            yield fresh
            try:
                fresh.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _stamps(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(
                (self.root / "verified.json").read_bytes(), type=dict[str, str]
            )
        except (OSError, msgspec.DecodeError):
            return {}

    def _stamp(self, artifact: Artifact) -> str | None:
        try:
            found = self.path(artifact).stat()
        except OSError:
            return None
        return f"{artifact.sha256} {found.st_size} {found.st_mtime_ns}"


def digest(path: Path, progress: Callable[[int], None] | None = None) -> str:
    """The SHA-256 of a file, in hex."""
    summed = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            summed.update(chunk)
            if progress:
                progress(len(chunk))
    return summed.hexdigest()


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a verified tar archive."""
    with tarfile.open(archive) as tar:
        # Early patch releases of 3.10 and 3.11 know no filters; the archive's hash was checked.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)  # noqa: S202


def write_atomically(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Replace a file so that a reader, or a crash, sees the old one or the new one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
