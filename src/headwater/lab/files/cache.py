"""The download cache, shared between checkouts: verified files and what was unpacked from them."""

from __future__ import annotations

import errno
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

from headwater.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headwater.lab.files.artifacts import Artifact

CHUNK = 1 << 20
CONTENTS = ".contents.json"
# They separate paths, or end them, somewhere in the settings of the lab's services.
ODD = ':;,?!*"\\\n'
_verified = msgspec.json.Decoder(dict[str, str])
_sizes_and_times = msgspec.json.Decoder(dict[str, tuple[int, int]])


def default_cache() -> Path:
    """`HEADWATER_CACHE`, else the user's cache folder."""
    if configured := os.environ.get("HEADWATER_CACHE"):
        return Path(configured).expanduser().absolute()
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
        refuse_odd(self.root, "HEADWATER_CACHE")
        with self._disk_guarded():
            self.jars.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass

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
        return [a for a in artifacts if stamps.get(str(a.path), "") != self._stamp(a)]

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
        return self.built(
            Path("unpacked", artifact.sha256[:16]),
            lambda fresh: unpack(self.path(artifact), fresh),
        )

    def built(self, name: Path, build: Callable[[Path], None]) -> Path:
        """A folder that is there complete, as it was built, or is built again."""
        folder = self.root / name
        if _intact(folder):
            return folder
        self.prepare()
        with self.locked(), self._disk_guarded():
            if not _intact(folder):
                folder.parent.mkdir(parents=True, exist_ok=True)
                fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
                try:
                    fresh.chmod(0o755)
                    build(fresh)
                    (fresh / CONTENTS).write_bytes(msgspec.json.encode(_contents(fresh)))
                    if folder.exists():
                        folder.replace(fresh.with_suffix(".old"))
                    fresh.replace(folder)
                finally:
                    for left in folder.parent.glob(".new-*"):
                        shutil.rmtree(left, ignore_errors=True)
        return folder

    @contextmanager
    def _disk_guarded(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.problem(error) from error

    def problem(self, error: OSError) -> EnvironmentProblem:
        """The error when the cache could not be written."""
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        return EnvironmentProblem(
            f"the cache {self.root} cannot be written: {error.strerror or error}",
            hint="free some space, or set HEADWATER_CACHE to a folder on another disk"
            if full
            else "make it writable, or set HEADWATER_CACHE to a folder that is",
        )

    def _stamps(self) -> dict[str, str]:
        try:
            return _verified.decode((self.root / "verified.json").read_bytes())
        except (OSError, msgspec.DecodeError):
            return {}

    def _stamp(self, artifact: Artifact) -> str | None:
        try:
            found = self.path(artifact).stat()
        except OSError:
            return None
        return f"{artifact.sha256} {found.st_size} {found.st_mtime_ns}"


def refuse_odd(folder: Path, setting: str) -> None:
    """Say at once which characters some service could not bear in a path."""
    if found := sorted({character for character in str(folder) if character in ODD}):
        raise UsageError(
            f"the path {folder} has {' '.join(map(repr, found))} in it, which Java's settings "
            "take for something else",
            hint=f"give another folder by {setting}",
        )


def _contents(folder: Path) -> dict[str, tuple[int, int]]:
    files = (path for path in folder.rglob("*") if path.name != CONTENTS and path.is_file())
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in files
    }


def _intact(folder: Path) -> bool:
    """Whether a folder is as it was built; by sizes and times, no hash is computed."""
    try:
        built = _sizes_and_times.decode((folder / CONTENTS).read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return built == _contents(folder)


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
